//! Looks for scripts that break tilewright: those that ship and those of the tests are mutated, read, scheduled, lowered and
//! printed, each within ten seconds. `cargo run -p tilewright --example fuzz -- --seconds 600 --seed 1`
//!
//! The development profile is the better one for it: there, arithmetic that overflows panics.

mod case;
mod fuzzer;
mod mutate;
mod rng;

use std::{
    env,
    io::{self, Write as _},
    path::Path,
    process::ExitCode,
    time::{Duration, Instant},
};

use fuzzer::{Fuzzer, Tally, corpus};

fn main() -> ExitCode {
    let words: Vec<String> = env::args().skip(1).collect();
    let number = |name: &str, usual: u64| {
        let at = words.iter().position(|it| it == name);
        at.and_then(|it| words.get(it + 1)?.parse().ok()).unwrap_or(usual)
    };
    let (seconds, seed) = (number("--seconds", 60), number("--seed", 1));
    let corpus = corpus(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../schedule/tests/scripts"));
    let last = env::temp_dir().join(format!("tilewright-fuzz-{seed}.ron"));
    let mut fuzzer = Fuzzer::new(Some(last));
    let until = Instant::now() + Duration::from_secs(seconds);
    let tally = fuzzer.session(&corpus, seed, &mut |_| Instant::now() < until);
    let printed = print(&tally, seed, corpus.len());
    if printed.is_err() || !tally.failures.is_empty() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn print(tally: &Tally, seed: u64, corpus: usize) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let all: u64 = tally.came.iter().sum::<u64>();
    writeln!(out, "seed {seed}: {all} cases from {corpus} scripts")?;
    for (came, count) in case::ALL.iter().zip(tally.came) {
        writeln!(out, "  ended at {:<10} {count}", format!("{came:?}"))?;
    }
    writeln!(out, "slowest: {:.2} s\n{}", tally.slowest.as_secs_f64(), tally.slow)?;
    writeln!(out, "found: {}", tally.failures.len())?;
    for it in &tally.failures {
        writeln!(out, "--- {:?}\n{}", it.verdict, it.text)?;
    }
    Ok(())
}
