//! What is written is read as the same program.

use std::path::Path;

use ir::Func;

use super::{import, written};
use crate::plan::Plan;

fn expect_same(func: &Func, what: &str) {
    let text = written(func).unwrap_or_else(|err| panic!("{what}: {err}"));
    let again = import(Path::new("again.py"), &text, None).unwrap_or_else(|err| panic!("{what}: {err}"));
    assert!(again.func == *func, "{what}\n{text}\n{}\n{func}", again.func);
    assert!(again.renamed.is_empty(), "{what}: {:?}", again.renamed);
}

/// Every program that ships, before the first and after each step of each rung of the ladders and of each solution.
#[test]
fn what_is_written_is_read_as_the_same() {
    let mut count = 0;
    for rung in workloads::ladders().iter().flat_map(|it| it.rungs) {
        let plan = Plan::parse(Path::new("rung.ron"), rung.text, &[]).unwrap();
        expect_same(&plan.func, rung.name);
        let mut step_of = |step: &schedule::Step, session: &schedule::Session| {
            expect_same(session.func(), &format!("{}: {}", rung.name, step.name()));
            count += 1;
        };
        plan.walk(&plan.target(None, None), None, &mut step_of).unwrap();
    }
    assert!(count > 500, "{count}");
}
