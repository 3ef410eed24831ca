//! A short session of the fuzzer, the same each time. `cargo run -p tilewright --example fuzz` is the long one.

#[path = "../examples/fuzz/case.rs"]
mod case;
#[path = "../examples/fuzz/fuzzer.rs"]
mod fuzzer;
#[path = "../examples/fuzz/mutate.rs"]
mod mutate;
#[path = "../examples/fuzz/rng.rs"]
mod rng;

use std::path::Path;

use fuzzer::{Fuzzer, corpus};

#[test]
fn mutated_scripts_neither_panic_nor_hang() {
    let corpus = corpus(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../schedule/tests/scripts"));
    let tally = {
        let mut fuzzer = Fuzzer::new(None);
        fuzzer.session(&corpus, 6, &mut |n| n < 400)
    };
    let found = tally.failures.iter().map(|it| format!("{:?}\n{}", it.verdict, it.text));
    let found: Vec<String> = found.collect();
    assert!(found.is_empty(), "{}", found.join("\n\n"));
    // Every stage is reached, or the mutations are too rough.
    let [text, _, _, step, _, _, source] = tally.came;
    assert!(text > 0 && step > 0 && source > 0, "{:?} of {:?}", tally.came, case::ALL);
}
