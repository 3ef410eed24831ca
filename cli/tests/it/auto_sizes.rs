//! First schedules without search, at random sizes.
//!
//! `TILEWRIGHT_SEED` chooses others, `TILEWRIGHT_AUTO` how many.

use super::auto::subjects;

/// Products of any size become kernels; small ones are run.
#[test]
fn products_of_random_sizes() {
    let number = |name: &str, usual: u64| std::env::var(name).map_or(usual, |it| it.parse().unwrap());
    let mut state = number("TILEWRIGHT_SEED", 1);
    let mut below = |count: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        i64::try_from((state >> 33) % count).unwrap()
    };
    for _ in 0..number("TILEWRIGHT_AUTO", 6) {
        let [m, n, k] = [(); 3].map(|()| below(300) + 1);
        let layout = ["NN", "NT", "TN", "TT"][usize::try_from(below(4)).unwrap()];
        for (at, dtype) in ["f32", "f16", "bf16"].into_iter().enumerate() {
            // The copy engine and stores of 16 bits come with aligned rows and an output as narrow as the factors.
            let aligned = |it: i64| if at > 0 && below(2) == 0 { (it + 7) / 8 * 8 } else { it };
            let [m, n, k] = [m, n, k].map(aligned);
            let out = if (m + n + k) % 2 == 0 { dtype } else { "f32" };
            let mut expected = None;
            for word in ["sm_80", "sm_90a", "cpu"] {
                let line =
                    format!("matmul {word} 0 m={m} n={n} k={k} dtype={dtype} out={out} layout={layout}");
                let subject = subjects(&line).remove(0);
                let made = subject.made();
                let case = subject.case(&made);
                if m * n * k < 100_000 {
                    let scheduled = case.schedule();
                    let expected = expected.get_or_insert_with(|| case.expected(&scheduled));
                    case.check_kernels(&scheduled, expected);
                } else {
                    case.lower(&case.schedule().after, &subject.target);
                }
            }
        }
    }
}

/// Convolutions of any shape are products of matrices on a GPU, and right.
#[test]
fn convolutions_of_random_sizes() {
    let number = |name: &str, usual: u64| std::env::var(name).map_or(usual, |it| it.parse().unwrap());
    let mut state = number("TILEWRIGHT_SEED", 1);
    let mut within = |least: i64, most: i64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        least + i64::try_from((state >> 33) % u64::try_from(most - least + 1).unwrap()).unwrap()
    };
    for _ in 0..number("TILEWRIGHT_AUTO", 6) {
        let (kernel, stride, pad, batch) = (within(1, 5), within(1, 3), within(0, 2), within(1, 3));
        let [height, width] = [(); 2].map(|()| within((kernel - 2 * pad).max(1), 20));
        // Whole vectors of channels take another way than odd ones.
        let [channels, filters] =
            [(); 2].map(|()| if within(0, 1) == 0 { within(1, 40) } else { 8 * within(1, 5) });
        for (dtype, word) in [("f16", "sm_80"), ("bf16", "sm_90a"), ("f32", "sm_90a"), ("f64", "sm_80")] {
            let line = format!(
                "conv2d {word} 1e-4 batch={batch} height={height} width={width} channels={channels} filters={filters} kernel={kernel} stride={stride} pad={pad} dtype={dtype}"
            );
            let subject = subjects(&line).remove(0);
            let made = subject.made();
            assert_eq!(made.rule, "contraction", "{}", subject.what);
            let case = subject.case(&made);
            let scheduled = case.schedule();
            case.check_kernels(&scheduled, &case.expected(&scheduled));
        }
    }
}
