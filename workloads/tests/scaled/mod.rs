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

#[test]
fn floats_of_four_bits_are_multiplied_two_by_two() {
    four_bits("nvfp4_matmul", 8);
    four_bits("mxfp4_matmul", 16);
}

/// A workload whose factors are bytes of two floats e2m1, so many of which have a scale.
fn four_bits(workload: &str, of_scale: usize) {
    let list = [("m", int(140)), ("n", int(3)), ("k", int(150)), ("out", word("f32"))];
    let (inputs, outputs) = run(&func(workload, &list), &[]);
    let [x, w, x_scale, w_scale, factor @ ..] = &inputs[..] else { panic!("{} inputs", inputs.len()) };
    let alpha = factor.first().map_or(1.0, |it| it.data[0]);
    // Tiles of 128 rows and four scales for the 75 bytes of a row.
    let tiles = 75usize.div_ceil(4 * of_scale);
    let place = |row: usize, byte: usize| {
        let tile = row / 128 * tiles + byte / (4 * of_scale);
        tile * 512 + row % 32 * 16 + row / 32 % 4 * 4 + byte / of_scale % 4
    };
    let float = |byte: f64, high: bool| {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is a byte")]
        let digit = if high { byte as usize / 16 } else { byte as usize % 16 };
        let magnitude = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0][digit % 8];
        if digit < 8 { magnitude } else { -magnitude }
    };
    for (at, got) in outputs[0].data.iter().enumerate() {
        let (i, j) = (at / 3, at % 3);
        let term = |it: usize| {
            let (a, b) = (x.data[i * 75 + it], w.data[j * 75 + it]);
            let sum = float(a, false) * float(b, false) + float(a, true) * float(b, true);
            sum * x_scale.data[place(i, it)].abs() * w_scale.data[place(j, it)].abs()
        };
        close(DType::F32, *got, (0..75).map(term).sum::<f64>() * alpha);
    }
}
