//! The speed of answers to questions of dependences.

use tilewright_ir::{Less, Name, solve::Problem};

fn main() {
    divan::main();
}

/// Thread `t` and another thread `u`: a name, an equality.
const MAPS: &[(&str, &str, &str)] = &[
    ("rows", "i*8 + x", "i*8 + 8 + y"),
    ("ring", "(i + 2) mod 3*1024 + x", "i mod 3*1024 + y"),
    (
        "tiles",
        "t floordiv 16*64 + t mod 16*4 + i mod 2*16 + x mod 4",
        "u floordiv 16*64 + u mod 16*4 + i mod 2*16 + y mod 4",
    ),
    ("meets", "t*5 + x", "u*3 + y + 40"),
];

#[divan::bench(args = MAPS.iter().map(|it| it.0))]
fn solve(bencher: divan::Bencher, name: &str) {
    let map = MAPS.iter().find(|it| it.0 == name).expect("the name of one of them");
    let read = |text: &str| text.parse().expect("the maps above are well formed");
    let mut problem = Problem::new();
    for (var, high) in [("t", 255), ("u", 255), ("i", 1 << 31), ("x", 7), ("y", 7)] {
        problem.var(&Name::new(var), 0, high);
    }
    problem.equal(&read(map.1), &read(map.2));
    problem.less(&Less::new(read("t"), read("u")));
    bencher.bench(|| problem.solve());
}
