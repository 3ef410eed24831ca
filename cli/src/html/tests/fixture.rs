//! Logs as a tuner writes them, made of a seed: a smooth landscape with noise, failures of every common kind, screens, finals,
//! and the winner step by step.

use codegen::device::{Launch, MachineInfo, Resources};
use indexmap::IndexMap;
use ir::Name;
use schedule::Choice;
use serde_json::json;
use tuner::{
    OutputCheck, Regime, Roofline, Stats, Verification,
    log::{
        Baseline, Entry, ErrorKind, Event, Finalist, Finals, Happening, Interval, LOG_VERSION, Measurement, Origin, Plan,
        Protocol, Run, SpaceScript, Stage, StepResult, Strategy, Times, Trial, TrialError, Workload,
    },
};

/// The lines of a run, sorted by kind.
pub(crate) struct Fixture {
    pub(crate) head: Run,
    pub(crate) trials: Vec<Trial>,
    pub(crate) steps: Vec<StepResult>,
    pub(crate) finals: Option<Finals>,
    pub(crate) events: Vec<Event>,
}

impl Fixture {
    /// In the order of a file. One of the two test crates reads logs as lines.
    #[allow(dead_code, reason = "the unit tests take the parts")]
    pub(crate) fn entries(&self) -> Vec<Entry> {
        let trials = self.trials.iter().cloned().map(Entry::Trial);
        let finals = self.finals.iter().cloned().map(Entry::Finals);
        let steps = self.steps.iter().cloned().map(Entry::Step);
        let events = self.events.iter().cloned().map(Entry::Event);
        [Entry::Run(self.head.clone())].into_iter().chain(trials).chain(finals).chain(steps).chain(events).collect()
    }
}

