//! What the shipped workloads compute, against loops written out in Rust.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;
mod data;
mod scaled;

use common::{close, func, int, run, word};
use indexmap::IndexMap;
use ir::{DType, Func, Name, Role, cost, number::round, text};
use schedule::workload::{self, Param};

fn sizes(func: &Func) -> IndexMap<Name, i64> {
    func.dims.iter().map(|it| (it.clone(), 3)).collect()
}

#[test]
fn every_program_prints_as_expected() {
    for shipped in tilewright_workloads::all() {
        let workload = workload::parse(shipped.text).unwrap();
        assert_eq!(workload.name(), shipped.name);
        let func = workload.instantiate(&IndexMap::new()).unwrap();
        let listing = text::print(&func).text;
        assert_eq!(text::parse(&listing).unwrap(), func, "{}", shipped.name);
        insta::assert_snapshot!(shipped.name, listing);
    }
    let f16 = [("dtype", word("f16")), ("out", word("f16")), ("layout", word("NT")), ("m", word("m"))];
    insta::assert_snapshot!("matmul_f16_nt_symbolic", text::print(&func("matmul", &f16)).text);
}

#[test]
fn matmul_in_every_type_and_layout() {
    for (dtype, acc, out) in [
        ("f32", "f32", "f32"),
        ("f16", "f32", "f32"),
        ("f16", "f32", "f16"),
        ("f16", "f16", "f16"),
        ("f16", "f16", "f32"),
        ("bf16", "f32", "f32"),
        ("bf16", "f32", "bf16"),
        ("tf32", "f32", "f32"),
        ("f64", "f64", "f64"),
        ("i8", "i32", "i32"),
        ("f32", "f32", "f16"),
    ] {
        for layout in ["NN", "NT", "TN", "TT"] {
            let list = [
                ("m", word("m")),
                ("n", int(5)),
                ("k", int(7)),
                ("dtype", word(dtype)),
                ("acc", word(acc)),
                ("out", word(out)),
                ("layout", word(layout)),
            ];
            let func = func("matmul", &list);
            assert_eq!(func.buffers["A"].dtype.as_str(), dtype);
            let (inputs, outputs) = run(&func, &[("m", 3)]);
            let mut temps = func.buffers.values().filter(|it| it.role == Role::Temp);
            assert!(temps.all(|it| it.dtype.as_str() == acc));
            let (a, b, c) = (&inputs[0].data, &inputs[1].data, &outputs[0]);
            assert_eq!(c.shape, [3, 5]);
            for (at, got) in c.data.iter().enumerate() {
                let (i, j) = (at / 5, at % 5);
                let a_at = |k: usize| if layout.starts_with('N') { i * 7 + k } else { k * 3 + i };
                let b_at = |k: usize| if layout.ends_with('N') { k * 5 + j } else { j * 7 + k };
                let want: f64 = (0..7).map(|k| a[a_at(k)] * b[b_at(k)]).sum();
                close(c.dtype, *got, round(c.dtype, want));
            }
            assert_eq!(cost::flops(&func, &sizes(&func)), Some(2 * 3 * 5 * 7));
        }
    }
}

#[test]
fn batch_matmul_is_one_product_each() {
    let list = [("batch", int(2)), ("m", int(3)), ("n", int(4)), ("k", int(5)), ("layout", word("NT"))];
    let func = func("batch_matmul", &list);
    let (inputs, outputs) = run(&func, &[]);
    for (at, got) in outputs[0].data.iter().enumerate() {
        let (b, i, j) = (at / 12, at / 4 % 3, at % 4);
        let want: f64 =
            (0..5).map(|k| inputs[0].data[b * 15 + i * 5 + k] * inputs[1].data[b * 20 + j * 5 + k]).sum();
        close(DType::F32, *got, want);
    }
    assert_eq!(cost::flops(&func, &sizes(&func)), Some(2 * 2 * 3 * 4 * 5));
    assert_eq!(cost::bytes(&func, &sizes(&func)), Some(4 * (2 * 3 * 5 + 2 * 5 * 4 + 2 * 3 * 4)));
}

