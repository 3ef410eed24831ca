//! The life of pools: starts that fail, workers that are given up, and what is left behind.

use std::{fs, path::Path, time::Duration};

use tilewright_tuner::{
    log::Happening,
    pool::{Deadlines, Pool, PoolError, Role, WorkerSpec},
};

use super::fake::{Heard, compile, deadlines, pool_of, run, screen, spec, until};

const LONG: Duration = Duration::from_secs(20);

fn failure(pool: Result<Pool, PoolError>) -> String {
    pool.err().unwrap().to_string()
}

#[test]
fn a_pool_of_nothing() {
    assert_eq!(failure(Pool::start(vec![], deadlines())), "there are no workers to start");
}

#[test]
fn starts_that_fail_are_told_precisely() {
    let start = |argv: &[&str], role| {
        let argv = argv.iter().map(|it| (*it).to_owned()).collect();
        failure(pool_of(WorkerSpec { name: "w".into(), argv, role }))
    };
    let said = [
        start(&["tilewright-no-such-program", "worker"], Role::Compile),
        start(&["/dev/null"], Role::Compile),
        start(&[], Role::Compile),
        start(&["sh", "-c", "tilewright-no-such-program worker"], Role::Measure),
        start(&["sh", "-c", "echo Welcome; sleep 60"], Role::Measure),
        start(&["sh", "-c", "echo no licence >&2; exit 1"], Role::Measure),
        start(&["sh", "-c", "exec >&-; sleep 60"], Role::Measure),
    ];
    // What a shell says of a command that is not there differs from shell to shell.
    let text = said.map(|it| it.split("; its last words: sh: ").next().unwrap().to_owned()).join("\n");
    insta::assert_snapshot!(text);
}

#[test]
fn a_start_that_takes_too_long() {
    let state = tempfile::tempdir().unwrap();
    let deadlines = Deadlines { hello: Duration::from_millis(200), ..deadlines() };
    let pool = Pool::start(vec![spec("w", Role::Compile, state.path(), "sleep 60")], deadlines);
    assert_eq!(failure(pool), "no worker that compiles came up: worker `w` did not say hello within 0.2 s");
}

#[test]
fn a_worker_without_a_machine_cannot_measure() {
    let state = tempfile::tempdir().unwrap();
    let script =
        r#"say '{"k":"hello","proto":1,"tool":"x","capacity":1,"problem":"libcuda was not found"}'; serve"#;
    let pool = pool_of(spec("gpu-0", Role::Measure, state.path(), script));
    assert_eq!(
        failure(pool),
        "no worker that measures came up: worker `gpu-0` cannot measure: libcuda was not found"
    );
    let mut pool = pool_of(spec("w", Role::Compile, state.path(), script)).unwrap();
    assert_eq!(run(&mut pool, Role::Compile, &compile(), 1, LONG).word(0), "ok");
    assert_eq!(pool.machine(), None);
}

#[test]
fn one_worker_of_two_is_enough() {
    let state = tempfile::tempdir().unwrap();
    let bad = WorkerSpec { name: "bad".into(), argv: vec!["no-such-program".into()], role: Role::Compile };
    let good = spec("good", Role::Compile, state.path(), "hello; serve");
    let mut pool = Pool::start(vec![bad, good], deadlines()).unwrap();
    let heard = run(&mut pool, Role::Compile, &compile(), 5, LONG);
    assert!((0..5).all(|it| heard.word(it) == "ok"), "{:?}", heard.done);
    assert_eq!(heard.count(Happening::WorkerReplaced), 1, "{:?}", heard.happened);
}

#[test]
fn three_failures_in_a_row_end_a_worker() {
    let state = tempfile::tempdir().unwrap();
    let bad = spec("bad", Role::Compile, state.path(), "hello; job; exit 1");
    let mut pool = pool_of(bad).unwrap();
    let first = pool.submit(Role::Compile, compile(), LONG);
    for _ in 0..5 {
        pool.submit(Role::Compile, compile(), LONG);
    }
    assert_eq!(pool.outstanding(), 6);
    let mut heard = Heard::default();
    until(&mut pool, &mut heard, |it| it.done.len() == 6 && !it.dead.is_empty());
    assert!((first..6).all(|it| heard.word(it) == "worker_died"));
    assert!(heard.message(2).contains("ended with code 1"), "{}", heard.message(2));
    assert_eq!(heard.message(3), "no worker that compiles is left");
    assert_eq!(heard.count(Happening::WorkerReplaced), 2);
    assert_eq!(heard.count(Happening::WorkerQuarantined), 1);
    assert_eq!(heard.dead, [Role::Compile]);
    assert_eq!((pool.idle(Role::Compile), pool.outstanding()), (0, 0));
    // Jobs that come later fail as well, at once.
    let heard = run(&mut pool, Role::Compile, &compile(), 1, LONG);
    assert_eq!(heard.word(6), "worker_died");
    assert_eq!(heard.dead, []);
}

