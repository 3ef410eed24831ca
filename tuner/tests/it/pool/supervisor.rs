//! Workers that hand jobs to processes of their own.

use std::time::Duration;

use tilewright_tuner::{
    log::Happening,
    pool::{Pool, PoolEvent, Role},
};

use super::fake::{Heard, pool_of, run, screen, spec, until};

const LONG: Duration = Duration::from_secs(20);

/// What its scripts begin with: `hello`, `news CAPACITY`, and `answer ID DEVICE STICKY`.
const SUPERVISOR: &str = r#"
hello() { say '{"k":"hello","proto":1,"tool":"fake","capacity":1,"machine":'"$machine"',"supervisor":true}'; }
news() { say '{"k":"news","what":"worker_started","detail":"one more","capacity":'"$1"',"device":{"name":"a","machine":'"$machine"'}}'; }
answer() { say '{"k":"answer","id":'"$1"',"ms":1,"device":"'"$2"'","outcome":{"Err":{"stage":"run","kind":"hang","message":"m","sticky":'"$3"'}}}'; }
"#;

fn pool(state: &std::path::Path, script: &str) -> Pool {
    pool_of(spec("s", Role::Measure, state, &format!("{SUPERVISOR}\n{script}"))).unwrap()
}

#[test]
fn its_own_processes_are_its_own_business() {
    let state = tempfile::tempdir().unwrap();
    let mut pool = pool(state.path(), "hello; while job; do answer $id host-1 true; done");
    for _ in 0..5 {
        let job = pool.submit(Role::Measure, screen(), LONG);
        let device = loop {
            match pool.wait(LONG).unwrap() {
                PoolEvent::Done { job: done, device, outcome, .. } => {
                    assert!(done == job && outcome.is_err());
                    break device;
                }
                other @ (PoolEvent::Happened { .. } | PoolEvent::Dead { .. }) => {
                    assert!(
                        matches!(&other, PoolEvent::Happened { what, .. } if *what == Happening::WorkerStarted),
                        "{other:?}"
                    );
                }
            }
        };
        // Where a process had to be replaced, the supervisor was not.
        assert_eq!(device.as_deref(), Some("host-1"));
    }
}

#[test]
fn it_takes_more_and_fewer_jobs_as_it_says() {
    let state = tempfile::tempdir().unwrap();
    let mut pool = pool(state.path(), "hello; news 3; job; news 0; answer $id a false; job; exit 0");
    let mut heard = Heard::default();
    until(&mut pool, &mut heard, |it| it.happened.len() == 2);
    assert_eq!((pool.size(Role::Measure), pool.idle(Role::Measure)), (3, 3));
    let job = pool.submit(Role::Measure, screen(), LONG);
    until(&mut pool, &mut heard, |it| it.done.contains_key(&job));
    assert_eq!((pool.size(Role::Measure), pool.idle(Role::Measure)), (0, 0));
}

#[test]
fn one_that_dies_when_it_takes_no_jobs_gets_the_next_one() {
    let state = tempfile::tempdir().unwrap();
    let script = "hello; first a && { news 2; job; news 0; answer $id a false; exit 1; }; while job; do answer $id b false; done";
    let mut pool = pool(state.path(), script);
    let mut heard = Heard::default();
    let job = pool.submit(Role::Measure, screen(), LONG);
    until(&mut pool, &mut heard, |it| it.done.contains_key(&job) && it.count(Happening::WorkerReplaced) == 1);
    assert_eq!((pool.size(Role::Measure), pool.idle(Role::Measure)), (1, 1));
    let next = pool.submit(Role::Measure, screen(), LONG);
    until(&mut pool, &mut heard, |it| it.done.contains_key(&next));
}

#[test]
fn errors_that_cost_its_processes_do_not_show_that_it_works() {
    let state = tempfile::tempdir().unwrap();
    let mut pool = pool(state.path(), "hello; job; answer $id a true; exit 1");
    let mut heard = Heard::default();
    for failures in 1..=3 {
        let job = pool.submit(Role::Measure, screen(), LONG);
        let failed =
            |it: &Heard| it.count(Happening::WorkerReplaced) + it.count(Happening::WorkerQuarantined);
        until(&mut pool, &mut heard, |it| it.done.contains_key(&job) && failed(it) == failures);
    }
    until(&mut pool, &mut heard, |it| it.dead == [Role::Measure]);
}

#[test]
fn its_jobs_are_given_once_more() {
    let state = tempfile::tempdir().unwrap();
    let script = "hello; first a && { job; kill -9 $$; }; first b && { job; answer $id a false; }; while job; do kill -9 $$; done";
    let mut pool = pool(state.path(), script);
    let heard = run(&mut pool, Role::Measure, &screen(), 2, LONG);
    assert_eq!([heard.word(0), heard.word(1)], ["hang", "worker_died"], "{:?}", heard.happened);
    assert_eq!(heard.count(Happening::WorkerReplaced), 3, "{:?}", heard.happened);
}

#[test]
fn jobs_that_wait_for_it_end_with_it() {
    let state = tempfile::tempdir().unwrap();
    let mut pool = pool(state.path(), "hello; news 2; job; exit 1");
    let mut heard = Heard::default();
    until(&mut pool, &mut heard, |it| it.happened.len() == 2);
    let jobs = [(); 2].map(|()| pool.submit(Role::Measure, screen(), LONG));
    until(&mut pool, &mut heard, |it| jobs.iter().all(|job| it.done.contains_key(job)));
    assert_eq!(jobs.map(|job| heard.word(job)), ["worker_died"; 2]);
}

/// What is said in the first process, once it has a job, and why that ends it.
fn refused_news(script: &str, words: &str) {
    let state = tempfile::tempdir().unwrap();
    let text = format!("{SUPERVISOR}\n{script}; serve");
    let mut pool = pool_of(spec("s", Role::Measure, state.path(), &text)).unwrap();
    pool.submit(Role::Measure, screen(), LONG);
    let mut heard = Heard::default();
    until(&mut pool, &mut heard, |it| it.count(Happening::WorkerReplaced) == 1);
    assert!(heard.happened.iter().any(|it| it.1.contains(words)), "{:?}", heard.happened);
}

#[test]
fn news_come_from_supervisors_alone_and_their_devices_are_alike() {
    let other = "hello; job; machine=$(say \"$machine\" | sed s/fake/other/); news 2";
    refused_news(other, "measures on other (cpu, 1 units), the others on fake");
    let plain = "hello | sed s/true/false/; job; news 2";
    refused_news(plain, "it has no processes to tell of");
}
