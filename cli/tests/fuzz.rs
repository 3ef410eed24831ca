//! A short session of the fuzzer, the same each time. `cargo run -p tilewright --example fuzz` is the long one.

#[path = "../examples/fuzz/case.rs"]
mod case;
#[path = "../examples/fuzz/drive.rs"]
mod drive;
#[path = "../examples/fuzz/mutate.rs"]
mod mutate;
#[path = "../examples/fuzz/rng.rs"]
mod rng;

use std::path::Path;

use drive::{Fuzzer, corpus};

#[test]
fn mutated_scripts_neither_panic_nor_hang() {
    let corpus = corpus(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../schedule/tests/scripts"));
    let tally = Fuzzer::new(None).session(&corpus, 6, &mut |n| n < 400);
    assert!(tally.found.is_empty(), "{:#?}", tally.found);
    // Every stage is reached, or the mutations are too rough.
    let [text, _, _, step, lower, _, source] = tally.came;
    assert!(text > 0 && step > 0 && lower > 0 && source > 0, "{:?}", tally.came);
}
