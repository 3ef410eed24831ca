//! Random functions, printed and parsed; broken texts, which are answered and never panic.

mod common;

use common::Choices;
use proptest::{collection::vec, prelude::*};
use tilewright_ir::{Index, Value, text, verify};

fn numbers() -> impl Strategy<Value = Vec<u64>> {
    vec(prop_oneof![0u64..16, any::<u64>()], 0..300)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

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
