//! Random tiles with vectorised loops: what lowering makes vectors of begins at multiples of their size, wherever the tile
//! is put in shared memory and however its rows are padded.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::fmt::Write as _;

use indexmap::IndexMap;
use ir::{Arch, Module, Name, Role, Target};
use proptest::prelude::*;
use tilewright_codegen::{
    lower::lower,
    vgpu::{self, Settings},
};

/// Two tiles that are filled by rows, one after the other, so that they may share bytes, and read by rows.
#[derive(Clone, Debug)]
struct Tiles {
    dtypes: [&'static str; 2],
    /// The lanes of the loops, and how often each row has them.
    lanes: i64,
    groups: i64,
    /// How far rows of the input are apart, in elements or as symbolic columns.
    row: Row,
    /// What subscripts of the input and of the tiles begin at.
    first: [i64; 2],
    /// Factor and offset of `storage_align`.
    align: Option<(i64, i64)>,
    /// The columns that are copied; the rest is kept out by a condition.
    columns: i64,
}

#[derive(Clone, Copy, Debug)]
enum Row {
    Elements(i64),
    Symbolic(i64),
}

fn tiles() -> impl Strategy<Value = Tiles> {
    let dtype = || prop_oneof![Just("f32"), Just("f16"), Just("i8"), Just("f64")];
    let row = prop_oneof![(64..80i64).prop_map(Row::Elements), (1..9i64).prop_map(Row::Symbolic)];
    let align =
        proptest::option::of((1..5u32, 0..9i64).prop_map(|(it, offset)| (1 << it, offset % (1 << it))));
    let first = || prop_oneof![2 => Just(0i64), 1 => Just(4), 1 => 0..9i64];
    (
        [dtype(), dtype()],
        prop_oneof![Just(2i64), Just(3), Just(4), Just(6), Just(8), Just(16)],
        1..4i64,
        row,
        [first(), first()],
        align,
        0..4i64,
    )
        .prop_map(|(dtypes, lanes, groups, row, first, align, less)| {
            let columns = lanes * groups - less.min(lanes * groups - 1);
            Tiles { dtypes, lanes, groups, row, first, align, columns }
        })
}

impl Tiles {
    fn text(&self) -> String {
        let Tiles { lanes, groups, first: [from, to], columns, .. } = self;
        let row = match self.row {
            Row::Elements(it) => it.to_string(),
            Row::Symbolic(1) => "n + 64".to_owned(),
            Row::Symbolic(it) => format!("n*{it} + 64"),
        };
        let (all, wide) = (lanes * groups, lanes * groups + to);
        let align =
            self.align.map_or(String::new(), |(factor, offset)| format!(" align(0, {factor}, {offset})"));
        let mut text = "func tiles(n)\n".to_owned();
        for (at, dtype) in self.dtypes.iter().enumerate() {
            writeln!(text, "  in A{at}: {dtype}[16, {row}]\n  out C{at}: {dtype}[16, {all}]").unwrap();
        }
        for (at, dtype) in self.dtypes.iter().enumerate() {
            writeln!(text, "  temp S{at}: {dtype}[16, {wide}] @shared{align}").unwrap();
        }
        text += "\n  for b in 0..1 @blockIdx.x\n";
        for at in 0..2 {
            writeln!(
                text,
                "    for t{at} in 0..16 @threadIdx.x
      for g{at} in 0..{groups}
        for v{at} in 0..{lanes} @vectorized
          block S{at}(vr: 16 = t{at}, vc: {all} = g{at}*{lanes} + v{at}) if g{at}*{lanes} + v{at} < {columns}
            S{at}[vr, vc + {to}] = A{at}[vr, vc + {from}]
    for u{at} in 0..16 @threadIdx.x
      for h{at} in 0..{groups}
        for w{at} in 0..{lanes} @vectorized
          block C{at}(vr: 16 = u{at}, vc: {all} = h{at}*{lanes} + w{at})
            C{at}[vr, vc] = select(vc < {columns}, S{at}[15 - vr, vc + {to}], {zero})",
                zero = if self.dtypes[at] == "i8" {
                    "0i8".to_owned()
                } else {
                    format!("0.0{}", self.dtypes[at])
                },
            )
            .unwrap();
        }
        text
    }

    fn module(&self) -> Module {
        let text = self.text();
        let func = ir::text::parse(&text).unwrap_or_else(|err| panic!("{err}\n{text}"));
        ir::verify(&func).unwrap_or_else(|err| panic!("{err:?}\n{text}"));
        lower(&func, &Target::Cuda(Arch { sm: 80, suffix: None }), &mut |_, _| {}).unwrap()
    }
}

/// How many assignments are of several lanes.
fn vectors(module: &Module) -> usize {
    let mut count = 0;
    for op in module.kernels.iter().flat_map(|it| &it.body) {
        op.each_access(&mut |it, mode| count += usize::from(mode.writes() && it.lanes > 1));
    }
    count
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn vectors_of_lowered_programs_are_aligned(tiles in tiles()) {
        let module = tiles.module();
        let n = 61;
        let dims: IndexMap<Name, i64> = [(Name::new("n"), n)].into();
        let size = |it: &ir::Arg| it.elements().eval(&|_| Some(n)).unwrap();
        let inputs = module.args.iter().filter(|it| it.1.role == Role::Input);
        let numbers = |len: i64| (0..len).map(|it| (it * 7 % 61) as f64).collect();
        let mut memory = inputs.map(|(name, it)| (name.clone(), numbers(size(it)))).collect();
        let report = vgpu::run(&module, &dims, &mut memory, &Settings::default()).unwrap();
        prop_assert!(report.is_clean(), "{:#?}\n{}\n{}", report.findings, tiles.text(), module);
    }
}

#[test]
fn tiles_become_vectors_where_they_are_aligned() {
    let even = Tiles {
        dtypes: ["f32", "f16"],
        lanes: 4,
        groups: 2,
        row: Row::Symbolic(4),
        first: [4, 8],
        align: Some((8, 0)),
        columns: 8,
    };
    assert_eq!(vectors(&even.module()), 4, "{}", even.module());
    let padded = Tiles { align: Some((4, 1)), ..even.clone() };
    assert_eq!(vectors(&padded.module()), 0, "{}", padded.module());
    let shifted = Tiles { first: [1, 8], ..even.clone() };
    assert_eq!(vectors(&shifted.module()), 2, "{}", shifted.module());
    let symbolic = Tiles { row: Row::Symbolic(1), ..even };
    assert_eq!(vectors(&symbolic.module()), 2, "{}", symbolic.module());
}
