//! A schedule written in Rust: `cargo run --release -p tilewright --example schedule_in_rust`.
//!
//! A script says one schedule; a program can try many. This one tiles a product of matrices in a few sizes, prints what each
//! step did to the program once, and measures them all.

use std::io::{Write, stdout};

use tilewright::{Diagnostic, RunOptions, Schedule, Target};

const SIZE: i64 = 512;

fn main() -> Result<(), Diagnostic> {
    let mut out = stdout().lock();
    for (rows, columns) in [(4, 16), (8, 16), (8, 32), (12, 32)] {
        let schedule = tiled(rows, columns)?;
        if rows == 4 {
            writeln!(out, "{schedule}")?;
        }
        let found = tilewright::run(&schedule.plan()?, &RunOptions::default(), &mut |_| {})?;
        match (found.measured().gflops, &found.measured().failure) {
            (Some(gflops), None) => writeln!(out, "{rows:2} x {columns}: {gflops:.1} GFLOPS, verified")?,
            (_, failure) => writeln!(out, "{rows:2} x {columns}: {failure:?}")?,
        }
    }
    Ok(())
}

/// A tile of the result in registers.
fn tiled(rows: i64, columns: i64) -> Result<Schedule, Diagnostic> {
    let mut schedule = Schedule::new("matmul", [("m", SIZE), ("n", SIZE), ("k", SIZE)], Target::Cpu)?;
    schedule
        .split("i", [("io", None), ("ii", Some(rows))])?
        .split("j", [("jo", None), ("ji", Some(columns))])?
        .reorder(["jo", "io", "k", "ii", "ji"])?
        .cache_write("C", "local")?
        .reverse_compute_at("C_local", "io")?
        .decompose_reduction("C", "k")?
        .vectorize("ji")?
        .unroll("ii")?;
    Ok(schedule)
}
