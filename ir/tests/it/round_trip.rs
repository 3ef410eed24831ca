//! Random functions, printed and parsed; broken texts, which are answered and never panic.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::common::Choices;
use proptest::{collection::vec, prelude::*};
use tilewright_ir::{DType, Func, Index, InterpError, Tensor, Value, VerifyErrorKind, interp, text, verify};

/// Failures are kept as tests of their own, not in a file.
fn cases(count: u32) -> ProptestConfig {
    ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(count) }
}

fn numbers() -> impl Strategy<Value = Vec<u64>> {
    vec(prop_oneof![0u64..16, any::<u64>()], 0..300)
}

proptest! {
    #![proptest_config(cases(500))]

    #[test]
    fn parse_undoes_print(numbers in numbers()) {
        let func = Choices::new(&numbers).func();
        prop_assert_eq!(verify(&func), Ok(()), "{}", func);
        let printed = text::print(&func).text;
        let parsed = text::parse(&printed);
        prop_assert_eq!(parsed.as_ref(), Ok(&func), "{}", printed);
        // Maps are equal in any order, and order is seen in the text.
        prop_assert_eq!(text::print(&parsed.unwrap()).text, printed);
    }

    #[test]
    fn broken_texts_are_answered(numbers in numbers(), at in any::<prop::sample::Index>(), with in "[ -~\n\té]{0,3}", cut in 0usize..4) {
        let printed = Choices::new(&numbers).func().to_string();
        let chars: Vec<char> = printed.chars().collect();
        let at = at.index(chars.len());
        let rest = chars[at..].iter().skip(cut);
        let broken: String = chars[..at].iter().copied().chain(with.chars()).chain(rest.copied()).collect();
        if let Ok(func) = text::parse(&broken) {
            let _ = verify(&func);
            prop_assert_eq!(text::parse(&func.to_string()), Ok(func));
        }
    }

    #[test]
    fn any_text_is_answered(source in "(func f\n)?[ a-z0-9(\\[\\])@:=<+*\"\\\\#{}.,\n\t/-]{0,80}|\\PC{0,40}") {
        let _ = text::parse(&source);
        let _ = source.parse::<Index>();
        let _ = source.parse::<Value>();
    }
}

/// Each would take the stack, the memory or the clock if nothing stopped it.
#[test]
fn hostile_texts_are_refused() {
    let deep = 100_000;
    let block = |value: &str| format!("func f\n  out A: f32[4]\n\n  block A()\n    A[0] = {value}\n");
    let nested: String = (1..2000).map(|it| "  ".repeat(it) + "for i in 0..2\n").collect();
    let texts = [
        block(&format!("{}1.0f32{}", "(".repeat(deep), ")".repeat(deep))),
        block(&format!("{}A[0]", "-".repeat(deep))),
        block(&format!("{}1.0f32", "exp(".repeat(deep))),
        block(&format!("1.0f32{}", " + 1.0f32".repeat(deep))),
        block(&format!("A[{}0{}]", "min(".repeat(deep), ", 0)".repeat(deep))),
        block(&format!("A[n{}]", " + n".repeat(deep))),
        block(&format!("A[n{}]", " floordiv m".repeat(deep))),
        block(&format!("A[{}n]", "-".repeat(deep))),
        block(&format!("{}1.0f32", "select(true, ".repeat(deep))),
        format!("func f\n{nested}"),
        format!("func f\n  for i in 0..{}\n", "9".repeat(deep)),
        format!("func {}", "f".repeat(deep)),
        format!("func f\n  for i in 0..4 #{{a: \"{}\n", "\\".repeat(deep)),
        "func f\n".to_owned() + &"  in A: f32[4]\n".repeat(2),
        "\0".to_owned(),
        "func f\n  for i in 0..4 #{a: \"\\u{110000}\"}".to_owned(),
        "func f\n  for i in 0..4 #{a: \"\\u{ffffffffffffffff}\"}".to_owned(),
        "func f\r\n\u{2003}for i in 0..4".to_owned(),
        "func f(".to_owned() + &"n,".repeat(deep),
    ];
    for source in texts {
        let answer = text::parse(&source).map_err(|it| it.to_string()).and_then(|func| match verify(&func) {
            Ok(()) => Ok(()),
            Err(errors) => Err(errors[0].to_string()),
        });
        let message = answer.expect_err(&source[..source.len().min(80)]);
        assert!(message.len() < 300 || source.starts_with("func fff"), "{message}");
    }
}

#[test]
fn the_depth_limit_is_where_it_says() {
    let fits = |n: u32| format!("{}a", "-".repeat(n as usize)).parse::<Index>().is_ok();
    assert!(fits(text::MAX_DEPTH - 1));
    assert!(!fits(text::MAX_DEPTH));
}

/// A program whose ranges may be wrong: two loops, a guard, affine bindings and subscripts.
fn affine(numbers: &[i64]) -> String {
    let mut numbers = numbers.iter().copied().cycle();
    let mut next = |items: &[i64]| {
        let count = i64::try_from(items.len()).unwrap();
        items[usize::try_from(numbers.next().unwrap_or(0).rem_euclid(count)).unwrap()]
    };
    let mut linear = |a: &str, b: &str| {
        format!("{a}*{} + {b}*{} + {}", next(&[1, 1, 0, -1]), next(&[0, 0, 0, 1, 2]), next(&[0, 0, 1, 2, -1]))
    };
    let (v, w, guard) = (linear("i", "j"), linear("j", "i"), linear("i", "j"));
    let (x, y, z, condition) = (linear("v", "w"), linear("w", "v"), linear("w", "v"), linear("v", "w"));
    let (ei, ej) = (next(&[1, 2, 3, 4]), next(&[0, 1, 2]));
    let (sx, sy, sz) = (next(&[6, 7, 12]), next(&[2, 5, 7]), next(&[2, 5, 7]));
    format!(
        "func f(n)
  in A: f32[n + {sz}]
  out B: f32[n + {sx}, n + {sy}]

  for i in 0..{ei}
    for j in 0..n + {ej}
      block B(v: n + {sx} = {v}, w: n + {sy} = {w}) if {guard} < {}
        B[{x}, {y}] = select({condition} < {}, A[{z}], 1.0f32)
",
        next(&[2, 5, 20, 80]),
        next(&[0, 1, 5, 70]),
    )
}

/// The input of an affine program.
fn ones(func: &Func, size: i64) -> Tensor {
    let len = func.buffers["A"].shape[0].eval(&|_| Some(size)).unwrap();
    let len = usize::try_from(len).unwrap();
    Tensor::new(DType::F32, &[len], (0..len).map(|_| 1.0))
}

proptest! {
    #![proptest_config(cases(2000))]

    /// What the verifier says of ranges is true: the interpreter, run at the sizes of the example, goes wrong too.
    #[test]
    fn refused_ranges_are_wrong(numbers in vec(0i64..100, 40)) {
        let func = text::parse(&affine(&numbers)).unwrap();
        let Err(errors) = verify(&func) else { return Ok(()) };
        let size = errors.iter().find_map(|it| match &it.kind {
            VerifyErrorKind::OutOfDomain { example, .. } | VerifyErrorKind::OutOfBounds { example, .. } => {
                Some(example.0[0].1)
            }
            _ => None,
        });
        let size = size.expect("only ranges are wrong");
        let run = interp::run(&func, &[("n".into(), size)].into(), &[ones(&func, size)]);
        let is_range = matches!(run, Err(InterpError::OutOfBounds { .. } | InterpError::OutsideDomain { .. }));
        prop_assert!(is_range, "{func}{errors:?}\n{run:?}");
    }
}
