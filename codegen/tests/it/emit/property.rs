//! Random loop nests: the passes behind `flatten` keep what a module computes.

use ir::{BinaryOp, DType, ForKind, Index, Module, Op, Scope, Target, Value, number};
use proptest::prelude::*;
use std::sync::Arc;

use super::{build::*, oracle};

/// Three loops; the middle list stages a tile in a local array between two inner nests.
#[derive(Clone, Debug)]
struct Nest {
    extents: [i64; 3],
    kinds: [ForKind; 4],
    /// Coefficients of the load's subscript.
    read: [i64; 3],
    /// What is divided and what by.
    fold: i64,
    /// Whether lanes of the load stay within a group of `fold`.
    folds: bool,
    /// The bound of the guard, or none.
    guard: Option<i64>,
    chooses: bool,
    pad: i64,
}

fn kind() -> impl Strategy<Value = ForKind> {
    prop_oneof![Just(ForKind::Serial), Just(ForKind::Unrolled), Just(ForKind::Vectorized)]
}

fn nest() -> impl Strategy<Value = Nest> {
    let extent = prop_oneof![Just(1i64), Just(2), Just(3), Just(4), Just(6), Just(8), Just(16), Just(12)];
    (
        [extent.clone(), extent.clone(), extent],
        [kind(), kind(), kind(), kind()],
        [0..20i64, 0..5i64, 0..3i64],
        1..6i64,
        any::<bool>(),
        proptest::option::of(1..80i64),
        any::<bool>(),
        0..3i64,
    )
        .prop_map(|(extents, kinds, read, fold, folds, guard, chooses, pad)| Nest {
            extents,
            kinds,
            read,
            fold,
            folds,
            guard,
            chooses,
            pad,
        })
}

impl Nest {
    fn module(&self) -> Module {
        let [a, b, c] = self.extents;
        let row = c + self.pad;
        let read = v("i") * self.read[0] + v("j") * self.read[1] + v("k") * self.read[2];
        let read = if self.folds {
            read.floor_div(&self.fold.into()) * self.fold + read.floor_mod(&self.fold.into())
        } else {
            read
        };
        let loaded = load("x", read.clone());
        let chosen = if self.chooses {
            let otherwise = cast(DType::F32, Value::Index(DType::I32, read));
            Value::Select(vec![less(v("j") * 3, v("i") + 2)], Arc::new(loaded), Arc::new(otherwise))
        } else {
            loaded
        };
        let fill = store("tile", v("j") * row + v("k"), add(chosen, constant(DType::F32, 0.5)));
        let place = (v("i") * b + v("jj")) * c + v("kk");
        let value = Value::binary(
            BinaryOp::Max,
            mul(load("tile", v("jj") * row + v("kk")), load("x", v("jj"))),
            load("out", place.clone()),
        );
        let write = store("out", place.clone(), value);
        let write = match self.guard {
            Some(limit) => Op::If(vec![less(place, limit)], vec![write]),
            None => write,
        };
        let outer = [
            alloc("tile", DType::F32, b * row, Scope::Local),
            each("j", b, self.kinds[0], vec![each("k", c, self.kinds[1], vec![fill])]),
            each("jj", b, self.kinds[2], vec![each("kk", c, self.kinds[3], vec![write])]),
        ];
        let len = |it: i64| Index::from(it);
        let args = [("x", DType::F32, len(500)), ("out+", DType::F32, len(a * b * c))];
        module("nest", &[], &args, vec![serial("i", a, outer.to_vec())])
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn passes_keep_what_a_module_computes(nest in nest()) {
        let module = nest.module();
        let fill = |name: &ir::Name, at: usize| {
            let sign = if *name == "x" { 1.0 } else { -1.0 };
            number::round(DType::F32, sign * ((at * 37 % 101) as f64 - 20.0))
        };
        let expected = oracle::run(&module, &[], &fill).buffers;
        for target in [Target::Cpu, cuda("sm_90a")] {
            let finished = finish(module.clone(), &target);
            let got = oracle::run_on(&target, &finished, &[], &fill).buffers;
            prop_assert_eq!(&got[&n("out")].1, &expected[&n("out")].1, "{:?}\n{:#?}", target, finished);
            tilewright_codegen::emit::emit(&finished, &target).unwrap();
        }
    }
}
