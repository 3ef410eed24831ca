//! The speed of proving and choosing on indices of tiled matrix multiplication.

use std::hint::black_box;

use tilewright_ir::{
    Index, Less, Name,
    arith::{Bounds, cheapest},
};

fn main() {
    divan::main();
}

const VARS: &[(&str, i64)] =
    &[("by", 16), ("bx", 16), ("ko", 128), ("t", 256), ("p", 8), ("i", 4), ("k", 8), ("v", 4)];

const INDICES: &[&str] = &[
    "i + 1 + (v - 1)",
    "t floordiv 32*32 + t mod 32",
    "(p*1024 + t*4 + v) floordiv 32*36 + (p*1024 + t*4 + v) mod 32",
    "(by*64 + t floordiv 16*4 + i)*1024 + bx*64 + t mod 16*4 + v",
    "(ko + 1) mod 3*512 + (t floordiv 16*4 + i)*8 + k",
    "(t floordiv 4 + p floordiv 2*8)*72 + t mod 4*2 + p mod 2",
];

fn bounds() -> Bounds {
    let mut out = Bounds::default();
    for (var, extent) in VARS {
        out.insert(&Name::new(*var), &Index::int(*extent));
    }
    out
}

fn index(text: &str) -> Index {
    text.parse().expect("the indices above are well formed")
}

#[divan::bench]
fn build_bounds(bencher: divan::Bencher) {
    bencher.bench(bounds);
}

#[divan::bench(args = INDICES)]
fn simplify(bencher: divan::Bencher, text: &str) {
    let (bounds, index) = (bounds(), index(text));
    bencher.bench(|| bounds.simplify(black_box(&index)));
}

#[divan::bench(args = INDICES)]
fn choose_cheapest(bencher: divan::Bencher, text: &str) {
    let (bounds, index) = (bounds(), index(text));
    bencher.bench(|| cheapest(black_box(&index), &bounds));
}

#[divan::bench]
fn prove_symbolic_guard(bencher: divan::Bencher) {
    let mut bounds = Bounds::default();
    bounds.insert_dim(&Name::new("n"));
    bounds.insert(&Name::new("io"), &index("(n + 31) floordiv 32"));
    bounds.insert(&Name::new("ii"), &Index::int(32));
    let guard = Less::new(index("io*32 + ii"), index("n"));
    bounds.assume(&guard);
    bencher.bench(|| bounds.prove(black_box(&guard)));
}

#[divan::bench]
fn fail_to_prove(bencher: divan::Bencher) {
    let mut bounds = bounds();
    bounds.insert_dim(&Name::new("n"));
    let guard = Less::new(index(INDICES[3]), index("n"));
    bencher.bench(|| bounds.prove(black_box(&guard)));
}
