//! Real faults in real workers: programs that crash, hang and lie on this machine's processor, and workers that panic
//! or lose their parent. This program is its own worker, so it has no test harness.

#![expect(clippy::unwrap_used, reason = "a test may stop")]

#[path = "../../examples/faulty_worker/handler.rs"]
mod handler;

use std::{
    env, fs,
    io::{Write, stderr},
    path::Path,
    process::{Command, Stdio, exit},
    time::{Duration, Instant},
};

use ir::Target;
use tilewright_tuner::{
    build::{Problem, generate},
    log::{Stage, TrialError},
    pool::{Deadlines, Pool, PoolEvent, Role, WorkerSpec},
    protocol::{Binary, Outcome, ProblemText, Screen, Task},
    sha256,
};

const LONG: Duration = Duration::from_mins(1);

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["worker", ..] => {
            if let Err(words) = handler::run(&arguments[1..]) {
                let _ = writeln!(stderr(), "{words}");
                exit(2);
            }
        }
        ["parent", folder] => parent(Path::new(folder)),
        ["--list", ..] => {}
        _ => {
            compilations();
            screens();
            a_killed_parent_leaves_nothing_behind();
        }
    }
}

fn worker(name: &str, role: Role, arguments: &[&str]) -> WorkerSpec {
    let program = env::current_exe().unwrap().display().to_string();
    let argv = [&program, "worker"].into_iter().chain(arguments.iter().copied()).map(str::to_owned).collect();
    WorkerSpec { name: name.to_owned(), argv, role }
}

const PROGRAM: &str = "func matmul(m)
  in A: f32[m, 28]
  in B: f32[28, 20]
  out C: f32[m, 20]

  for i in 0..m
    for j in 0..20
      for k in 0..28
        block C(vi: m = i, vj: 20 = j, vk: reduce 28 = k)
          init
            C[vi, vj] = 0.0f32
          C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
";

fn problem() -> Problem {
    let func = ir::text::parse(PROGRAM).unwrap();
    Problem::new(func, [(ir::Name::new("m"), 24)].into(), 7, Target::Cpu).unwrap()
}

fn compile_task(problem: &Problem) -> Task {
    let source_sha256 = sha256(generate(problem, &[]).unwrap().source);
    Task::Compile { problem: ProblemText::of(problem), steps: vec![], source_sha256 }
}

fn answer(pool: &mut Pool, role: Role, task: Task, deadline: Duration) -> Result<Outcome, TrialError> {
    let wanted = pool.submit(role, task, deadline);
    let begin = Instant::now();
    loop {
        assert!(begin.elapsed() < LONG, "no answer");
        if let Some(PoolEvent::Done { job, outcome, .. }) = pool.wait(Duration::from_millis(100)) {
            assert_eq!(job, wanted);
            return outcome;
        }
    }
}

fn program(outcome: Result<Outcome, TrialError>) -> Binary {
    let Ok(Outcome::Program { program, sha256: sha, .. }) = outcome else { panic!("{outcome:?}") };
    assert_eq!(sha, sha256(&program.program().unwrap().binary));
    program
}

/// Compiles for real, and refuses what is not as the job says.
fn compilations() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state").display().to_string();
    let spec = worker("compile-0", Role::Compile, &["--compile-only", "--state", &state]);
    let mut pool = Pool::start(vec![spec], Deadlines::default()).unwrap();
    assert_eq!(pool.machine(), None);
    let problem = problem();
    let good = compile_task(&problem);
    let made = program(answer(&mut pool, Role::Compile, good.clone(), LONG));
    let again = program(answer(&mut pool, Role::Compile, good.clone(), LONG));
    assert_eq!(made.launches, again.launches);
    let with = |change: &dyn Fn(&mut ProblemText, &mut Vec<schedule::Step>, &mut String)| {
        let Task::Compile { mut problem, mut steps, mut source_sha256 } = good.clone() else { panic!() };
        change(&mut problem, &mut steps, &mut source_sha256);
        Task::Compile { problem, steps, source_sha256 }
    };
    let split: Vec<schedule::Step> =
        serde_json::from_str(r#"[{"split": {"loop": "nowhere", "into": {"a": null, "b": 2}}}]"#).unwrap();
    let how = Screen { best: None, deadline: 5.0, threads: 1 };
    let screen = Task::Screen { problem: ProblemText::of(&problem), program: made, how };
    let bad = [
        (with(&|_, _, sha| sha.clear()), "internal: the steps give another source here"),
        (with(&|problem, _, _| problem.program.push('}')), "protocol: the program of the job cannot be read"),
        (with(&|problem, _, _| problem.target = "tpu".into()), "protocol: there is no target `tpu`"),
        (with(&|problem, _, _| problem.dims.clear()), "protocol: the workload cannot be measured: dimension"),
        (
            with(&|_, steps, _| steps.clone_from(&split)),
            "schedule: step 1, split: there is no loop `nowhere`",
        ),
        (screen, "protocol: this worker only compiles"),
    ];
    for (task, words) in bad {
        let error = answer(&mut pool, Role::Compile, task, LONG).unwrap_err();
        assert!(error.to_string().starts_with(words) && !error.sticky, "{error:?}");
    }
    // It is still the first process, and still good.
    program(answer(&mut pool, Role::Compile, good, LONG));
}

