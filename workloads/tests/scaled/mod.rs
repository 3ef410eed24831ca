//! Products of factors with scales.

use ir::DType;

use crate::common::{close, func, int, run, word};

#[test]
fn mx_matmul_scales_each_32_elements_of_a_row() {
    let list = [("m", int(140)), ("n", int(3)), ("k", int(140)), ("out", word("f32"))];
    let (inputs, outputs) = run(&func("mx_matmul", &list), &[]);
    let [x, w, x_scale, w_scale] = &inputs[..] else { panic!("{} inputs", inputs.len()) };
    // Tiles of 128 rows and four scales each, 32 x 16, two of them for the 140 elements of a row.
    let place = |row: usize, k: usize| {
        (row / 128 * 2 + k / 128) * 512 + row % 32 * 16 + row / 32 % 4 * 4 + k / 32 % 4
    };
    for (at, got) in outputs[0].data.iter().enumerate() {
        let (i, j) = (at / 3, at % 3);
        let term = |k: usize| {
            x.data[i * 140 + k] * x_scale.data[place(i, k)] * w.data[j * 140 + k] * w_scale.data[place(j, k)]
        };
        close(DType::F32, *got, (0..140).map(term).sum());
    }
}

#[test]
fn block_scaled_matmul_scales_each_group_of_the_sum() {
    let list = [
        ("m", int(3)),
        ("n", int(5)),
        ("k", int(5)),
        ("group", int(2)),
        ("dtype", word("f32")),
        ("out", word("f32")),
    ];
    let (inputs, outputs) = run(&func("block_scaled_matmul", &list), &[]);
    let [x, w, x_scale, w_scale] = &inputs[..] else { panic!("{} inputs", inputs.len()) };
    for (at, got) in outputs[0].data.iter().enumerate() {
        let (i, j) = (at / 5, at % 5);
        let term = |k: usize| {
            x.data[i * 5 + k]
                * w.data[j * 5 + k]
                * x_scale.data[k / 2 * 3 + i]
                * w_scale.data[j / 2 * 3 + k / 2]
        };
        close(DType::F32, *got, (0..5).map(term).sum());
    }
}
