//! The spaces that ship: how large they are, that nearly all of what they admit is legal, and that rungs of the ladders
//! are points of them.

#![expect(clippy::unwrap_used, reason = "a test may stop")]

use std::fs;

use indexmap::IndexMap;
use ir::{Arch, Target};
use schedule::{
    Choice, Decisions, Script,
    script::ScriptTarget,
    workload::{self, Param},
};
use tuner::{
    Space, Stream,
    build::{Problem, generate},
};

/// A space at some sizes, and what its points schedule.
fn open(text: &str, sizes: &[(&str, i64)]) -> (Space, Problem) {
    let script = Script::parse(text).unwrap();
    let workload = workload::parse(workloads::find(&script.workload.value).unwrap()).unwrap();
    let mut params = script.params.value.clone();
    params.extend(sizes.iter().map(|(name, it)| ((*name).to_owned(), Param::Int(*it))));
    let target = match script.target.as_ref().map(|it| &it.value) {
        Some(ScriptTarget::Cuda(_)) => Target::Cuda(Arch::parse("sm_90a").unwrap()),
        Some(ScriptTarget::Cpu) | None => Target::Cpu,
    };
    let func = workload.instantiate(&params).unwrap();
    let space = Space::of(&script, &workload.complete(&params).unwrap()).unwrap();
    (space, Problem::new(func, IndexMap::new(), 1, target).unwrap())
}

fn decisions(text: &str) -> Decisions {
    let one = |it: &str| {
        let (name, value) = it.split_once('=').unwrap();
        (name.into(), Choice::parse(value).unwrap())
    };
    text.split_whitespace().map(one).collect()
}

#[test]
fn most_admitted_points_are_legal() {
    let shapes = [[("m", 2048), ("n", 2048), ("k", 2048)], [("m", 16384), ("n", 64), ("k", 1024)]];
    for (at, shipped) in workloads::spaces().iter().enumerate() {
        for shape in shapes {
            let (space, problem) = open(shipped.text, &shape);
            let mut refused = vec![];
            let points: Vec<u128> = Stream::new(&space, at as u64).take(40).collect();
            for index in &points {
                let steps = space.steps(*index).unwrap();
                if let Err(err) = generate(&problem, &steps) {
                    refused.push(format!("{:?}: {err}", space.decisions(*index)));
                }
            }
            assert_eq!(points.len() as u128, space.size().min(40));
            assert!(refused.len() <= points.len() / 4, "{} {shape:?}: {refused:#?}", shipped.name);
        }
        // Without a tuner, the first choice of each knob.
        let (space, problem) = open(shipped.text, &[]);
        assert_eq!(space.admits(0), Ok(()), "{}", shipped.name);
        generate(&problem, &space.steps(0).unwrap()).unwrap();
    }
}

#[test]
fn rungs_are_points() {
    let ladder = workloads::find_ladder("matmul-cuda-f32").unwrap();
    let space = workloads::find_space("matmul-cuda-f32").unwrap();
    let sizes = [("m", 1024), ("n", 1024), ("k", 1024)];
    let (space, problem) = open(space.text, &sizes);
    for (rung, knobs) in [
        ("14_", "turned=1 groups=1 columns=1 slots=2 serpentine=1"),
        ("15_", "turned=1 ty=4 tx=8 groups=1 columns=1 slots=2 warps=1 serpentine=1"),
        ("16_", "turned=1 groups=1 columns=1 slots=2 serpentine=1 nested=1"),
        ("18_", "bk=32 serpentine=1 nested=1"),
        ("19_", "rows=4 bk=32 slots=4 serpentine=1 single=1"),
        ("20_", "rows=4 tx=8 slots=6 serpentine=1 nested=1"),
        ("21_", "rows=1 ty=16 tx=8 bk=64 single=1"),
    ] {
        let rung = ladder.rungs.iter().find(|it| it.name.starts_with(rung)).unwrap();
        let (script, as_written) = open(rung.text, &sizes);
        assert_eq!(script.size(), 1);
        let wanted = generate(&as_written, &script.steps(0).unwrap()).unwrap();
        let index = space.index_of(&decisions(knobs)).unwrap();
        assert_eq!(space.admits(index), Ok(()), "{}", rung.name);
        let got = generate(&problem, &space.steps(index).unwrap()).unwrap();
        assert_eq!(got.program.launches, wanted.program.launches, "{}", rung.name);
        // Declarations may come in another order.
        let sorted = |text: &str| {
            let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
            lines.sort_unstable();
            lines
        };
        assert_eq!(sorted(&got.source), sorted(&wanted.source), "{}", rung.name);
    }
}

#[test]
fn spaces_are_shown() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("cpu.ron"), workloads::find_space("matmul-cpu-f32").unwrap().text).unwrap();
    fs::write(path("fixed.ron"), workloads::find_ladder("matmul-cpu").unwrap().rungs[2].text).unwrap();
    fs::write(
        path("tiles.ron"),
        r#"schedule(
    workload: "matmul",
    knobs: {"ti": perfect_tile(of: "m", parts: 4), "tj": perfect_tile(of: "n", parts: 4), "tk": perfect_tile(of: "k", parts: 3)},
    constraints: ["ti[3] * tj[3] <= 64", "tk[2] < n"],
    steps: [
        split(loop: "i", into: {"i0": "ti[0]", "i1": "ti[1]", "i2": "ti[2]", "i3": "ti[3]"}),
        split(loop: "j", into: {"j0": "tj[0]", "j1": "tj[1]", "j2": "tj[2]", "j3": "tj[3]"}),
        choose(knob: "deep", one_of: [[], [split(loop: "k", into: {"k0": "tk[0]", "k1": "tk[1]", "k2": "tk[2]"})]]),
    ],
)"#,
    )
    .unwrap();
    let mut printed = String::new();
    for arguments in [
        &["show", "cpu.ron", "--emit", "space"][..],
        &["show", "cpu.ron", "--emit", "space", "--json"],
        &["show", "fixed.ron", "--emit", "space"],
        &["show", "tiles.ron", "--emit", "space"],
        &["show", "tiles.ron", "--emit", "space", "--param", "m=999983"],
        &["check", "tiles.ron", "--param", "ti=8x8x4x4", "--param", "deep=1"],
        &["check", "tiles.ron", "--param", "ti=8x8"],
        &["check", "tiles.ron", "--param", "ti=8x8xx"],
        &["check", "tiles.ron", "--param", "deep=2"],
        &["check", "tiles.ron", "--param", "n=n"],
        &["explain", "choose"],
    ] {
        let out = crate::common::tilewright(folder.path(), arguments);
        printed.extend(["$ tilewright ", &arguments.join(" "), "\n", &out, "\n\n"]);
    }
    insta::assert_snapshot!(printed);
}
