//! Tiles that are filled by rows and read as matrix instructions read: 16 bytes from each of 8 rows at once. Without a
//! swizzle such reads meet in few banks, with one in all of them; what is read is the same.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use indexmap::IndexMap;
use ir::{Arch, Func, Name, Role, Target};
use tilewright_codegen::{
    lower::{LowerError, lower},
    vgpu::{self, Direction, Report, Settings},
};

/// A copy of 64 rows through shared memory by one warp, 16 bytes a lane; reads are of 16 rows, 2 chunks each.
fn copy(dtype: &str, bytes: i64, columns: i64, layout: &str) -> Func {
    let lanes = 16 / bytes;
    let chunks = columns / lanes;
    // Rows of any number of chunks are filled by a lane each.
    let (runs, vr, vc) = if chunks.count_ones() == 1 {
        let chunk = |part: &str| format!("(r*32 + t) {part} {chunks}");
        (2 * chunks, chunk("floordiv"), chunk("mod"))
    } else {
        (2 * chunks, format!("r floordiv {chunks}*32 + t"), format!("r mod {chunks}"))
    };
    let text = format!(
        "func tile
  in A: {dtype}[64, {columns}]
  out C: {dtype}[64, {columns}]
  temp T: {dtype}[64, {columns}] @shared{layout}

  for b in 0..1 @blockIdx.x
    for t in 0..32 @threadIdx.x
      for r in 0..{runs}
        for v in 0..{lanes} @vectorized
          block T(vr: 64 = {vr}, vc: {columns} = {vc}*{lanes} + v)
            T[vr, vc] = A[vr, vc]
    for t1 in 0..32 @threadIdx.x
      for im in 0..4
        for kk in 0..{halves}
          for v1 in 0..{lanes} @vectorized
            block C(vi: 64 = im*16 + t1 mod 16, vj: {columns} = kk*{pair} + t1 floordiv 16*{lanes} + v1)
              C[vi, vj] = T[vi, vj]
",
        halves = chunks / 2,
        pair = 2 * lanes,
    );
    let func = ir::text::parse(&text).unwrap_or_else(|err| panic!("{err}\n{text}"));
    ir::verify(&func).unwrap_or_else(|err| panic!("{err:?}\n{text}"));
    func
}

/// What the virtual GPU counted and what is in memory afterwards; inputs are small integers, which every type has.
fn run(func: &Func) -> Result<(Report, IndexMap<Name, Vec<f64>>), LowerError> {
    let module = lower(func, &Target::Cuda(Arch { sm: 80, suffix: None }), &mut |_, _| {})?;
    let mut memory = IndexMap::new();
    for (at, (name, arg)) in module.args.iter().filter(|it| it.1.role == Role::Input).enumerate() {
        let len = arg.elements().as_int().unwrap();
        let numbers = (0..len).map(|it| (it * 7 % 61 % (7 + 2 * i64::try_from(at).unwrap())) as f64);
        memory.insert(name.clone(), numbers.collect());
    }
    let report = vgpu::run(&module, &IndexMap::new(), &mut memory, &Settings::default()).unwrap();
    assert!(report.is_clean(), "{:#?}\n{module}", report.findings);
    Ok((report, memory))
}

/// Wavefronts and the fewest possible of the accesses to a buffer.
fn counted(report: &Report, buffer: &str, direction: Direction) -> (u64, u64) {
    let all = report.counters[0].traffic.iter();
    let own = all.filter(|it| it.buffer == *buffer && it.direction == direction);
    own.fold((0, 0), |sum, it| (sum.0 + it.units, sum.1 + it.ideal))
}

/// The same of writes to and reads from the tile of a copy, which is a copy.
fn wavefronts(func: &Func) -> Result<[(u64, u64); 2], LowerError> {
    let (report, memory) = run(func)?;
    assert_eq!(memory["C"], memory["A"]);
    Ok([counted(&report, "T", Direction::Write), counted(&report, "T", Direction::Read)])
}

#[test]
fn columns_of_chunks_meet_in_banks_unless_they_are_swizzled() {
    // The bytes of a row, the mode for it, and how many rows have the same chunk in the same bank.
    for (row, mode, conflicts) in
        [(32, "1, 4, 3", 2), (64, "2, 4, 3", 4), (128, "3, 4, 3", 8), (256, "3, 4, 4", 8)]
    {
        for (dtype, bytes) in [("f16", 2), ("f32", 4), ("i8", 1)] {
            let tile = |layout: &str| wavefronts(&copy(dtype, bytes, row / bytes, layout)).unwrap();
            let [(written, least), (read, fewest)] = tile("");
            assert_eq!(written, least);
            assert_eq!(read, conflicts * fewest, "{dtype}, rows of {row} bytes");
            let named = tile(&format!(" swizzle({mode})"));
            assert_eq!(named, [(least, least), (fewest, fewest)], "{dtype}, rows of {row} bytes");
            assert_eq!(tile(" swizzle(auto)"), named, "{dtype}, rows of {row} bytes");
        }
    }
}

#[test]
fn auto_helps_rows_of_any_length_and_padded_ones() {
    for (columns, layout) in
        [(96, ""), (512, ""), (64, " align(0, 128, 0)"), (64, " align(0, 64, 32)"), (80, "")]
    {
        let [_, reads] = wavefronts(&copy("f16", 2, columns, &format!("{layout} swizzle(auto)"))).unwrap();
        assert_eq!(reads.0, reads.1, "{columns} columns{layout}");
    }
}

#[test]
fn what_a_swizzle_would_take_apart_is_refused() {
    let rows = wavefronts(&copy("f16", 2, 32, " swizzle(3, 4, 3)")).unwrap_err();
    assert_eq!(
        rows.to_string(),
        "the rows of `T` are 32 elements, and this swizzle needs multiples of 64: it permutes 128 bytes"
    );
    let padded = wavefronts(&copy("f16", 2, 64, " align(0, 64, 8) swizzle(3, 4, 3)")).unwrap_err();
    assert!(padded.to_string().starts_with("the rows of `T` are 72 elements"), "{padded}");
    assert_eq!(padded.names(), [&Name::new("T")]);
}

#[test]
fn smaller_chunks_make_narrower_accesses() {
    // 8 bytes stay together, so that 16 become two accesses.
    let [writes, reads] = wavefronts(&copy("f16", 2, 64, " swizzle(3, 3, 4)")).unwrap();
    assert!(writes.0 >= writes.1 && reads.0 >= reads.1);
}

#[test]
fn matrix_loads_from_swizzled_tiles_meet_no_bank_twice() {
    // Rows of A are 64 bytes, two to all banks; rows of B are 128 bytes.
    for (layout, conflicts) in [("", [4, 8]), (" swizzle(auto)", [1, 1])] {
        let text = include_str!("../swizzle/mma.tw").replace("64] @shared", &format!("64] @shared{layout}"));
        let (report, memory) = run(&ir::text::parse(&text).unwrap()).unwrap();
        for (buffer, conflicts) in [("A_pad", conflicts[0]), ("B_pad", conflicts[1])] {
            let (written, least) = counted(&report, buffer, Direction::Write);
            let (read, fewest) = counted(&report, buffer, Direction::Read);
            assert_eq!([written, read], [least, conflicts * fewest], "{buffer}{layout}");
        }
        let product = |i: usize, j: usize| -> f64 {
            (0..64).map(|k| memory["A"][i * 64 + k] * memory["B"][k * 64 + j]).sum()
        };
        let expected: Vec<f64> = (0..64 * 64).map(|at| product(at / 64, at % 64)).collect();
        assert_eq!(memory["C"], expected, "{layout}");
    }
}
