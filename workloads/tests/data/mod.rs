//! What the shipped workloads compute in which data decide something, against loops written out in Rust.

use crate::common::{close, func, int, run, word};
use ir::DType;

/// A number that is one of an element.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is a small natural number")]
fn place(number: f64) -> usize {
    number as usize
}

#[test]
fn argmax_is_the_first_place_of_the_greatest() {
    let func = func("argmax", &[("m", int(3)), ("n", int(20))]);
    let (inputs, outputs) = run(&func, &[]);
    for (row, at) in inputs[0].data.chunks(20).zip(&outputs[0].data) {
        let most = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        assert_eq!(row.iter().position(|it| *it >= most).unwrap(), place(*at));
    }
}

#[test]
fn cross_entropy_is_minus_the_logarithm_of_softmax_at_the_label() {
    let func = func("cross_entropy", &[("m", int(3)), ("n", int(8))]);
    let (inputs, outputs) = run(&func, &[]);
    for (i, (row, got)) in inputs[0].data.chunks(8).zip(&outputs[0].data).enumerate() {
        let sum: f64 = row.iter().map(|it| it.exp()).sum();
        let label = place(inputs[1].data[i]);
        close(DType::F32, *got, sum.ln() - row[label]);
    }
}

#[test]
fn embedding_gives_rows_by_number() {
    let func = func("embedding", &[("m", int(5)), ("n", int(3)), ("rows", int(7))]);
    let (inputs, outputs) = run(&func, &[]);
    for (id, out) in inputs[0].data.iter().zip(outputs[0].data.chunks(3)) {
        assert_eq!(&inputs[1].data[place(*id) * 3..][..3], out);
    }
}

#[test]
fn csr_matmul_multiplies_sparse_rows() {
    let sizes = [("m", 4), ("n", 3), ("k", 5), ("most", 12), ("nonzeros", 13)];
    let sizes: Vec<_> = sizes.iter().map(|(name, it)| (*name, int(*it))).collect();
    let func = func("csr_matmul", &sizes);
    let (inputs, outputs) = run(&func, &[]);
    let [start, column, a, b] = [0, 1, 2, 3].map(|at| &inputs[at].data);
    for (i, out) in outputs[0].data.chunks(3).enumerate() {
        for (j, got) in out.iter().enumerate() {
            let of_row = place(start[i])..place(start[i + 1]).max(place(start[i]));
            close(DType::F32, *got, of_row.map(|at| a[at] * b[place(column[at]) * 3 + j]).sum());
        }
    }
}

#[test]
fn attention_weighs_values_by_softmax_of_what_a_query_sees() {
    for mask in ["none", "causal", "length"] {
        let sizes = [("heads", 2), ("group", 2), ("queries", 4), ("keys", 5), ("depth", 3)];
        let mut sizes: Vec<_> = sizes.iter().map(|(name, it)| (*name, int(*it))).collect();
        sizes.extend([("mask", word(mask)), ("dtype", word("f32"))]);
        let func = func("attention", &sizes);
        let (inputs, outputs) = run(&func, &[]);
        let [q, k, v] = [0, 1, 2].map(|at| &inputs[at].data);
        for (at, out) in outputs[0].data.chunks(3).enumerate() {
            let query = &q[at * 3..][..3];
            let sees = |key: &usize| match mask {
                "causal" => *key <= at % 4,
                "length" => *key as f64 <= inputs[3].data[0],
                _ => true,
            };
            let weight = |key: usize| (0..3).map(|d| query[d] * k[key * 3 + d]).sum::<f64>() * 0.125;
            let visible: Vec<_> = (0..5).filter(sees).map(|key| (key, weight(key).exp())).collect();
            let sum: f64 = visible.iter().map(|it| it.1).sum();
            for (e, got) in out.iter().enumerate() {
                let want: f64 = visible.iter().map(|(key, weight)| weight / sum * v[key * 3 + e]).sum();
                close(DType::F32, *got, want);
            }
        }
    }
}