#[test]
fn a_success_between_failures_keeps_a_worker() {
    let state = tempfile::tempdir().unwrap();
    // Every process does one job and fails at the second.
    let script = spec("w", Role::Compile, state.path(), "hello; job; ok $id; job; exit 1");
    let mut pool = pool_of(script).unwrap();
    let heard = run(&mut pool, Role::Compile, &compile(), 12, LONG);
    let ok = (0..12).filter(|it| heard.word(*it) == "ok").count();
    assert_eq!((ok, heard.count(Happening::WorkerReplaced)), (6, 6), "{:?}", heard.happened);
}

#[test]
fn errors_that_need_a_new_process_are_no_failures_unless_the_device_is_gone() {
    let state = tempfile::tempdir().unwrap();
    let script = |kind: &str| format!("hello; job; err $id {kind} true; sleep 60");
    let mut pool = pool_of(spec("w", Role::Measure, state.path(), &script("trap"))).unwrap();
    let heard = run(&mut pool, Role::Measure, &screen(), 6, LONG);
    assert!((0..6).all(|it| heard.word(it) == "trap"), "{:?}", heard.done);
    assert_eq!(heard.count(Happening::WorkerQuarantined), 0);
    let mut pool = pool_of(spec("w", Role::Measure, state.path(), &script("device_lost"))).unwrap();
    let heard = run(&mut pool, Role::Measure, &screen(), 4, LONG);
    assert_eq!([0, 2, 3].map(|it| heard.word(it)), ["device_lost", "device_lost", "worker_died"]);
    assert_eq!(heard.dead, [Role::Measure]);
}

#[test]
fn a_worker_that_dies_between_jobs_is_replaced() {
    let state = tempfile::tempdir().unwrap();
    let script = "hello; job; ok $id; first a && exit 1; serve";
    let mut pool = pool_of(spec("w", Role::Compile, state.path(), script)).unwrap();
    let mut heard = run(&mut pool, Role::Compile, &compile(), 1, LONG);
    until(&mut pool, &mut heard, |it| it.count(Happening::WorkerReplaced) == 1);
    assert_eq!(pool.idle(Role::Compile), 1);
    pool.submit(Role::Compile, compile(), LONG);
    until(&mut pool, &mut heard, |it| it.done.len() == 2);
    assert_eq!([0, 1].map(|it| heard.word(it)), ["ok", "ok"]);
}

#[test]
fn two_answers_to_one_job_are_an_event() {
    let state = tempfile::tempdir().unwrap();
    let mut pool =
        pool_of(spec("w", Role::Compile, state.path(), "hello; job; ok $id; ok $id; serve")).unwrap();
    let mut heard = run(&mut pool, Role::Compile, &compile(), 1, LONG);
    until(&mut pool, &mut heard, |it| it.count(Happening::StrayAnswer) == 1);
}

#[test]
fn sixteen_workers_share_the_work() {
    let state = tempfile::tempdir().unwrap();
    // Some of them die now and then.
    let script = "hello; while job; do [ $((id % 23)) = 7 ] && kill -9 $$; ok $id; done";
    let workers = (0..16).map(|it| spec(&format!("compile-{it}"), Role::Compile, state.path(), script));
    let measure =
        spec("measure-0", Role::Measure, state.path(), "hello; while job; do err $id launch false; done");
    let mut pool = Pool::start(workers.chain([measure]).collect(), deadlines()).unwrap();
    assert_eq!((pool.idle(Role::Compile), pool.idle(Role::Measure)), (16, 1));
    for at in 0..400 {
        let (role, task) = if at % 10 == 9 { (Role::Measure, screen()) } else { (Role::Compile, compile()) };
        assert_eq!(pool.submit(role, task, LONG), at);
    }
    assert_eq!((pool.idle(Role::Compile), pool.outstanding()), (0, 400));
    let mut heard = Heard::default();
    until(&mut pool, &mut heard, |it| it.done.len() == 400);
    for at in 0..400 {
        let expected = match at {
            _ if at % 10 == 9 => "launch",
            _ if at % 23 == 7 => "worker_died",
            _ => "ok",
        };
        assert_eq!(heard.word(at), expected, "{at}");
    }
    assert_eq!(heard.dead, []);
}

#[test]
fn a_worker_may_take_several_jobs_at_a_time() {
    let state = tempfile::tempdir().unwrap();
    let script = r#"say '{"k":"hello","proto":1,"tool":"bridge","capacity":3}'
        job; a=$id; job; b=$id; job; ok $id; ok $b; ok $a; job; sleep 60"#;
    let mut pool = pool_of(spec("w", Role::Compile, state.path(), script)).unwrap();
    assert_eq!(pool.idle(Role::Compile), 3);
    for _ in 0..3 {
        pool.submit(Role::Compile, compile(), LONG);
    }
    let mut heard = Heard::default();
    until(&mut pool, &mut heard, |it| it.done.len() == 3);
    pool.submit(Role::Compile, compile(), Duration::from_millis(300));
    pool.submit(Role::Compile, compile(), LONG);
    until(&mut pool, &mut heard, |it| it.done.len() == 5);
    let words = [0, 1, 2, 3, 4].map(|it| heard.word(it));
    assert_eq!(words, ["ok", "ok", "ok", "compile_timeout", "worker_died"]);
    assert!(heard.message(4).contains("because of another of its jobs"), "{}", heard.message(4));
}