/// Each fault costs one screen.
fn screens() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state").display().to_string();
    let mut arguments = vec!["--device", "cpu", "--state", &state];
    let table = [
        ("oob@2", "worker_died", "SIGSEGV"),
        ("loop@4", "hang", "did not answer within"),
        ("trap@6", "worker_died", "SIGABRT"),
        ("wrong@8", "wrong_result", "differ"),
        ("nothing@10", "nan", "never written"),
        ("panic@12", "internal", "tilewright panicked: this is what was asked for"),
        ("exit@14", "worker_died", "ended with code 3"),
    ];
    arguments.extend(table.iter().flat_map(|it| ["--fault", it.0]));
    let spec = worker("measure-0", Role::Measure, &arguments);
    let mut pool = Pool::start(vec![spec], Deadlines::default()).unwrap();
    assert_eq!(pool.machine().unwrap().arch, "cpu");
    let problem = problem();
    let made = program(answer(&mut pool, Role::Measure, compile_task(&problem), LONG));
    let how = Screen { best: None, deadline: 5.0, threads: 1 };
    let task = Task::Screen { problem: ProblemText::of(&problem), program: made, how };
    for (fault, kind, words) in table {
        let fine = answer(&mut pool, Role::Measure, task.clone(), LONG);
        let Ok(Outcome::Measured(fine)) = fine else { panic!("before {fault}: {fine:?}") };
        assert!(fine.before.is_ok() && fine.after.is_ok() && fine.gflops > 0.0);
        let deadline = if fault.starts_with("loop") { Duration::from_secs(2) } else { LONG };
        let error = answer(&mut pool, Role::Measure, task.clone(), deadline).unwrap_err();
        assert_eq!(error.kind.as_str(), kind, "{fault}: {error:?}");
        assert!(error.message.contains(words), "{fault}: {error:?}");
        let is_wrong = error.stage == Stage::Verify;
        assert_eq!(error.sticky, !is_wrong, "{fault}");
    }
    let fine = answer(&mut pool, Role::Measure, task, LONG);
    assert!(matches!(fine, Ok(Outcome::Measured(_))), "{fine:?}");
}

/// A parent whose workers are busy for ever: a compiler that does not end, and a program that does not.
fn parent(folder: &Path) {
    let state = folder.join("state").display().to_string();
    let compile = worker("compile-0", Role::Compile, &["--compile-only", "--state", &state]);
    let loops = ["--device", "cpu", "--state", &state, "--fault", "loop@1"];
    let measure = worker("measure-0", Role::Measure, &loops);
    let mut pool = Pool::start(vec![compile, measure], Deadlines::default()).unwrap();
    let problem = problem();
    pool.submit(Role::Compile, compile_task(&problem), LONG);
    let made = Binary { base64: String::new(), launches: vec![], buffers: vec![], zeroed: vec![] };
    let how = Screen { best: None, deadline: 60.0, threads: 1 };
    pool.submit(Role::Measure, Task::Screen { problem: ProblemText::of(&problem), program: made, how }, LONG);
    loop {
        let event = pool.wait(LONG);
        assert!(matches!(event, Some(PoolEvent::Happened { .. })), "{event:?}");
    }
}

fn a_killed_parent_leaves_nothing_behind() {
    if !cfg!(target_os = "linux") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let name = folder.path().display().to_string();
    // A compiler that does not end for a real program.
    let script = "for it; do [ \"$it\" = --version ] && { echo fake; exit; }; done
grep -q matmul kernel.c || exec cc \"$@\"
touch \"$(dirname \"$0\")/compiling\"; sleep 1000 & wait";
    fs::write(folder.path().join("cc.sh"), script).unwrap();
    let mut parent = Command::new(env::current_exe().unwrap())
        .args(["parent", &name])
        .env("CC", format!("sh {name}/cc.sh"))
        .env("TILEWRIGHT_TEST_FOLDER", &name)
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let begin = Instant::now();
    let patient = || {
        assert!(begin.elapsed() < LONG, "still there: {:?}", processes_of(&name));
        std::thread::yield_now();
        true
    };
    // Both workers are at work, for the screen has been counted and its program is there: parent, two workers, the
    // compiler's shell and its sleep.
    let busy = || folder.path().join("compiling").exists() && folder.path().join("state").exists();
    while !(busy() && processes_of(&name).len() >= 5) && patient() {}
    parent.kill().unwrap();
    parent.wait().unwrap();
    while !processes_of(&name).is_empty() && patient() {}
}

/// The processes that have inherited the folder, without those that are only waited for.
fn processes_of(folder: &str) -> Vec<String> {
    let entries = fs::read_dir("/proc").unwrap().map_while(Result::ok);
    let ours = entries.filter(|it| {
        fs::read(it.path().join("environ")).is_ok_and(|it| {
            String::from_utf8_lossy(&it).contains(&format!("TILEWRIGHT_TEST_FOLDER={folder}"))
        })
    });
    ours.map(|it| fs::read_to_string(it.path().join("comm")).unwrap_or_default()).collect()
}
