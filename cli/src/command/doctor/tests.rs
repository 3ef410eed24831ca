//! Each warning and each failure on a machine that has it.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use serde_json::json;
use tuner::pool::{Once, OnceError};

use super::{
    all,
    check::{Check, State},
    environment::HostEnvironment,
    probe::{Probe, Probed},
};

/// A machine as a test wants it.
#[derive(Clone)]
struct Fake {
    probes: BTreeMap<String, Probed>,
    /// Programs by the beginning of their command line; others are not installed.
    programs: Vec<(&'static str, Said)>,
    files: BTreeMap<&'static str, String>,
    read_only: Vec<&'static str>,
    home: bool,
}

#[derive(Clone)]
enum Said {
    This(&'static str),
    Fails(&'static str),
    Hangs,
}

const GPUS: &str = "nvidia-smi --query-gpu";
const USERS: &str = "nvidia-smi --query-compute-apps";
const CARD: &str =
    "GPU-1, NVIDIA H100, 81559, 4, 0, 700.00, 700.00, 345, 1980, 0x0000000000000001, 31, Default, Disabled\n";

impl HostEnvironment for Fake {
    fn probe(&self, probe: Probe) -> Probed {
        self.probes.get(&probe.word()).cloned().unwrap_or_else(|| missing("a GPU of that number"))
    }

    fn run(&self, argv: &[&str]) -> Result<Once, OnceError> {
        let line = argv.join(" ");
        let said = self.programs.iter().find(|it| line.starts_with(it.0)).map(|it| &it.1);
        let once = |stdout: &str, success| Once {
            stdout: stdout.to_owned(),
            stderr: String::new(),
            success,
            status: "exit status: 9".to_owned(),
        };
        match said {
            Some(Said::This(text)) => Ok(once(text, true)),
            Some(Said::Fails(text)) => Ok(once(text, false)),
            Some(Said::Hangs) => Err(OnceError::Slow(Duration::from_secs(10))),
            None => Err(OnceError::Start(io::Error::from(io::ErrorKind::NotFound))),
        }
    }

    fn read(&self, path: &str) -> Option<String> {
        self.files.get(path).cloned()
    }

    fn write(&self, folder: &Path) -> Result<(), String> {
        let refused = self.read_only.iter().any(|it| folder == Path::new(it));
        if refused { Err("Read-only file system".to_owned()) } else { Ok(()) }
    }

    fn cores(&self) -> usize {
        4
    }

    fn temporary(&self) -> PathBuf {
        "/tmp".into()
    }

    fn state(&self) -> Option<PathBuf> {
        self.home.then(|| "/home/user/.local/state/tilewright".into())
    }
}

fn missing(what: &str) -> Probed {
    Probed::Refused { error: format!("{what} was not found"), help: Some("install it".to_owned()) }
}

fn machine(name: &str, arch: &str, versions: &[(&str, &str)]) -> Probed {
    Probed::Found(json!({
        "name": name, "arch": arch, "units": 4, "peak_f32_gflops": 100.0, "peak_gb_per_s": 20.0,
        "cache_bytes": 32 << 20, "versions": versions,
    }))
}

fn nvrtc(version: (u32, u32), archs: &[u32], broken: Option<&str>) -> Probed {
    Probed::Found(json!({"path": "/lib/libnvrtc.so", "version": version, "archs": archs, "broken": broken}))
}

impl Fake {
    /// A machine that has all, and nothing wrong.
    fn whole() -> Fake {
        let probes = [
            ("compiler", Probed::Found(json!({"command": ["cc"], "version": "cc 12.2.0"}))),
            ("processor", machine("A Processor", "cpu", &[("cc", "12.2.0")])),
            ("nvrtc", nvrtc((13, 0), &[75, 80, 90, 100], None)),
            ("cublas", Probed::Found(json!("/lib/libcublas.so.13"))),
            ("disassembler", Probed::Found(json!("/bin/nvdisasm"))),
            ("gpu:0", machine("NVIDIA H100", "sm_90a", &[("CUDA driver", "13.0")])),
        ];
        Fake {
            probes: probes.into_iter().map(|(name, it)| (name.to_owned(), it)).collect(),
            programs: vec![
                (GPUS, Said::This(CARD)),
                (USERS, Said::This("")),
                ("ls /lib", Said::This("libcublas.so.13\nlibcublasLt.so.13\n")),
                (
                    "/bin/nvdisasm",
                    Said::This("nvdisasm: NVIDIA (R) CUDA disassembler\nrelease 13.0, V13.0.1\n"),
                ),
                (
                    "df",
                    Said::This(
                        "Filesystem 1024-blocks Used Available Capacity Mounted on\nover lay 9 1 9000000 1% /\n",
                    ),
                ),
            ],
            files: BTreeMap::from([
                ("/proc/cpuinfo", "model name : x\nflags : fpu sse2 avx avx2 fma f16c\n".to_owned()),
                ("/proc/loadavg", "0.10 0.20 0.30 1/100 1234\n".to_owned()),
                ("/proc/meminfo", "MemTotal: 16000000 kB\nMemAvailable: 12000000 kB\n".to_owned()),
                ("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n".to_owned()),
            ]),
            read_only: vec![],
            home: true,
        }
    }

    fn with(mut self, change: impl FnOnce(&mut Fake)) -> Fake {
        change(&mut self);
        self
    }

    fn probed(self, probe: &str, it: Probed) -> Fake {
        self.with(|fake| drop(fake.probes.insert(probe.to_owned(), it)))
    }

    fn says(self, program: &'static str, said: Said) -> Fake {
        self.with(|it| it.programs.insert(0, (program, said)))
    }

    fn file(self, path: &'static str, text: &str) -> Fake {
        self.with(|it| drop(it.files.insert(path, text.to_owned())))
    }

    fn checks(&self) -> Vec<Check> {
        all(self, &mut |_| {})
    }
}

fn told(checks: &[Check]) -> String {
    let mut out = vec![];
    for it in checks {
        it.print(&mut out).unwrap();
    }
    String::from_utf8(out).unwrap()
}

#[test]
fn a_machine_that_has_all_and_one_that_has_no_gpu() {
    let whole = Fake::whole().checks();
    assert!(whole.iter().all(|it| it.state == State::Ok && it.fix.is_none()), "{}", told(&whole));
    let bare = Fake::whole()
        .probed("gpu:0", missing("the CUDA driver (libcuda)"))
        .probed("nvrtc", missing("NVRTC"))
        .probed("cublas", missing("cuBLAS"))
        .probed("disassembler", missing("a disassembler for GPUs"))
        .with(|it| it.programs.retain(|it| it.0 == "df"))
        .checks();
    assert!(bare.iter().all(|it| it.state < State::Fail), "{}", told(&bare));
    insta::assert_snapshot!(format!("{}\n{}", told(&whole), told(&bare)));
}

/// A card with a field of [`CARD`] changed.
fn card(from: &'static str, to: &str) -> Said {
    assert!(CARD.contains(from), "{from}");
    Said::This(Box::leak(CARD.replacen(from, to, 1).into_boxed_str()))
}

fn refused(error: &str) -> Probed {
    Probed::Refused { error: error.to_owned(), help: None }
}

const HUNG: Probed = Probed::Hung(Duration::from_secs(40));

type Cases = Vec<(&'static str, Fake)>;

fn of_the_host() -> Cases {
    let whole = Fake::whole;
    let memory = "MemTotal: 16000000 kB\nMemAvailable: 500000 kB\n";
    let governor = "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor";
    vec![
        ("no compiler", whole().probed("compiler", missing("a C compiler"))),
        ("a compiler that hangs", whole().probed("compiler", HUNG)),
        ("a compiler without headers", whole().probed("compiler", refused("cc: stdint.h: no such file"))),
        (
            "programs may not run from the folder",
            whole().probed("compiler", refused("dlopen failed: not permitted")),
        ),
        ("no threads", whole().probed("processor", refused("no threads"))),
        ("a slow clock", whole().file(governor, "powersave\n")),
        ("a busy machine", whole().file("/proc/loadavg", "3.50 1 1 1/1 1\n")),
        ("little memory", whole().file("/proc/meminfo", memory)),
        (
            "a small container",
            whole()
                .file("/sys/fs/cgroup/memory.max", "536870912\n")
                .file("/sys/fs/cgroup/memory.current", "104857600\n"),
        ),
    ]
}

fn of_gpus() -> Cases {
    let whole = Fake::whole;
    let died = Probed::Died("signal: 11".to_owned());
    vec![
        ("a driver that hangs", whole().probed("gpu:0", HUNG)),
        ("a driver that crashes", whole().probed("gpu:0", died)),
        (
            "a driver that fails",
            whole().probed("gpu:0", refused("cuInit failed: CUDA_ERROR_SYSTEM_NOT_READY")),
        ),
        (
            "an old driver",
            whole().probed("gpu:0", machine("NVIDIA A100", "sm_80", &[("CUDA driver", "12.4")])),
        ),
        (
            "a second GPU that is lost",
            whole().says(GPUS, Said::This(Box::leak(CARD.repeat(2).into_boxed_str()))),
        ),
        ("nvidia-smi hangs", whole().says(GPUS, Said::Hangs)),
        (
            "nvidia-smi fails",
            whole().says(GPUS, Said::Fails("Failed to initialize NVML: Driver/library version mismatch")),
        ),
        ("broken memory", whole().says(GPUS, card(", 0, 700.00", ", 3, 700.00"))),
        ("nobody may compute", whole().says(GPUS, card("Default", "Prohibited"))),
        (
            "others compute",
            whole().says(USERS, Said::This("GPU-1, 4711, python3, 2048\nGPU-2, 1, other, 1\n")),
        ),
        ("somebody unseen", whole().says(GPUS, card("81559, 4,", "81559, 70000,"))),
        ("a hot card", whole().says(GPUS, card("0x0000000000000001, 31", "0x0000000000000044, 91"))),
        ("less power", whole().says(GPUS, card("700.00, 700.00", "400.00, 700.00"))),
        ("a part of a card", whole().says(GPUS, card("Disabled", "Enabled"))),
    ]
}

fn of_libraries_and_folders() -> Cases {
    let whole = Fake::whole;
    let full = "Filesystem 1024-blocks Used Available Capacity Mounted on\nx 9 9 0 100% /\n";
    let near = "Filesystem 1024-blocks Used Available Capacity Mounted on\nx 9 9 40000 99% /\n";
    vec![
        ("no nvrtc", whole().probed("nvrtc", missing("NVRTC"))),
        (
            "no builtins",
            whole().probed("nvrtc", nvrtc((13, 0), &[80], Some("failed to open libnvrtc-builtins.so.13.0"))),
        ),
        ("nvrtc that is broken", whole().probed("nvrtc", nvrtc((13, 0), &[80], Some("out of memory")))),
        ("nvrtc of another time", whole().probed("nvrtc", nvrtc((9, 0), &[30, 75], None))),
        ("no cublas", whole().probed("cublas", missing("cuBLAS"))),
        ("half of cublas", whole().says("ls /lib", Said::This("libcublas.so.13\n"))),
        ("no disassembler", whole().probed("disassembler", missing("a disassembler for GPUs"))),
        ("a disassembler that does not run", whole().says("/bin/nvdisasm", Said::Fails(""))),
        ("no home", whole().with(|it| it.home = false)),
        (
            "a home that is read only",
            whole().with(|it| it.read_only.push("/home/user/.local/state/tilewright")),
        ),
        ("no temporary folder", whole().with(|it| it.read_only.push("/tmp"))),
        ("a full disk", whole().says("df", Said::This(full))),
        ("a disk that is nearly full", whole().says("df", Said::This(near))),
        ("a folder of somebody else", whole().with(|it| it.read_only.push("."))),
    ]
}

#[test]
fn every_warning_and_failure() {
    let mut out = String::new();
    for (title, fake) in [of_the_host(), of_gpus(), of_libraries_and_folders()].concat() {
        let bad: Vec<Check> = fake.checks().into_iter().filter(|it| it.state > State::Ok).collect();
        assert!(!bad.is_empty(), "{title}");
        assert!(bad.iter().all(|it| it.fix.is_some()), "{title}");
        writeln!(out, "# {title}\n{}", told(&bad)).unwrap();
    }
    insta::assert_snapshot!(out);
}

#[test]
fn what_the_system_does_not_tell_is_skipped() {
    let blind = Fake::whole().with(|it| it.files.clear());
    let skipped: Vec<_> =
        blind.checks().into_iter().filter(|it| it.state == State::Skip).map(|it| it.name).collect();
    assert_eq!(skipped, ["cpu-governor", "load", "memory"]);
}

#[test]
fn control_characters_of_others_are_not_passed_on() {
    let fake = Fake::whole().says(USERS, Said::This("GPU-1, 1, evil\u{1b}[2J, 5\n"));
    let told = told(&fake.checks());
    assert!(told.contains("evil\\u{1b}[2J") && !told.contains('\u{1b}'), "{told}");
}