/// Random numbers that only depend on their place (splitmix64).
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut it = self.0;
        it = (it ^ (it >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        it = (it ^ (it >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        it ^ (it >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % limit as u64).unwrap()
    }

    /// From 0 to 1.
    fn part(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

const RUN: &str = "20261121T191300Z-1f3a9c2b";

fn name(text: &str) -> Name {
    Name::new(text)
}

fn ints(all: &[i64]) -> Vec<Choice> {
    all.iter().copied().map(Choice::Int).collect()
}

/// Every way to write 128 as a product of three factors, the last at most 8.
fn tiles() -> Vec<Choice> {
    let powers = [1, 2, 4, 8, 16, 32, 64, 128];
    let pairs = powers.iter().flat_map(|a| powers.iter().map(move |b| (*a, *b)));
    let tile = |(a, b): (i64, i64)| (a * b <= 128 && 128 / (a * b) <= 8).then(|| Choice::Tile(vec![a, b, 128 / (a * b)]));
    pairs.filter_map(tile).collect()
}

fn knobs() -> IndexMap<Name, Vec<Choice>> {
    [
        ("bm", ints(&[128, 32, 64, 256])),
        ("bn", ints(&[128, 32, 64, 256])),
        ("bk", ints(&[16, 8, 32])),
        ("tm", ints(&[8, 4, 16])),
        ("tn", ints(&[8, 4, 16])),
        ("stages", ints(&[3, 1, 2, 4, 5, 6])),
        ("wide", ints(&[0, 1])),
        ("copy", ints(&[0, 1, 2])),
        ("rows", tiles()),
    ]
    .into_iter()
    .map(|(it, choices)| (name(it), choices))
    .collect()
}

fn machine() -> MachineInfo {
    let versions = [("CUDA driver", "13.0"), ("NVRTC", "13.0"), ("cuBLASLt", "13.1.0")];
    MachineInfo {
        name: "NVIDIA H200".to_owned(),
        arch: "sm_90a".to_owned(),
        units: 132,
        peak_f32_gflops: Some(66_908.16),
        peak_gb_per_s: Some(4_814.304),
        cache_bytes: 62_914_560,
        versions: versions.map(|(it, version)| (it.to_owned(), version.to_owned())).to_vec(),
    }
}

/// The head of a run on 2048 x 2048 x 2048.
pub(crate) fn head() -> Run {
    let flops = 2.0 * 2048f64.powi(3);
    let bytes = 3.0 * 4.0 * 2048f64.powi(2);
    let params = json!({"m": 2048, "n": 2048, "k": 2048, "dtype": "f32"});
    Run {
        v: LOG_VERSION,
        run: RUN.to_owned(),
        tool: "0.1.0".to_owned(),
        time: "2026-11-21T19:13:00Z".to_owned(),
        args: ["tilewright", "tune", "matmul-cuda-space.ron", "--trials", "400", "--seed", "7"].map(str::to_owned).to_vec(),
        seed: 7,
        strategy: Strategy { name: "random".to_owned(), params: IndexMap::new() },
        script: SpaceScript {
            name: "matmul-cuda-space.ron".to_owned(),
            text: "schedule(\n    workload: \"matmul\",\n    knobs: {\"bk\": [16, 8, 32]},\n    steps: [],\n)\n".to_owned(),
            sha256: "5".repeat(64),
            params: params.as_object().unwrap().iter().map(|(name, it)| (name.clone(), it.clone())).collect(),
            knobs: knobs(),
            size: knobs().values().map(|it| it.len() as u64).product::<u64>().to_string(),
        },
        workload: Workload {
            id: "6".repeat(64),
            name: "matmul".to_owned(),
            program: "func matmul(A: f32[m, k], B: f32[k, n]) -> C: f32[m, n]\n".to_owned(),
            dims: IndexMap::new(),
            flops,
            bytes,
        },
        target: "cuda:sm_90a".to_owned(),
        machine: machine(),
        host: "linux x86_64".to_owned(),
        measure: Protocol {
            proto: "v1".to_owned(),
            regime: Regime::Sustained,
            caches: "warm: back-to-back calls on the same buffers".to_owned(),
            data: "N(0, 1) from the seed".to_owned(),
            threads: 0,
        },
        plan: Plan {
            trials: 400,
            seconds: None,
            finalists: 8,
            regime: Regime::Sustained,
            rounds: 31,
            baseline: true,
            incumbent: None,
            per_step: true,
            threads: 0,
            exclusive: false,
        },
        roofline: Roofline { compute: Some(flops / 66_908.16e9), memory: Some(0.0) },
        other: IndexMap::new(),
    }
}

/// Times around a speed, with some noise.
pub(crate) fn measured(head: &Run, gflops: f64, noise: f64, dice: &mut Dice, screened: bool) -> Measurement {
    let samples = if screened { 3 } else { 12 };
    let typical = head.workload.flops / gflops / 1e9;
    let seconds: Vec<f64> = (0..samples).map(|_| typical * (1.0 + noise * (dice.part() - 0.3))).collect();
    let stats = Stats::of(&seconds).unwrap();
    let check = OutputCheck {
        buffer: name("C"),
        elements: 4_194_304,
        compared: 1360,
        unwritten: 0,
        nan: 0,
        wrong: 0,
        max_error: 2.1e-5,
        tolerance: 2.2e-4,
        scale: 52.2,
        worst: None,
    };
    let verdict = Verification { outputs: vec![check] };
    let gflops = head.workload.flops / stats.median / 1e9;
    let (before, after) = (verdict.clone(), verdict);
    Measurement { calls: 4, seconds, stats, gflops, screened, suspicious: false, clock_mhz: vec![1980.0, 1965.0], before, after }
}

fn time(second: u64) -> String {
    format!("2026-11-21T19:{:02}:{:02}Z", 13 + second / 60, second % 60)
}

fn number(it: &Trial, knob: &str) -> f64 {
    match it.decisions.get(&name(knob)) {
        Some(Choice::Int(it)) => *it as f64,
        Some(Choice::Tile(parts)) => parts[2] as f64,
        None => 1.0,
    }
}

/// How fast a candidate would be without noise.
fn speed(it: &Trial) -> f64 {
    let hill = |value: f64, best: f64, width: f64| (-((value / best).log2() / width).powi(2)).exp();
    let tile = hill(number(it, "bm"), 128.0, 1.8) * hill(number(it, "bn"), 128.0, 1.6);
    let thread = hill(number(it, "tm") * number(it, "tn"), 64.0, 1.7);
    let depth = 0.6 + 0.4 * hill(number(it, "stages"), 3.5, 1.2);
    let copy = [1.0, 0.93, 0.7][number(it, "copy") as usize];
    let wide = if number(it, "wide") > 0.0 { 1.0 } else { 0.9 };
    let rows = 0.8 + 0.2 * hill(number(it, "rows"), 4.0, 1.0);
    54_000.0 * tile * thread * depth * copy * wide * rows * (0.9 + 0.1 * hill(number(it, "bk"), 16.0, 1.0))
}

/// What stops a candidate, if something does.
fn error(it: &Trial, dice: &mut Dice) -> Option<TrialError> {
    let threads = number(it, "bm") * number(it, "bn") / number(it, "tm") / number(it, "tn");
    let shared = (number(it, "bm") + number(it, "bn")) * number(it, "bk") * 4.0 * number(it, "stages");
    let luck = dice.part();
    let (stage, kind, message) = if threads > 1024.0 || shared > 232_448.0 {
        let message = "`matmul` spills 512 bytes of each thread for want of registers; 255 are used";
        (Stage::Compile, ErrorKind::Resource, message.to_owned())
    } else if luck < 0.02 {
        let message = "cuStreamSynchronize failed: CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was encountered";
        (Stage::Run, ErrorKind::IllegalAddress, message.to_owned())
    } else if luck < 0.035 {
        let message = "3 of 1360 compared elements of `C` differ; C[17, 2044] is -31.29 and should be 12.08";
        (Stage::Verify, ErrorKind::WrongResult, message.to_owned())
    } else if luck < 0.04 {
        (Stage::Run, ErrorKind::Hang, "the kernel `matmul` did not end within 2.5 s".to_owned())
    } else if luck < 0.06 {
        let message = "matmul.cu(41): error: identifier \"ring\" is undefined\n1 error detected in the compilation of \"matmul.cu\".";
        (Stage::Compile, ErrorKind::Compile, message.to_owned())
    } else {
        return None;
    };
    Some(TrialError { stage, kind, message, sticky: kind == ErrorKind::IllegalAddress })
}

pub(crate) fn trial(head: &Run, n: u64, best: f64, dice: &mut Dice) -> Trial {
    let choose = |(name, choices): (&Name, &Vec<Choice>), dice: &mut Dice| {
        (name.clone(), choices[if n == 0 { 0 } else { dice.below(choices.len()) }].clone())
    };
    let mut decisions: IndexMap<Name, Choice> = IndexMap::new();
    for knob in &head.script.knobs {
        let (name, choice) = choose(knob, dice);
        // The layout of rows only matters for the last way to copy.
        if name.as_str() != "rows" || decisions.get("copy") != Some(&Choice::Int(2)) {
            decisions.insert(name, choice);
        }
    }
    let launch = Launch { kernel: "matmul".to_owned(), grid: [16, 16, 1], block: [16, 16, 1], shared_bytes: 49_152, buffers: vec![0, 1, 2], dims: vec![] };
    let registers = 96 + u32::try_from(dice.below(120)).unwrap();
    let mut it = Trial {
        run: head.run.clone(),
        n,
        id: format!("{:016x}{:048x}", dice.next(), n),
        decisions,
        origin: if n == 0 { Origin::Default } else { Origin::Random },
        src: format!("{:016x}{:048x}", dice.next(), n),
        bin: Some(format!("{:016x}{:048x}", dice.next(), n)),
        launches: vec![launch],
        res: vec![Resources { kernel: "matmul".to_owned(), registers, ..Resources::default() }],
        t: Times { generate: 3.0 + dice.part(), compile: 300.0 + 400.0 * dice.part(), measure: 120.0 + 150.0 * dice.part() },
        result: None,
        error: None,
        worker: "measure-0".to_owned(),
        time: time(1 + n * 3 / 4),
        other: IndexMap::new(),
    };
    it.error = error(&it, dice);
    match &it.error {
        Some(err) if err.stage == Stage::Compile => it.t.measure = 0.0,
        Some(_) => {}
        None => {
            let speed = speed(&it).max(300.0) * (0.93 + 0.07 * dice.part());
            it.result = Some(measured(head, speed, 0.02, dice, speed < best / 2.0));
        }
    }
    it
}

fn event(run: &str, what: Happening, detail: &str, second: u64) -> Event {
    Event { run: run.to_owned(), what, detail: detail.to_owned(), rejected: IndexMap::new(), time: time(second), other: IndexMap::new() }
}

fn finals(head: &Run, trials: &[Trial], dice: &mut Dice) -> Finals {
    let mut best: Vec<&Trial> = trials.iter().filter(|it| it.result.is_some()).collect();
    best.sort_by(|a, b| speed(b).total_cmp(&speed(a)));
    let top = speed(best[0]) * 0.97;
    let library = top / 1.012;
    let interval = |median: f64, width: f64| Interval { median, low: median * (1.0 - width), high: median * (1.0 + width * 1.1), rounds: 30 };
    let finalist = |(at, it): (usize, &&Trial)| {
        let own = speed(it) * 0.97;
        let broken = (at == 6).then(|| TrialError {
            stage: Stage::Verify,
            kind: ErrorKind::WrongResult,
            message: "its numbers are wrong after timing, though they were right before".to_owned(),
            sticky: false,
        });
        Finalist {
            n: Some(it.n),
            id: it.id.clone(),
            result: broken.is_none().then(|| measured(head, own, 0.006, dice, false)),
            versus_winner: (at > 0 && broken.is_none()).then(|| interval(own / top, 0.002)),
            versus_baseline: broken.is_none().then(|| interval(own / library, 0.003)),
            error: broken,
        }
    };
    let finalists = best.iter().take(8).enumerate().map(finalist).collect();
    let seconds = measured(head, library, 0.005, dice, false).seconds;
    Finals {
        run: head.run.clone(),
        rounds: 31,
        dropped: 1,
        regime: Regime::Sustained,
        noise_floor: Some(interval(1.0003, 0.0011)),
        finalists,
        baseline: Some(Baseline {
            name: "cuBLASLt 13.1.0".to_owned(),
            heuristic_seconds: Some(head.workload.flops / (library * 0.94) / 1e9),
            tried: 8,
            seconds,
            gflops: library,
        }),
        no_baseline: None,
        time: time(330),
    }
}

const STEPS: [(&str, f64); 14] = [
    ("", 0.0),
    ("split(loop: \"i\", into: {\"by\": None, \"ty\": 16, \"ii\": 8})", 0.0),
    ("split(loop: \"j\", into: {\"bx\": None, \"tx\": 16, \"jj\": 8})", 0.0),
    ("reorder(order: [\"by\", \"bx\", \"ty\", \"tx\", \"k\", \"ii\", \"jj\"])", 0.0),
    ("bind(loop: \"by\", axis: \"blockIdx.y\")", 40.0),
    ("bind(loop: \"tx\", axis: \"threadIdx.x\")", 5_200.0),
    ("cache_write(block: \"C\", scope: \"local\")", 7_900.0),
    ("cache_read(block: \"C\", buffer: \"A\", scope: \"shared\")", -1.0),
    ("compute_at(block: \"A_shared\", loop: \"ko\")", 14_300.0),
    ("vectorize(loop: \"A_shared_v\")", 21_600.0),
    ("unroll(loop: \"ki\")", 21_550.0),
    ("storage_align(buffer: \"A_shared\", axis: 0, factor: 64, offset: 36)", 20_100.0),
    ("software_pipeline_stage(loop: \"ko\", stages: {\"A_shared\": 0, \"B_shared\": 0, \"C\": 2})", -2.0),
    ("software_pipeline_async_stages(loop: \"ko\", stages: [0], mechanism: \"cp_async\")", 51_300.0),
];

fn steps(head: &Run, n: u64, dice: &mut Dice) -> Vec<StepResult> {
    let mut out: Vec<StepResult> = vec![];
    for (at, (step, gflops)) in STEPS.into_iter().enumerate() {
        let no_effect = gflops < -1.5;
        let error = (gflops == 0.0 && at < 4 || (-1.5..-0.5).contains(&gflops)).then(|| TrialError {
            stage: Stage::Generate,
            kind: ErrorKind::Codegen,
            message: "loop `i` of block `C` is bound to no thread".to_owned(),
            sticky: false,
        });
        out.push(StepResult {
            run: head.run.clone(),
            n,
            steps: at,
            step: step.to_owned(),
            src: format!("{at:064}"),
            result: match gflops {
                it if it > 0.0 => Some(measured(head, it, 0.01, dice, false)),
                _ if no_effect => out.iter().rev().find_map(|it| it.result.clone()),
                _ => None,
            },
            error,
            no_effect,
            time: time(331 + at as u64),
        });
    }
    out
}

/// A run as it comes out on a GPU.
pub(crate) fn gpu(trials: u64) -> Fixture {
    let mut dice = Dice(7);
    let head = head();
    let mut all: Vec<Trial> = vec![];
    let mut best = 0.0;
    for n in 0..trials {
        let it = trial(&head, n, best, &mut dice);
        best = it.result.as_ref().map_or(best, |it| it.gflops.max(best));
        all.push(it);
    }
    let finals = finals(&head, &all, &mut dice);
    let steps = steps(&head, finals.finalists[0].n.unwrap(), &mut dice);
    let run = head.run.clone();
    let mut events = vec![
        event(&run, Happening::WorkerStarted, "compile-0", 0),
        event(&run, Happening::WorkerStarted, "measure-0", 0),
        event(&run, Happening::WorkerReplaced, "measure-0: an illegal memory access", 40),
        event(&run, Happening::WorkerReplaced, "measure-0: an illegal memory access", 160),
        event(&run, Happening::Finished, "", 346),
    ];
    let rejected = [("constraint", 5_210), ("duplicate", 37), ("shared_memory", 412), ("threads", 96), ("schedule", 120)];
    events[4].rejected = rejected.iter().map(|(reason, it)| ((*reason).to_owned(), *it)).collect();
    Fixture { head, trials: all, steps, finals: Some(finals), events }
}

/// A small run on a CPU whose caches do not hold its data: no library, no clocks, no finals.
pub(crate) fn cpu() -> Fixture {
    let mut it = gpu(60);
    it.head.run = "20261121T200000Z-00c0ffee".to_owned();
    it.head.workload.name = "matmul".to_owned();
    it.head.script.params = json!({"m": 16384, "n": 64, "k": 1024, "dtype": "f32"})
        .as_object()
        .unwrap()
        .iter()
        .map(|(name, it)| (name.clone(), it.clone()))
        .collect();
    it.head.workload.flops = 2.0 * 16384.0 * 64.0 * 1024.0;
    it.head.workload.bytes = 4.0 * (16384.0 * 1024.0 + 64.0 * 1024.0 + 16384.0 * 64.0);
    it.head.machine = MachineInfo {
        name: "AMD EPYC 9654".to_owned(),
        arch: "cpu".to_owned(),
        units: 16,
        peak_f32_gflops: Some(1_790.0),
        peak_gb_per_s: Some(60.0),
        cache_bytes: 33_554_432,
        versions: vec![("cc".to_owned(), "12.2.0".to_owned())],
    };
    let left = it.head.workload.bytes - 33_554_432.0;
    it.head.roofline = Roofline { compute: Some(it.head.workload.flops / 1_790e9), memory: Some(left / 60e9) };
    it.head.target = "cpu".to_owned();
    it.finals = None;
    it.steps.clear();
    for trial in &mut it.trials {
        trial.run.clone_from(&it.head.run);
        if let Some(result) = &mut trial.result {
            let gflops = result.gflops / 54.0;
            *result = measured(&it.head, gflops, 0.1, &mut Dice(trial.n), result.screened);
        }
    }
    for event in &mut it.events {
        event.run.clone_from(&it.head.run);
    }
    it
}
