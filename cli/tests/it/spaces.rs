//! The spaces that ship: how large they are, that nearly all of what they admit is legal, that they have points for every shape, and
//! that rungs of the ladders are points of them.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may stop")]

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

use super::end_to_end::check::Case;
use crate::common::expanded;

/// A space at some sizes, and what its points schedule.
fn open(text: &str, sizes: &[(&str, i64)]) -> (Space, Problem) {
    let script = Script::parse(&expanded(text)).unwrap();
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
    let shapes = [[2048, 2048, 2048], [16384, 64, 1024], [2500, 304, 4000]];
    let shapes = shapes.map(|[m, n, k]| [("m", m), ("n", n), ("k", k)]);
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

/// Shapes of which earlier spaces admitted nothing.
const RAGGED: [[i64; 3]; 4] = [[1500, 1500, 1500], [300, 5000, 40], [2500, 300, 4000], [4097, 4097, 4097]];

/// Such shapes, if `most` allows, and others with sizes from 1 to `most`, as if drawn at random. What the copy engine moves has rows of multiples of 16 bytes.
fn shapes(name: &str, count: u64, most: u64) -> Vec<[(&'static str, i64); 3]> {
    let aligned = |it: i64| if name.contains("hopper") { (it + 15) / 16 * 16 } else { it };
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut size = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        i64::try_from((state >> 33) % most + 1).unwrap()
    };
    let drawn = (0..count).map(|_| [size(), size(), size()]);
    let ragged = RAGGED.into_iter().filter(|it| it.iter().all(|it| it.unsigned_abs() <= most));
    ragged.chain(drawn).map(|[m, n, k]| [("m", m), ("n", aligned(n)), ("k", aligned(k))]).collect()
}

/// No space asks that a size be a multiple of anything, but for rows that hardware cannot address: there is a point that becomes a kernel.
#[test]
fn every_shape_has_points() {
    for shipped in workloads::spaces() {
        for (at, shape) in shapes(shipped.name, 30, 5000).into_iter().enumerate() {
            let (space, problem) = open(shipped.text, &shape);
            let mut refused = vec![];
            let is_made = Stream::new(&space, at as u64).take(8).any(|index| {
                let made = generate(&problem, &space.steps(index).unwrap());
                refused.extend(made.as_ref().err().map(|err| format!("{:?}: {err}", space.decisions(index))));
                made.is_ok()
            });
            assert!(is_made, "{} {shape:?}: {refused:#?}", shipped.name);
        }
    }
}

/// What such points compute is right.
#[test]
fn small_shapes_are_computed() {
    for shipped in workloads::spaces() {
        for (at, shape) in shapes(shipped.name, 3, 150).into_iter().enumerate() {
            let (space, problem) = open(shipped.text, &shape);
            let index = Stream::new(&space, at as u64)
                .take(8)
                .find(|it| generate(&problem, &space.steps(*it).unwrap()).is_ok());
            let index = index.unwrap_or_else(|| panic!("{} {shape:?}", shipped.name));
            let params = shape.map(|(name, it)| (name.to_owned(), Param::Int(it))).to_vec();
            let case = Case {
                what: format!("{} {shape:?} {:?}", shipped.name, space.decisions(index)),
                text: shipped.text.to_owned(),
                params,
                dims: IndexMap::new(),
                tolerance: 0.0,
            };
            case.check_scheduled(case.schedule_steps(space.steps(index).unwrap()));
        }
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