#[test]
fn grouped_matmul_multiplies_by_the_matrix_that_is_named() {
    for (layout, out) in [("NN", "f32"), ("NT", "f16")] {
        let sizes =
            [("tiles", 4), ("tile", 3), ("n", 4), ("k", 5), ("experts", 3)].map(|(name, it)| (name, int(it)));
        let list = [&sizes[..], &[("layout", word(layout)), ("out", word(out))]].concat();
        let (inputs, outputs) = run(&func("grouped_matmul", &list), &[]);
        let [expert, x, w] = &inputs[..] else { panic!("{} inputs", inputs.len()) };
        assert!(expert.data.iter().any(|it| (it - expert.data[0]).abs() > 0.5));
        for (at, got) in outputs[0].data.iter().enumerate() {
            let (g, i, j) = (at / 12, at / 4 % 3, at % 4);
            let of = |k: usize| if layout == "NN" { k * 4 + j } else { j * 5 + k };
            let is_named = |it: u8| (expert.data[g] - f64::from(it)).abs() < 0.5;
            let matrix = (0..3).position(is_named).unwrap() * 20;
            let want: f64 = (0..5).map(|k| x.data[g * 15 + i * 5 + k] * w.data[matrix + of(k)]).sum();
            close(outputs[0].dtype, *got, want);
        }
    }
}

#[test]
fn gated_matmul_multiplies_two_products() {
    for (layout, dtype) in [("NN", "f32"), ("NT", "f16")] {
        let list =
            [("m", int(3)), ("n", int(4)), ("k", int(5)), ("layout", word(layout)), ("dtype", word(dtype))];
        let (inputs, outputs) = run(&func("gated_matmul", &list), &[]);
        let [x, w, v] = &inputs[..] else { panic!("{} inputs", inputs.len()) };
        for (at, got) in outputs[0].data.iter().enumerate() {
            let (i, j) = (at / 4, at % 4);
            let of = |k: usize| if layout == "NN" { k * 4 + j } else { j * 5 + k };
            let sum = |b: &[f64]| (0..5).map(|k| x.data[i * 5 + k] * b[of(k)]).sum::<f64>();
            let (gate, up) = (sum(&w.data), sum(&v.data));
            close(outputs[0].dtype, *got, gate / (1.0 + (-gate).exp()) * up);
        }
    }
}

#[test]
fn matmul_bias_relu_clips_at_zero() {
    let func =
        func("matmul_bias_relu", &[("m", int(4)), ("n", int(3)), ("k", int(6)), ("dtype", word("f16"))]);
    let (inputs, outputs) = run(&func, &[]);
    for (at, got) in outputs[0].data.iter().enumerate() {
        let (i, j) = (at / 3, at % 3);
        let sum: f64 = (0..6).map(|k| inputs[0].data[i * 6 + k] * inputs[1].data[k * 3 + j]).sum();
        close(DType::F16, *got, (sum + inputs[2].data[j]).max(0.0));
    }
    assert!(outputs[0].data.contains(&0.0) && outputs[0].data.iter().any(|it| *it > 0.0));
    assert_eq!(cost::flops(&func, &sizes(&func)), Some(2 * 4 * 3 * 6 + 2 * 4 * 3));
}

#[test]
fn matmul_bias_gelu_residual_is_a_layer() {
    for dtype in ["f16", "bf16", "f32", "f64"] {
        let func = func(
            "matmul_bias_gelu_residual",
            &[("m", word("m")), ("n", int(3)), ("k", int(2)), ("dtype", word(dtype)), ("layout", word("NT"))],
        );
        let (inputs, outputs) = run(&func, &[("m", 4)]);
        let [a, b, bias, residual] = [0, 1, 2, 3].map(|at| &inputs[at].data);
        for (at, got) in outputs[0].data.iter().enumerate() {
            let (i, j) = (at / 3, at % 3);
            let x: f64 = (0..2).map(|k| a[i * 2 + k] * b[j * 2 + k]).sum::<f64>() + bias[j];
            // Numbers are whole, and beyond 6 the GELU is its end.
            if x.abs() > 6.0 {
                close(outputs[0].dtype, *got, x.max(0.0) + residual[at]);
            }
        }
        assert_eq!(cost::flops(&func, &sizes(&func)), Some(3 * 3 * (2 * 2 + 1 + 5 + 1)));
    }
}

#[test]
fn elementwise_is_axpy() {
    let func = func("elementwise", &[("n", word("len")), ("alpha", Param::Float(0.5))]);
    let (inputs, outputs) = run(&func, &[("len", 9)]);
    for (at, got) in outputs[0].data.iter().enumerate() {
        close(DType::F32, *got, 0.5 * inputs[0].data[at] + inputs[1].data[at]);
    }
}

#[test]
fn row_sum_sums_rows() {
    let func = func("row_sum", &[("m", int(3)), ("n", int(8)), ("dtype", word("bf16"))]);
    let (inputs, outputs) = run(&func, &[]);
    let want: Vec<f64> = inputs[0].data.chunks(8).map(|row| row.iter().sum()).collect();
    assert_eq!(outputs[0].data, want);
}

