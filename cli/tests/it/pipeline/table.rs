//! What TVM 0.27 needs for its pipelines, and what is needed here: slots, and barriers in one iteration.
//!
//! `cargo test -p tilewright --test it pipeline::table -- --nocapture` prints the table. TVM's numbers stand in the comments of
//! the scripts. Its slots are also computed by its rule, so that they are not taken on trust; "by hand" are those of nested
//! pipelines, to which the rule was applied with pen and paper. Its barriers are two an iteration: that was measured for
//! tiles staged at every depth tried, and is taken to hold for loops alike.

use std::fmt::Write as _;

use ir::{Func, Loop, Name, Numbers, Stmt};

use super::{
    corpus::{Case, cases, schedule},
    header::ScriptEnd,
    measure::{is_barrier, pipelines, slots, steady},
    run,
};

/// The slots that TVM gives a buffer in a loop whose parts are no pipelines themselves.
///
/// From the first stage that writes it to the last that reads it, and one; two only where a producer of an earlier
/// stage comes before its consumer in the order, and from three on always; at least two if the script forces it.
fn tvm_slots(it: &Loop, buffer: &Name) -> Option<i64> {
    let Stmt::Seq(stmts) = &it.body else { return None };
    let pipeline = it.attrs.pipeline.as_ref()?;
    let number = |numbers: &Option<Numbers>, stmt: &Stmt| match numbers.as_ref()? {
        Numbers::Map(map) => stmt.blocks().iter().find_map(|block| map.get(&block.name).copied()),
        Numbers::List(_) => None,
    };
    let mut writers = Vec::new();
    let mut readers = Vec::new();
    let mut doubled = false;
    for stmt in stmts {
        let time = (number(&pipeline.stages, stmt)?, number(&pipeline.orders, stmt)?);
        for block in stmt.blocks() {
            let touches = |it: &Vec<&ir::Access>| it.iter().any(|it| it.buffer == *buffer);
            if touches(&block.writes()) {
                writers.push(time);
                doubled |= block.attrs.double_buffer;
            }
            if touches(&block.reads()) {
                readers.push(time);
            }
        }
    }
    let first = writers.iter().map(|it| it.0).min()?;
    let mut count = readers.iter().map(|it| it.0).max().map_or(1, |last| last - first + 1);
    let ahead = |w: &(i64, i64)| readers.iter().any(|r| w.0 < r.0 && w.1 < r.1);
    if count == 2 && !writers.iter().any(ahead) {
        count = 1;
    }
    Some(if doubled { count.max(2) } else { count.max(1) })
}

/// A line of the table, and what is wrong with it.
fn line(case: &Case, out: &mut String, wrong: &mut Vec<String>) {
    let dims = case.header.all_dims().pop().unwrap_or_default();
    let name = &case.name;
    for (choice, steps) in case.choices() {
        for func in [case.func.clone(), run::with_constants(&case.func, &dims)] {
            let after = schedule(&func, &steps).unwrap_or_else(|err| panic!("{name} {choice}: {err}"));
            let lowered = run::lower(&after).unwrap_or_else(|err| panic!("{name} {choice}: {err}"));
            let form = if func.dims.is_empty() { "constant" } else { "symbolic" };
            let mut text = format!("{name:36} {form:9}");
            for (buffer, theirs) in &case.header.tvm {
                let ours = slots(&after, &lowered.expanded, buffer);
                if ours > *theirs {
                    wrong.push(format!("{name}: `{buffer}` has {ours} slots, {theirs} in TVM"));
                }
                let rule = rule(&after, buffer);
                let by_hand = if rule.is_some() { "" } else { " (by hand)" };
                write!(text, " {buffer} {theirs}/{ours}{by_hand}").unwrap();
                if rule.is_some_and(|it| it != *theirs) {
                    wrong.push(format!("{name}: TVM's rule gives `{buffer}` {rule:?} slots, not {theirs}"));
                }
            }
            let ours = steady(&after, &lowered, &is_barrier);
            if let Some(theirs) = case.header.tvm_barriers {
                write!(text, "  barriers {theirs}/{ours}").unwrap();
                if ours.exceeds(theirs) {
                    wrong.push(format!("{name}: {ours} barriers in an iteration, {theirs} in TVM"));
                }
            }
            writeln!(out, "{text}").unwrap();
        }
    }
}

/// TVM's slots by its rule, where the program has one pipeline that uses the buffer.
fn rule(after: &Func, buffer: &Name) -> Option<i64> {
    let users = |it: &&Loop| {
        let blocks = it.body.blocks();
        blocks.iter().flat_map(|it| it.writes()).any(|it| it.buffer == *buffer)
    };
    let loops = after.loops();
    let mut using = loops.into_iter().filter(|it| pipelines(after).contains(&it.var)).filter(users);
    match (using.next(), using.next()) {
        (Some(it), None) => tvm_slots(it, buffer),
        _ => None,
    }
}

#[test]
fn table_of_slots_and_barriers() {
    let mut table = "slots and barriers of an iteration, TVM 0.27 / here\n".to_owned();
    let mut wrong = Vec::new();
    let listed = |it: &Case| !it.header.tvm.is_empty() || it.header.tvm_barriers.is_some();
    let mut count = 0;
    for case in cases().into_iter().map(|it| it.unwrap()) {
        if case.header.verdict == ScriptEnd::Accepted && listed(&case) {
            line(&case, &mut table, &mut wrong);
            count += 1;
        }
    }
    println!("{table}");
    assert!(wrong.is_empty(), "{}\n{table}", wrong.join("\n"));
    assert!(count >= 40 || std::env::var_os("TILEWRIGHT_SCRIPT").is_some(), "{count}");
}
