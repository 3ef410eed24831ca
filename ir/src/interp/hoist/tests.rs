use std::fmt::Write;

use indexmap::IndexMap;
use proptest::prelude::*;

use super::{
    super::{
        InterpError, Tensor, allocate,
        machine::Machine,
        resolve::{Given, MOST_HELD, Resolver, shapes},
        tables::tables,
    },
    hoist,
};
use crate::{DType, text};

/// The bits of all buffers after a run, or the fault, as programs are resolved and with what loops do not change moved out.
fn both_ways(text: &str) -> [Result<Vec<Vec<u64>>, InterpError>; 2] {
    let func = text::parse(text).expect("the generator makes programs");
    let (dims, shapes) =
        (IndexMap::new(), shapes(&func, &IndexMap::new(), MOST_HELD).expect("sizes are small"));
    let inputs = [(DType::F32, 24), (DType::I32, 6)]
        .map(|(dtype, len)| Tensor::new(dtype, &[len], (0..len).map(|it| (it * 5 % 7) as f64)));
    let data = allocate(&func, &shapes, &inputs).expect("the inputs fit");
    let tables = tables(&func, &shapes, &|buffer, at| data[buffer][at]);
    let code = || {
        let mut resolver =
            Resolver::new(Given { func: &func, dims: &dims, shapes: &shapes, tables: &tables });
        (resolver.stmt(&func.body).expect("names are in scope"), resolver.slots)
    };
    let run = |code, env| {
        let bits = |it: Vec<f64>| it.into_iter().map(f64::to_bits).collect();
        let res = Machine::new(env, data.clone()).run(&code);
        res.map(|it| it.into_iter().map(bits).collect()).map_err(|it| it.explain(&func, &shapes))
    };
    let (plain, slots) = code();
    let (hoisted, env) = hoist(code().0, slots);
    [run(plain, vec![0; slots]), run(hoisted, env)]
}

/// An index over some variables, most often affine; it may be negative, overflow or divide by zero.
fn index(vars: &'static [&'static str]) -> BoxedStrategy<String> {
    let leaf = prop_oneof![
        4 => prop::sample::select(vars).prop_map(str::to_owned),
        2 => (-1..5i64).prop_map(|it| it.to_string()),
        1 => prop::sample::select(&["9223372036854775807", "4611686018427387904"][..]).prop_map(str::to_owned),
    ];
    let sum = prop::collection::vec((-1..7i64, prop::sample::select(vars)), 1..4).prop_map(|it| {
        it.iter().fold("0".to_owned(), |sum, (factor, var)| format!("{sum} + {factor}*{var}"))
    });
    let op = |inner: BoxedStrategy<String>| {
        (prop::sample::select(&["+", "*", "floordiv", "mod", "min", "max", "xor"][..]), inner.clone(), inner)
            .prop_map(|(op, a, b)| match op {
                "min" | "max" | "xor" => format!("{op}({a}, {b})"),
                _ => format!("({a}) {op} ({b})"),
            })
    };
    let small = (1..5i64).prop_map(|it| it.to_string()).boxed();
    let divided = (prop::sample::select(&["floordiv", "mod"][..]), sum.clone(), small)
        .prop_map(|(op, a, b)| format!("({a}) {op} {b}"));
    prop_oneof![6 => sum.clone(), 3 => divided, 1 => leaf.prop_recursive(2, 6, 2, move |it| op(it.boxed()))]
        .boxed()
}

/// Loops around a block with a loop around a second block in it, and what those check, load and store.
fn program() -> impl Strategy<Value = String> {
    const OUTER: &[&str] = &["a", "b", "c"];
    const BODY: &[&str] = &["w", "x", "p", "q"];
    const INNER: &[&str] = &["u", "v", "d"];
    let extents = (
        1..4i64,
        prop_oneof![3 => (1..4i64).prop_map(|it| it.to_string()), 1 => Just("a + 1".to_owned())],
        1..3i64,
    );
    let bindings = [index(OUTER), index(OUTER)];
    let domains = (1..30i64, 1..30i64, any::<bool>());
    let guards = prop::collection::vec((index(OUTER), 0..20i64), 0..2);
    let inner = (1..4i64, index(INNER), index(INNER), index(BODY), index(BODY), index(BODY));
    (extents, bindings, domains, guards, inner, any::<bool>()).prop_map(
        |((a, b, c), [u, v], (du, dv, reduces), guards, (d, w, place, read, cond, element), gathers)| {
            let guards: Vec<_> = guards.iter().map(|(it, most)| format!("{it} < {most}")).collect();
            let guards = if guards.is_empty() { String::new() } else { format!(" if {}", guards.join(" && ")) };
            let kind = if reduces { "reduce " } else { "" };
            let element = if gathers { format!("A[assume(ids[{element}] < 24)]") } else { "1.5f32".to_owned() };
            let mut out = "func f()\n  in A: f32[24]\n  in ids: i32[6] below 24\n  temp T: f32[6, 5]\n  temp S: f32[9, 4]\n\n".to_owned();
            let body = format!(
                "  for a in 0..{a}
    for b in 0..{b}
      for c in 0..{c}
        block X(u: {du} = {u}, v: {kind}{dv} = {v}){guards}
          init
            T[u, v] = f32{{u*3 + v}}
          for d in 0..{d}
            block Y(w: 40 = {w}, x: 9 = {place}, p: 30 = u, q: 30 = v)
              S[x, w mod 4] = T[p, q] + select({cond} < 3, A[{read}], {element}) * f32{{w + p}}
"
            );
            write!(out, "{body}").expect("texts grow");
            out
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, ..ProptestConfig::default() })]

    #[test]
    fn hoisting_changes_neither_results_nor_the_first_fault(text in program()) {
        let [plain, hoisted] = both_ways(&text);
        prop_assert_eq!(plain, hoisted, "{}", text);
    }
}