/// The processes whose command line has a word in it.
fn processes_with(word: &str) -> usize {
    let entries = fs::read_dir("/proc").unwrap().map_while(Result::ok);
    entries
        .filter(|it| {
            fs::read(it.path().join("cmdline")).is_ok_and(|it| String::from_utf8_lossy(&it).contains(word))
        })
        .count()
}

/// A script whose processes, two each, can be found by the folder's name.
fn with_a_child(state: &Path) -> String {
    format!("sh -c 'sleep 1000; : {}' & hello; job; sleep 1000", state.display())
}

#[test]
fn nothing_is_left_of_a_pool() {
    let state = tempfile::tempdir().unwrap();
    let word = state.path().display().to_string();
    let workers =
        (0..4).map(|it| spec(&format!("w{it}"), Role::Compile, state.path(), &with_a_child(state.path())));
    let mut pool = Pool::start(workers.collect(), deadlines()).unwrap();
    for _ in 0..4 {
        pool.submit(Role::Compile, compile(), LONG);
    }
    assert!(pool.wait(Duration::from_millis(50)).is_some());
    assert!(processes_with(&word) >= 4);
    drop(pool);
    // The children of the workers were killed too; who is not ours to wait for may take a moment to be gone.
    let gone = (0..1000).any(|_| {
        std::thread::yield_now();
        processes_with(&word) == 0
    });
    assert!(gone);
}

/// The processor time that this thread has had.
fn thread_time() -> Duration {
    let it = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(it.tv_sec.try_into().unwrap(), it.tv_nsec.try_into().unwrap())
}

/// What waits uses a processor that somebody measures on.
#[test]
fn waiting_for_a_start_takes_no_processor() {
    let state = tempfile::tempdir().unwrap();
    let deadlines = Deadlines { hello: Duration::from_secs(2), ..deadlines() };
    // The event that the first has come up is there all the time that the second does not.
    let ready = spec("ready", Role::Compile, state.path(), "hello; serve");
    let silent = spec("silent", Role::Measure, state.path(), "sleep 60");
    let before = thread_time();
    let pool = Pool::start(vec![ready, silent], deadlines);
    let took = thread_time().saturating_sub(before);
    assert_eq!(
        failure(pool),
        "no worker that measures came up: worker `silent` did not say hello within 2.0 s"
    );
    // Two starts and a look five times a second are a few milliseconds.
    assert!(took < Duration::from_millis(200), "{took:?} of processor time");
}

/// Starts more workers than there is room for. Run by the test below in a process of its own.
#[test]
fn crowded_child() {
    let Some(state) = std::env::var_os("TILEWRIGHT_TEST_CROWDED").map(std::path::PathBuf::from) else {
        return;
    };
    let measure = spec("measure", Role::Measure, &state, "hello; serve");
    let crowd = (0..100).map(|it| spec(&format!("c{it}"), Role::Compile, &state, "hello; serve"));
    let mut pool = Pool::start([measure].into_iter().chain(crowd).collect(), deadlines()).unwrap();
    let heard = run(&mut pool, Role::Compile, &compile(), 3, LONG);
    assert!((0..3).all(|it| heard.word(it) == "ok"), "{:?}", heard.done);
    let warnings: Vec<_> = heard.happened.iter().filter(|it| it.0 == Happening::Warning).collect();
    let [(_, words)] = &*warnings else { panic!("{:?}", heard.happened) };
    let left = pool.size(Role::Compile);
    assert!(
        words.starts_with(&format!("of 100 workers to compile {left} were started: there is no room")),
        "{words}"
    );
    assert!((1..100).contains(&left), "{left}");
    // There is room for what this process does besides.
    fs::write(state.join("done"), "").unwrap();
    // Where there is room for no worker at all, that is said.
    let files: Vec<_> = (0..).map_while(|_| fs::File::open("/dev/null").ok()).collect();
    let err = failure(pool_of(spec("w", Role::Compile, &state, "hello; serve")));
    drop(files);
    assert!(err.contains("cannot be started"), "{err}");
}

#[test]
fn where_there_is_no_room_fewer_workers_do() {
    let state = tempfile::tempdir().unwrap();
    let out = std::process::Command::new("sh")
        .args(["-c", "ulimit -n 100; exec \"$0\" --exact pool::life::crowded_child --nocapture"])
        .arg(std::env::current_exe().unwrap())
        .env("TILEWRIGHT_TEST_CROWDED", state.path())
        .output()
        .unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    assert!(state.path().join("done").exists());
}
