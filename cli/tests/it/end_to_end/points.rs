//! Points of the spaces for Hopper, drawn at random: whatever is admitted, accepted and lowered computes what the workload says, on the
//! virtual GPU.
//!
//! `TILEWRIGHT_SEED` chooses other points.

use codegen::vgpu;
use indexmap::IndexMap;
use ir::{Arch, Target};
use schedule::{Script, Session, workload, workload::Param};
use tuner::{Space, Stream};

use super::check::Expected;

use crate::common::expanded;

/// Sizes that no tile divides, one that is smaller than each, types and layouts.
const SUBJECTS: [(&str, [i64; 3], &str, &str); 5] = [
    ("matmul-hopper", [264, 200, 328], "bf16", "NT"),
    ("matmul-hopper", [40, 72, 64], "f16", "NN"),
    ("matmul-hopper-ping-pong", [328, 264, 200], "bf16", "TN"),
    ("matmul-hopper-ping-pong", [200, 328, 1024], "f8e4m3", "NT"),
    ("matmul-hopper-i8", [200, 272, 400], "i8", "NT"),
];

#[test]
fn points_compute_what_they_mean() {
    let seed = std::env::var("TILEWRIGHT_SEED").map_or(1, |it| it.parse().unwrap());
    let target = Target::Cuda(Arch::parse("sm_90a").unwrap());
    for (number, (name, sizes, dtype, layout)) in SUBJECTS.into_iter().enumerate() {
        let script = Script::parse(&expanded(workloads::find_space(name).unwrap().text)).unwrap();
        let workload = workload::parse(workloads::find(&script.workload.value).unwrap()).unwrap();
        let mut params = script.params.value.clone();
        params.extend(["m", "n", "k"].map(str::to_owned).into_iter().zip(sizes.map(Param::Int)));
        for (name, value) in [("dtype", dtype), ("layout", layout)] {
            params.insert(name.to_owned(), Param::Text(value.to_owned()));
        }
        let func = workload.instantiate(&params).unwrap();
        let space = Space::of(&script, &workload.complete(&params).unwrap()).unwrap();
        let expected = Expected::new(&func, &IndexMap::new(), 0.0);
        let mut count = 0;
        for index in Stream::new(&space, seed + number as u64).take(60) {
            let mut session = Session::new(func.clone(), Some(target.clone()));
            let steps = space.steps(index).unwrap();
            let Ok(module) = steps
                .iter()
                .try_for_each(|it| session.apply(it).map_err(|_| ()))
                .and_then(|()| codegen::compile_module(session.func(), &target).map_err(|_| ()))
            else {
                continue;
            };
            let what = || format!("{name} {sizes:?} {dtype} {layout}: {:?}", space.decisions(index));
            let settings = vgpu::Settings::hostile(seed);
            expected.on(&module, &settings).unwrap_or_else(|err| panic!("{}: {err}\n{module}", what()));
            count += 1;
            if count == POINTS {
                break;
            }
        }
        assert_eq!(count, POINTS, "{name} {sizes:?}: too few points lower");
    }
}

/// How many points of each are run.
const POINTS: usize = 4;
