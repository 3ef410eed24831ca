//! Fake workers.

use std::time::{Duration, Instant};

use indexmap::IndexMap;
use tilewright_tuner::{
    log::{Happening, TrialError},
    pool::{Deadlines, Pool, PoolError, PoolEvent, Role, WorkerSpec},
    protocol::{Binary, Outcome, ProblemText, Screen, Task},
};

/// What every script begins with. `hello`, `job` (reads one and sets `id`), `ok ID` and `err ID KIND STICKY` (answer).
const PRELUDE: &str = r#"
say() { printf '%s\n' "$1"; }
machine='{"name":"fake","arch":"cpu","units":1,"peak_f32_gflops":null,"peak_gb_per_s":null,"cache_bytes":1,"versions":[]}'
hello() { say '{"k":"hello","proto":1,"tool":"fake","capacity":1,"machine":'"$machine"'}'; }
job() { read -r line || exit 0; id=${line#*'"id":'}; id=${id%%,*}; }
program='{"made":"program","program":{"base64":"","launches":[],"buffers":[]},"sha256":"","resources":[]}'
stats='{"median":1.0,"best":1.0,"mean":1.0,"low":1.0,"high":1.0}'
ok() { say '{"k":"answer","id":'"$1"',"ms":1.5,"outcome":{"Ok":'"$program"'}}'; }
err() { say '{"k":"answer","id":'"$1"',"ms":1.5,"outcome":{"Err":{"stage":"run","kind":"'"$2"'","message":"m","sticky":'"$3"'}}}'; }
serve() { while job; do ok "$id"; done; }
# Does something in the first process only: `first` is true once for a folder.
first() { mkdir "$STATE/$1" 2>/dev/null; }
"#;

/// A worker that is a script. `$STATE` is a folder that its processes share.
pub(crate) fn spec(name: &str, role: Role, state: &std::path::Path, script: &str) -> WorkerSpec {
    let text = format!("STATE='{}'\n{PRELUDE}\n{script}", state.display());
    let argv = ["sh", "-c", &text].map(str::to_owned).to_vec();
    WorkerSpec { name: name.to_owned(), argv, role }
}

/// Short, but long enough for a busy machine.
pub(crate) fn deadlines() -> Deadlines {
    Deadlines { hello: Duration::from_secs(20), grace: Duration::from_millis(300), ..Deadlines::default() }
}

fn problem() -> ProblemText {
    ProblemText { program: "none".into(), dims: IndexMap::new(), seed: 1, target: "cpu".into() }
}

pub(crate) fn compile() -> Task {
    Task::Compile { problem: problem(), steps: vec![], source_sha256: String::new() }
}

pub(crate) fn screen() -> Task {
    let program = Binary { base64: String::new(), launches: vec![], buffers: vec![], zeroed: vec![] };
    let how = Screen { best: None, deadline: 1.0, threads: 0 };
    Task::Screen { problem: problem(), program, how }
}

/// What a pool said.
#[derive(Default)]
pub(crate) struct Heard {
    pub(crate) done: IndexMap<u64, Result<Outcome, TrialError>>,
    pub(crate) happened: Vec<(Happening, String)>,
    pub(crate) dead: Vec<Role>,
}

impl Heard {
    /// The words of a job: `ok`, or the kind of its error.
    pub(crate) fn word(&self, job: u64) -> &'static str {
        self.done.get(&job).map_or("none", |it| match it {
            Ok(_) => "ok",
            Err(err) => err.kind.as_str(),
        })
    }

    pub(crate) fn message(&self, job: u64) -> String {
        self.done[&job].as_ref().err().map(|it| it.message.clone()).unwrap_or_default()
    }

    pub(crate) fn count(&self, what: Happening) -> usize {
        self.happened.iter().filter(|it| it.0 == what).count()
    }

    pub(crate) fn take(&mut self, event: PoolEvent) {
        match event {
            PoolEvent::Done { job, outcome, .. } => {
                assert!(self.done.insert(job, outcome).is_none(), "job {job} is done twice");
            }
            PoolEvent::Happened { what, detail, device: _ } => self.happened.push((what, detail)),
            PoolEvent::Dead { role } => self.dead.push(role),
        }
    }
}

/// Starts a pool of one worker.
pub(crate) fn pool_of(spec: WorkerSpec) -> Result<Pool, PoolError> {
    Pool::start(vec![spec], deadlines())
}

/// Does jobs one after the other, and listens until each is done.
pub(crate) fn run(pool: &mut Pool, role: Role, task: &Task, jobs: usize, deadline: Duration) -> Heard {
    let mut heard = Heard::default();
    for _ in 0..jobs {
        let job = pool.submit(role, task.clone(), deadline);
        until(pool, &mut heard, |it| it.done.contains_key(&job));
    }
    // What else there is to say about the last job.
    while let Some(event) = pool.wait(Duration::ZERO) {
        heard.take(event);
    }
    heard
}

/// Listens until something is true.
pub(crate) fn until(pool: &mut Pool, heard: &mut Heard, is_true: impl Fn(&Heard) -> bool) {
    let begin = Instant::now();
    while !is_true(heard) {
        assert!(begin.elapsed() < Duration::from_mins(1), "nothing happens; so far {:?}", heard.happened);
        if let Some(event) = pool.wait(Duration::from_millis(100)) {
            heard.take(event);
        }
    }
}
