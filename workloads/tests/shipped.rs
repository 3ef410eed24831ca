//! What the shipped workloads compute, against loops written out in Rust.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use indexmap::IndexMap;
use ir::{
    DType, Func, Name, Role, Tensor, cost, interp,
    number::round,
    reference::{Elements, Reference},
    text,
};
use schedule::workload::{self, Param};

fn params(list: &[(&str, Param)]) -> IndexMap<String, Param> {
    list.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
}

fn int(value: i64) -> Param {
    Param::Int(value)
}

fn word(value: &str) -> Param {
    Param::Text(value.to_owned())
}

fn func(name: &str, list: &[(&str, Param)]) -> Func {
    workload::parse(tilewright_workloads::find(name).unwrap()).unwrap().instantiate(&params(list)).unwrap()
}

/// Inputs with small numbers that every type has.
fn inputs(func: &Func, dims: &IndexMap<Name, i64>) -> Vec<Tensor> {
    let inputs = func.buffers.values().filter(|it| it.role == Role::Input);
    let tensor = |(salt, it): (usize, &ir::Buffer)| {
        let size =
            |it: &ir::Index| usize::try_from(it.eval(&|name| dims.get(name).copied()).unwrap()).unwrap();
        let shape: Vec<_> = it.shape.iter().map(size).collect();
        let count: usize = shape.iter().product();
        // What reads go through holds what its elements are below.
        let below = it.below.as_ref().map(|it| it.eval(&|name| dims.get(name).copied()).unwrap() as f64);
        let number = |at: usize| ((at * 7 + salt * 5) % 13) as f64;
        Tensor::new(
            it.dtype,
            &shape,
            (0..count).map(|at| below.map_or(number(at) - 6.0, |it| number(at) % it)),
        )
    };
    inputs.enumerate().map(tensor).collect()
}

/// Runs the program, checks every element against the lazy reference, and gives inputs and outputs.
fn run(func: &Func, dims: &[(&str, i64)]) -> (Vec<Tensor>, Vec<Tensor>) {
    let dims: IndexMap<Name, i64> = dims.iter().map(|(name, it)| (Name::new(*name), *it)).collect();
    let inputs = inputs(func, &dims);
    let outputs = interp::run(func, &dims, &inputs).unwrap();
    let elements: Vec<_> = inputs.iter().map(|it| Elements::Numbers(&it.data)).collect();
    let mut reference = Reference::new(func, &dims, &elements).unwrap();
    let names = func.buffers.iter().filter(|(_, it)| it.role == Role::Output).map(|(name, _)| name);
    for (name, output) in names.zip(&outputs) {
        for (at, got) in output.data.iter().enumerate() {
            let mut index = Vec::new();
            let mut rest = at;
            for size in output.shape.iter().rev() {
                index.insert(0, i64::try_from(rest % size).unwrap());
                rest /= size;
            }
            let want = reference.element(name, &index).unwrap();
            close(output.dtype, *got, want.value);
            let (error, allowed) = want.error(*got);
            assert!(error <= allowed, "{name}{index:?} is {got}, not {want:?}");
        }
    }
    (inputs, outputs)
}

/// Within a few roundings of the type.
fn close(dtype: DType, got: f64, want: f64) {
    let unit = match dtype {
        DType::F16 => 1e-3,
        DType::Bf16 => 8e-3,
        DType::F32 => 1e-6,
        _ => 1e-14,
    };
    assert!((got - want).abs() <= 4.0 * unit * want.abs().max(1.0), "{dtype}: {got} for {want}");
}

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
