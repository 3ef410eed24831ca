//! Tiles that are filled by rows and read as matrix instructions read: 16 bytes from each of 8 rows at once. Without a
//! swizzle such reads meet in few banks, with one in all of them; what is read is the same.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use indexmap::IndexMap;
use ir::{Arch, Func, Name, Target};
use tilewright_codegen::{
    lower::{LowerError, lower},
    vgpu::{self, Direction, Settings},
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

/// Wavefronts and the fewest possible of writes and of reads.
fn wavefronts(func: &Func) -> Result<[(u64, u64); 2], LowerError> {
    let module = lower(func, &Target::Cuda(Arch { sm: 80, suffix: None }), &mut |_, _| {})?;
    let len = module.args[0].len.as_int().unwrap();
    // Small integers are numbers of every type.
    let input: Vec<f64> = (0..len).map(|it| (it * 7 % 61) as f64).collect();
    let mut memory = IndexMap::from([(Name::new("A"), input.clone())]);
    let report = vgpu::run(&module, &IndexMap::new(), &mut memory, &Settings::default()).unwrap();
    assert!(report.is_clean(), "{:#?}\n{module}", report.findings);
    assert_eq!(memory["C"], input);
    let counted = |direction: Direction| {
        let all = report.counters[0].traffic.iter();
        let own = all.filter(|it| it.buffer == *"T" && it.direction == direction);
        own.fold((0, 0), |sum, it| (sum.0 + it.units, sum.1 + it.ideal))
    };
    Ok([counted(Direction::Write), counted(Direction::Read)])
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
