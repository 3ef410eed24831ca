//! What ships is proved to wait for all that it uses: no legal kernel is refused by the proofs about phases.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may stop")]

use std::fs;

use codegen::lower::{LowerError, lower};
use ir::{Arch, Target};
use schedule::{Decisions, Script, Session, Step, workload, workload::Param};
use tuner::{Space, Stream};

use crate::common::expanded;
use crate::end_to_end::scripts;

fn target() -> Target {
    Target::Cuda(Arch::parse("sm_90a").unwrap())
}

/// Whether some steps are legal and lower; what the proofs say is heard.
fn lowers(what: &str, script: &Script, params: &[(String, Param)], steps: &[Step]) -> bool {
    let workload = workload::parse(workloads::find(&script.workload.value).unwrap()).unwrap();
    let mut all = script.params.value.clone();
    all.extend(params.iter().cloned());
    let mut session = Session::new(workload.instantiate(&all).unwrap(), Some(target()));
    if steps.iter().any(|step| session.apply(step).is_err()) {
        return false;
    }
    match lower(session.func(), &target(), &mut |_, _| {}) {
        Ok(_) => true,
        Err(LowerError::Phase(err)) => panic!("{what} {params:?}: {err}"),
        Err(_) => false,
    }
}

/// The same of a script with the first choice of each knob.
fn script_lowers(what: &str, text: &str, params: &[(String, Param)]) -> bool {
    let script = Script::parse(&expanded(text)).unwrap();
    let workload = workload::parse(workloads::find(&script.workload.value).unwrap()).unwrap();
    let mut all = script.params.value.clone();
    all.extend(params.iter().cloned());
    let Ok(steps) = script.resolve(&workload.complete(&all).unwrap(), &Decisions::new()) else {
        return false;
    };
    let steps: Vec<Step> = steps.into_iter().map(|it| it.value).collect();
    lowers(what, &script, params, &steps)
}

fn text(name: &str, value: &str) -> (String, Param) {
    (name.to_owned(), Param::Text(value.to_owned()))
}

fn sizes(all: [i64; 3]) -> Vec<(String, Param)> {
    ["m", "n", "k"].iter().zip(all).map(|(name, it)| ((*name).to_owned(), Param::Int(it))).collect()
}

#[test]
fn rungs_are_proved() {
    let ladder = workloads::find_ladder("matmul-hopper").unwrap();
    let mut count = 0;
    for rung in ladder.rungs {
        for layout in ["NN", "NT", "TN", "TT"] {
            let of_layout = |more: Vec<(String, Param)>| [vec![text("layout", layout)], more].concat();
            let known = [vec![], sizes([1000, 1160, 712]), sizes([40, 24, 64]), sizes([8192, 8192, 8192])];
            // Where sizes are not known, the proofs are for all of them.
            let unknown = [vec![text("m", "rows")], vec![text("n", "columns")], vec![text("k", "depth")]];
            for params in known.into_iter().chain(unknown).map(of_layout) {
                count += usize::from(script_lowers(rung.name, rung.text, &params));
            }
        }
    }
    insta::assert_snapshot!(format!("{count} of {}", ladder.rungs.len() * 4 * 7), @"192 of 252");
}

#[test]
fn points_of_the_space_are_proved() {
    let shipped = workloads::find_space("matmul-hopper").unwrap();
    let script = Script::parse(&expanded(shipped.text)).unwrap();
    let workload = workload::parse(workloads::find(&script.workload.value).unwrap()).unwrap();
    let mut count = 0;
    for (seed, size) in [[4096, 4096, 4096], [1000, 1160, 712], [512, 256, 64]].into_iter().enumerate() {
        let params = sizes(size);
        let mut all = script.params.value.clone();
        all.extend(params.iter().cloned());
        let space = Space::of(&script, &workload.complete(&all).unwrap()).unwrap();
        for index in Stream::new(&space, seed as u64).take(20) {
            let what = format!("{:?}", space.decisions(index));
            count += usize::from(lowers(&what, &script, &params, &space.steps(index).unwrap()));
        }
    }
    insta::assert_snapshot!(format!("{count} of 60"), @"60 of 60");
}

#[test]
fn scripts_are_proved() {
    let mut paths: Vec<_> = fs::read_dir(scripts::folder()).unwrap().map(|it| it.unwrap().path()).collect();
    paths.sort();
    let mut count = 0;
    for path in paths {
        let text = fs::read_to_string(&path).unwrap();
        if text.contains("sm_90") {
            let what = path.display().to_string();
            count +=
                scripts::cases(&path).iter().filter(|it| script_lowers(&what, &text, &it.params)).count();
        }
    }
    insta::assert_snapshot!(format!("{count} cases"), @"74 cases");
}