#[test]
fn softmax_rows_sum_to_one() {
    let func = func("softmax", &[("m", int(3)), ("n", int(8))]);
    let (inputs, outputs) = run(&func, &[]);
    for (row, out) in inputs[0].data.chunks(8).zip(outputs[0].data.chunks(8)) {
        let sum: f64 = row.iter().map(|it| it.exp()).sum();
        row.iter().zip(out).for_each(|(x, y)| close(DType::F32, *y, x.exp() / sum));
        close(DType::F32, out.iter().sum(), 1.0);
    }
}

/// Mean and mean square about it, of a row.
fn moments(row: &[f64]) -> (f64, f64) {
    let mean = row.iter().sum::<f64>() / row.len() as f64;
    (mean, row.iter().map(|it| (it - mean).powi(2)).sum::<f64>() / row.len() as f64)
}

#[test]
fn log_softmax_is_the_logarithm_of_softmax() {
    let func = func("log_softmax", &[("m", int(3)), ("n", int(8))]);
    let (inputs, outputs) = run(&func, &[]);
    for (row, out) in inputs[0].data.chunks(8).zip(outputs[0].data.chunks(8)) {
        let sum: f64 = row.iter().map(|it| it.exp()).sum();
        row.iter().zip(out).for_each(|(x, y)| close(DType::F32, *y, x - sum.ln()));
    }
}

#[test]
fn layer_norm_has_the_mean_and_deviation_that_it_is_told() {
    let func = func("layer_norm", &[("m", int(3)), ("n", word("len")), ("dtype", word("f64"))]);
    let (inputs, outputs) = run(&func, &[("len", 8)]);
    let [weight, bias] = [1, 2].map(|at| &inputs[at].data);
    for (row, out) in inputs[0].data.chunks(8).zip(outputs[0].data.chunks(8)) {
        let (mean, variance) = moments(row);
        for (j, got) in out.iter().enumerate() {
            let want = (row[j] - mean) / (variance + 1e-5).sqrt() * weight[j] + bias[j];
            close(DType::F64, *got, want);
        }
    }
}

#[test]
fn rms_norm_divides_by_the_root_of_the_mean_square() {
    let func = func("rms_norm", &[("m", int(3)), ("n", int(8)), ("eps", Param::Float(0.5))]);
    let (inputs, outputs) = run(&func, &[]);
    for (row, out) in inputs[0].data.chunks(8).zip(outputs[0].data.chunks(8)) {
        let square = row.iter().map(|it| it * it).sum::<f64>() / 8.0;
        for (j, got) in out.iter().enumerate() {
            close(DType::F32, *got, row[j] / (square + 0.5).sqrt() * inputs[1].data[j]);
        }
    }
}

#[test]
fn col_sum_sums_columns() {
    let func = func("col_sum", &[("m", int(5)), ("n", int(3)), ("dtype", word("f16"))]);
    let (inputs, outputs) = run(&func, &[]);
    let want: Vec<f64> = (0..3).map(|j| inputs[0].data.iter().skip(j).step_by(3).sum()).collect();
    assert_eq!(outputs[0].data, want);
}

#[test]
fn transpose_exchanges_rows_and_columns() {
    for dtype in ["f32", "f16", "bf16", "f64", "i8"] {
        let func = func("transpose", &[("m", word("m")), ("n", int(3)), ("dtype", word(dtype))]);
        let (inputs, outputs) = run(&func, &[("m", 5)]);
        assert_eq!(outputs[0].shape, [3, 5]);
        for (at, got) in outputs[0].data.iter().enumerate() {
            close(outputs[0].dtype, *got, inputs[0].data[at % 5 * 3 + at / 5]);
        }
    }
}

#[test]
fn conv2d_pads_with_zeros() {
    for (stride, pad, kernel) in [(1, 1, 3), (2, 1, 3), (1, 0, 2), (2, 2, 3), (3, 0, 1)] {
        let (height, width, channels, filters) = (5usize, 6usize, 2usize, 3usize);
        let list = [
            ("batch", int(2)),
            ("height", int(5)),
            ("width", int(6)),
            ("channels", int(2)),
            ("filters", int(3)),
            ("kernel", int(kernel)),
            ("stride", int(stride)),
            ("pad", int(pad)),
        ];
        let func = func("conv2d", &list);
        let (inputs, outputs) = run(&func, &[]);
        let (x, w, y) = (&inputs[0].data, &inputs[1].data, &outputs[0]);
        let kernel = usize::try_from(kernel).unwrap();
        for (at, got) in y.data.iter().enumerate() {
            let f = at % filters;
            let (ox, oy) = (at / filters % y.shape[2], at / filters / y.shape[2] % y.shape[1]);
            let b = at / filters / y.shape[2] / y.shape[1];
            let mut want = 0.0;
            for (dy, dx) in (0..kernel).flat_map(|dy| (0..kernel).map(move |dx| (dy, dx))) {
                let place = |o: usize, d: usize, size: usize| {
                    let at = i64::try_from(o).unwrap() * stride + i64::try_from(d).unwrap() - pad;
                    usize::try_from(at).ok().filter(|at| *at < size)
                };
                let (Some(iy), Some(ix)) = (place(oy, dy, height), place(ox, dx, width)) else { continue };
                for c in 0..channels {
                    let weight = w[((dy * kernel + dx) * channels + c) * filters + f];
                    want += x[((b * height + iy) * width + ix) * channels + c] * weight;
                }
            }
            close(DType::F32, *got, want);
        }
    }
}

