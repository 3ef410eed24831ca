//! The table of faults: in which state of the protocol, what the worker does, and what becomes of it.

use std::time::Duration;

use tilewright_tuner::{log::Happening, pool::Role};

use super::fake::{compile, pool_of, run, screen, spec};

/// A worker that misbehaves with its first job, or in its first process.
struct Fault {
    what: &'static str,
    script: &'static str,
    role: Role,
    /// How long a job may take, in milliseconds.
    deadline: u64,
    /// What becomes of the first three jobs.
    jobs: [&'static str; 3],
    /// How many times it is replaced.
    replaced: usize,
    /// Part of what the first job that fails is told.
    message: &'static str,
}

const LONG: u64 = 20_000;

const fn fault(
    what: &'static str,
    script: &'static str,
    jobs: [&'static str; 3],
    replaced: usize,
    message: &'static str,
) -> Fault {
    Fault { what, script, role: Role::Compile, deadline: LONG, jobs, replaced, message }
}

impl Fault {
    const fn by(self, deadline: u64) -> Fault {
        Fault { deadline, ..self }
    }

    const fn measuring(self) -> Fault {
        Fault { role: Role::Measure, ..self }
    }
}

const DIED: [&str; 3] = ["worker_died", "ok", "ok"];
const PROTOCOL: [&str; 3] = ["protocol", "ok", "ok"];
const TRAP: [&str; 3] = ["trap", "ok", "ok"];
const FINE: [&str; 3] = ["ok", "ok", "ok"];

/// With its first job.
#[rustfmt::skip]
const WITH_A_JOB: &[Fault] = &[
    fault("crash: killed", "hello; job; first a && kill -9 $$; ok $id; serve", DIED, 1, "was killed by SIGKILL"),
    fault("crash: segmentation fault", "hello; job; first a && kill -11 $$; ok $id; serve", DIED, 1,
        "was killed by SIGSEGV (it touched memory that is not its own)"),
    fault("crash: abort with last words", "hello; job; first a && { echo terrible >&2; kill -6 $$; }; ok $id; serve",
        DIED, 1, "was killed by SIGABRT (it stopped itself); its last words: terrible"),
    fault("crash: illegal instruction", "hello; job; first a && kill -4 $$; ok $id; serve", DIED, 1, "SIGILL"),
    fault("crash: no memory", "hello; job; first a && { echo 'memory allocation of 9 bytes failed' >&2; kill -6 $$; }; ok $id; serve",
        ["out_of_memory", "ok", "ok"], 1, "memory allocation of 9 bytes failed"),
    fault("crash: processor time", "hello; job; first a && kill -24 $$; ok $id; serve",
        ["compile_timeout", "ok", "ok"], 1, "its processor time was used up"),
    fault("exit 0 without an answer", "hello; job; first a && exit 0; ok $id; serve", DIED, 1, "ended without an answer"),
    fault("exit 3 without an answer", "hello; job; first a && exit 3; ok $id; serve", DIED, 1, "ended with code 3"),
    fault("garbage", "hello; job; first a && { say 'Segmentation fault'; sleep 60; }; ok $id; serve", PROTOCOL, 1,
        "wrote a line that is no message"),
    fault("garbage: no text", r"hello; job; first a && { printf '\377\001\n'; sleep 60; }; ok $id; serve", PROTOCOL, 1,
        "\u{fffd}\\u{1}"),
    fault("garbage: an empty line", "hello; job; first a && { say ''; sleep 60; }; ok $id; serve", PROTOCOL, 1, "is no message"),
    fault("garbage: JSON of another kind", "hello; job; first a && { say '{\"k\":\"result\",\"id\":0}'; sleep 60; }; ok $id; serve",
        PROTOCOL, 1, "unknown variant"),
    fault("garbage: a field is missing", "hello; job; first a && { say '{\"k\":\"answer\",\"id\":0}'; sleep 60; }; ok $id; serve",
        PROTOCOL, 1, "missing field"),
    fault("garbage: deep", "hello; job; first a && { head -c 100000 /dev/zero | tr '\\0' '['; echo; sleep 60; }; ok $id; serve",
        PROTOCOL, 1, "wrote a line that is no message"),
    fault("half a line, then the end", "hello; job; first a && { printf '{\"k\":\"answ'; exit 0; }; ok $id; serve", PROTOCOL, 1,
        "ended in the middle of a line: `{\\\"k\\\":\\\"answ`"),
    fault("half a line, then killed", "hello; job; first a && { printf '{\"k\":\"answ'; kill -9 $$; }; ok $id; serve", PROTOCOL, 1,
        "in the middle of a line"),
    fault("half a line, then nothing", "hello; job; first a && { printf '{'; sleep 60; }; ok $id; serve",
        ["compile_timeout", "ok", "ok"], 1, "did not answer within 1.5 s").by(1500),
    fault("hang", "hello; job; first a && sleep 60; ok $id; serve", ["compile_timeout", "ok", "ok"], 1,
        "did not answer within 1.5 s").by(1500),
    fault("hang with a child", "hello; job; first a && { sleep 60 & sleep 60; }; ok $id; serve",
        ["compile_timeout", "ok", "ok"], 1, "did not answer").by(1500),
    fault("hang, deaf to signals", "trap '' TERM INT HUP; hello; job; first a && sleep 60; ok $id; serve",
        ["compile_timeout", "ok", "ok"], 1, "did not answer").by(1500),
    fault("stopped", "hello; job; first a && kill -STOP $$; ok $id; serve", ["compile_timeout", "ok", "ok"], 1,
        "did not answer").by(1500),
    fault("slow, but in time", "hello; job; first a && sleep 0.3; ok $id; serve", FINE, 0, ""),
    fault("a wrong number", "hello; job; first a && { ok 77; sleep 60; }; ok $id; serve", PROTOCOL, 1,
        "answered job 77, which it never had"),
    fault("the number of the next job", "hello; job; first a && { ok $((id + 1)); sleep 60; }; ok $id; serve", PROTOCOL, 1,
        "answered job 1"),
    fault("a negative number", "hello; job; first a && { ok -1; sleep 60; }; ok $id; serve", PROTOCOL, 1, "is no message"),
    fault("an answer twice", "hello; job; ok $id; ok $id; serve", FINE, 0, ""),
    fault("an answer without end", "hello; job; ok $id; first a && while ok $id; do :; done; serve",
        ["ok", "protocol", "ok"], 1, "answers without end"),
    fault("a line too long", "hello; job; first a && { head -c 17000000 /dev/zero; sleep 60; }; ok $id; serve", PROTOCOL, 1,
        "wrote a line of more than 16 MiB"),
    fault("a second hello", "hello; job; first a && { hello; sleep 60; }; ok $id; serve", PROTOCOL, 1, "said hello twice"),
    fault("closes its output and lives on", "hello; job; first a && { exec >&-; sleep 60; }; ok $id; serve", DIED, 1,
        "closed its standard output and lived on"),
    fault("dies while a child holds its output", "hello; job; first a && { sleep 60 & exit 5; }; ok $id; serve", DIED, 1,
        "ended with code 5"),
    fault("fills its standard error", "hello; job; first a && { head -c 3000000 /dev/zero | tr '\\0' x >&2; echo end >&2; exit 1; }; ok $id; serve",
        DIED, 1, "xxxend"),
    fault("fills its standard error and answers", "hello; job; first a && head -c 3000000 /dev/zero >&2; ok $id; serve", FINE, 0, ""),
    fault("an answer of another kind", "hello; job; first a && { ok $id; sleep 60; }; err $id launch false; job; err $id launch false; job; err $id trap false",
        ["protocol", "launch", "launch"], 1, "another kind than its job").measuring(),
    fault("hang on a device", "hello; job; first a && sleep 60; while :; do err $id launch false; job; done", ["hang", "launch", "launch"], 1,
        "did not answer").measuring().by(1500),
    fault("an error that needs a new process", "hello; job; first a && { err $id illegal_address true; sleep 60; }; while :; do err $id launch false; job; done",
        ["illegal_address", "launch", "launch"], 1, "m").measuring(),
    fault("an error that does not", "hello; while job; do err $id wrong_result false; done",
        ["wrong_result", "wrong_result", "wrong_result"], 0, "m").measuring(),
];

/// In its second process, before it has a job. The first ends with its first job.
#[rustfmt::skip]
const AT_A_RESTART: &[Fault] = &[
    fault("ends before the hello", "first a && { hello; job; err $id trap true; sleep 60; }; first b && exit 2; hello; serve", TRAP, 2, "m"),
    fault("is killed before the hello", "first a && { hello; job; err $id trap true; sleep 60; }; first b && kill -9 $$; hello; serve", TRAP, 2, "m"),
    fault("garbage before the hello", "first a && { hello; job; err $id trap true; sleep 60; }; first b && { say Welcome; sleep 60; }; hello; serve", TRAP, 2, "m"),
    fault("an answer before the hello", "first a && { hello; job; err $id trap true; sleep 60; }; first b && { ok 1; sleep 60; }; hello; serve", TRAP, 2, "m"),
    fault("another version", "first a && { hello; job; err $id trap true; sleep 60; }; first b && { say '{\"k\":\"hello\",\"proto\":2,\"tool\":\"x\",\"capacity\":1}'; sleep 60; }; hello; serve",
        TRAP, 2, "m"),
    fault("no capacity", "first a && { hello; job; err $id trap true; sleep 60; }; first b && { say '{\"k\":\"hello\",\"proto\":1,\"tool\":\"x\",\"capacity\":0}'; sleep 60; }; hello; serve",
        TRAP, 2, "m"),
    fault("half a hello", "first a && { hello; job; err $id trap true; sleep 60; }; first b && { printf '{\"k\":\"hel'; exit; }; hello; serve", TRAP, 2, "m"),
    fault("no machine any more", "first a && { hello; job; err $id trap true; sleep 60; }; first b && { say '{\"k\":\"hello\",\"proto\":1,\"tool\":\"x\",\"capacity\":1,\"problem\":\"it fell off the bus\"}'; sleep 60; }; hello; while job; do err $id launch false; done",
        ["trap", "launch", "launch"], 2, "m").measuring(),
    fault("another machine", "first a && { hello; job; err $id trap true; sleep 60; }; first b && { say '{\"k\":\"hello\",\"proto\":1,\"tool\":\"x\",\"capacity\":1,\"machine\":{\"name\":\"other\",\"arch\":\"cpu\",\"units\":1,\"cache_bytes\":1,\"versions\":[]}}'; sleep 60; }; hello; while job; do err $id launch false; done",
        ["trap", "launch", "launch"], 2, "m").measuring(),
];

#[test]
fn a_fault_costs_one_job() {
    let table: Vec<&Fault> = WITH_A_JOB.iter().chain(AT_A_RESTART).collect();
    assert!(table.len() >= 30);
    // Side by side, because most of them only wait.
    let wrong: Vec<String> = std::thread::scope(|scope| {
        let parts =
            table.chunks(8).map(|part| scope.spawn(|| part.iter().filter_map(|it| wrong(it)).collect()));
        let parts: Vec<_> = parts.collect();
        parts.into_iter().flat_map(|it| -> Vec<String> { it.join().unwrap() }).collect()
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What is not as the table has it.
fn wrong(fault: &Fault) -> Option<String> {
    let state = tempfile::tempdir().unwrap();
    let mut pool = pool_of(spec("w", fault.role, state.path(), fault.script)).unwrap();
    let task = match fault.role {
        Role::Compile => compile(),
        Role::Measure => screen(),
    };
    let heard = run(&mut pool, fault.role, &task, 3, Duration::from_millis(fault.deadline));
    let failed = [0, 1, 2].into_iter().find(|it| heard.word(*it) != "ok");
    let message = failed.map(|it| heard.message(it)).unwrap_or_default();
    let right = [0, 1, 2].map(|it| heard.word(it)) == fault.jobs
        && heard.count(Happening::WorkerReplaced) == fault.replaced
        && heard.count(Happening::WorkerQuarantined) == 0
        && heard.dead.is_empty()
        && message.contains(fault.message)
        && message.len() <= 2048
        && !message.contains('\x1b');
    (!right).then(|| format!("{}: {:?} {:?}", fault.what, heard.done, heard.happened))
}