/// Texts that are cut, or changed in one place, are refused with a place in the text, or still a workload.
#[test]
fn no_text_makes_the_reader_panic() {
    for shipped in tilewright_workloads::all() {
        for at in 0..shipped.text.len() {
            let (Some(head), Some(tail)) = (shipped.text.get(..at), shipped.text.get(at..)) else { continue };
            let rest = tail.get(1..).unwrap_or_default();
            let odd = ['"', '(', ']', '0', '~', ' '][at % 6];
            for text in [head.to_owned(), format!("{head}{rest}"), format!("{head}{odd}{tail}")] {
                let made = workload::parse(&text).and_then(|it| it.instantiate(&IndexMap::new()));
                if let Err(err) = made {
                    assert!(err.span.is_none_or(|it| text.get(it).is_some()), "{text}");
                }
            }
        }
    }
}

/// How near results are that come of one rounded sum after another.
const NEAR: DType = DType::F16;

/// A row divided by the root of its mean square, times the weights.
fn normed(row: &[f64], weight: &[f64]) -> Vec<f64> {
    let squares: f64 = row.iter().map(|it| it * it).sum();
    let scale = 1.0 / (squares / row.len() as f64 + 1e-6).sqrt();
    row.iter().zip(weight).map(|(it, by)| it * scale * by).collect()
}

/// A row times column `j` of a matrix with so many columns.
fn times(row: &[f64], matrix: &[f64], columns: usize, j: usize) -> f64 {
    row.iter().enumerate().map(|(k, it)| it * matrix[k * columns + j]).sum()
}

#[test]
fn rms_norm_matmul_multiplies_rows_of_unit_length() {
    for layout in ["NN", "NT"] {
        let list = [("m", int(3)), ("n", int(4)), ("k", int(5)), ("layout", word(layout))];
        let (inputs, outputs) = run(&func("rms_norm_matmul", &list), &[]);
        let [x, weight, w] = &inputs[..] else { panic!("{} inputs", inputs.len()) };
        let stored = |k: usize, j: usize| if layout == "NN" { w.data[k * 4 + j] } else { w.data[j * 5 + k] };
        let matrix: Vec<_> = (0..20).map(|at| stored(at / 4, at % 4)).collect();
        for (at, got) in outputs[0].data.iter().enumerate() {
            let row = normed(&x.data[at / 4 * 5..][..5], &weight.data);
            close(NEAR, *got, times(&row, &matrix, 4, at % 4));
        }
    }
}

#[test]
fn gated_mlp_is_a_feed_forward_layer() {
    let list = [("m", int(3)), ("width", int(3)), ("hidden", int(2))];
    let (inputs, outputs) = run(&func("gated_mlp", &list), &[]);
    let [x, weight, w, v, u] = &inputs[..] else { panic!("{} inputs", inputs.len()) };
    for (at, got) in outputs[0].data.iter().enumerate() {
        let row = normed(&x.data[at / 3 * 3..][..3], &weight.data);
        let hidden = |j: usize| {
            let (gate, up) = (times(&row, &w.data, 2, j), times(&row, &v.data, 2, j));
            gate / (1.0 + (-gate).exp()) * up
        };
        let hidden: Vec<_> = (0..2).map(hidden).collect();
        close(NEAR, *got, x.data[at] + times(&hidden, &u.data, 3, at % 3));
    }
}

#[test]
fn int8_matmul_scales_groups_of_weights() {
    let list = [("m", int(3)), ("n", int(4)), ("k", int(5)), ("group", int(2)), ("dtype", word("f32"))];
    let (inputs, outputs) = run(&func("int8_matmul", &list), &[]);
    let [x, w, scale] = &inputs[..] else { panic!("{} inputs", inputs.len()) };
    for (at, got) in outputs[0].data.iter().enumerate() {
        let (i, j) = (at / 4, at % 4);
        let term = |k: usize| x.data[i * 5 + k] * w.data[j * 5 + k] * scale.data[j * 3 + k / 2];
        close(DType::F32, *got, (0..5).map(term).sum());
    }
}
