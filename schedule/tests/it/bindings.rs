//! Random programs whose iterators do not run once over their domains: bindings that are scaled, divided, shifted, reversed,
//! repeated and guarded. Whatever steps the session accepts, the interpreter gives the same values.
//!
//! `SCHEDULE_SEED` chooses other cases, `SCHEDULE_CASES` how many.

#![allow(clippy::unwrap_used, reason = "a test says where by its panic")]

use std::{cell::RefCell, collections::BTreeMap, env, fmt::Write as _};

use crate::common::{difference, inputs, sizes};
use crate::propose::{Dice, propose};
use ir::{Func, Name};
use proptest::{
    collection::vec,
    prelude::*,
    test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner},
};
use tilewright_schedule::{
    Session, Step,
    primitive::{ComputeAt, DecomposeReduction, ReverseComputeAt, Rfactor},
};

#[test]
fn accepted_schedules_of_odd_bindings_compute_the_same() {
    let number = |name: &str, default: u64| env::var(name).map_or(default, |it| it.parse().unwrap());
    let cases = u32::try_from(number("SCHEDULE_CASES", 4000)).unwrap();
    let mut seed = [0; 32];
    seed[..8].copy_from_slice(&number("SCHEDULE_SEED", 1).to_le_bytes());
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 4000, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &seed));
    let accepted: RefCell<BTreeMap<&str, u32>> = RefCell::default();
    let result = runner.run(&(vec(any::<u64>(), 4), vec(any::<u64>(), 0..8)), |(shape, numbers)| {
        let text = program(&shape);
        let before = ir::text::parse(&text).unwrap_or_else(|err| panic!("{err:?}\n{text}"));
        if !is_valid(&before) {
            return Ok(());
        }
        let mut session = Session::new(before.clone(), None);
        for number in numbers {
            if let Some(step) = step(session.func(), Dice(number))
                && session.apply(&step).is_ok()
            {
                *accepted.borrow_mut().entry(step.name()).or_default() += 1;
            }
        }
        match difference(&before, session.func()) {
            None => Ok(()),
            Some(problem) => {
                let steps: Vec<String> = session.trace().map(Step::to_ron).collect();
                let after = ir::text::print(session.func()).text;
                Err(TestCaseError::fail(format!("{problem}\n{text}\n{}\n{after}", steps.join("\n"))))
            }
        }
    });
    if let Err(err) = result {
        panic!("{err}");
    }
    let accepted = accepted.into_inner();
    println!("{accepted:?}");
    let moves = ["compute_at", "reverse_compute_at", "rfactor", "decompose_reduction", "cache_write"];
    let missing: Vec<&&str> = moves.iter().filter(|it| !accepted.contains_key(**it)).collect();
    assert!(cases < 1000 || missing.is_empty(), "never accepted: {missing:?}");
}

/// Whether the program keeps all rules and reads and leaves nothing that is not written.
fn is_valid(func: &Func) -> bool {
    let dims = sizes(func, 0);
    ir::verify(func).is_ok() && ir::interp::run(func, &dims, &inputs(func, &dims)).is_ok()
}

/// Any step, but more often one that makes the loops of a block anew.
fn step(func: &Func, mut dice: Dice) -> Option<Step> {
    let kind = dice.roll(8);
    if kind > 4 {
        return propose(func, dice);
    }
    let blocks: Vec<Name> = func.body.blocks().into_iter().map(|it| it.name.clone()).collect();
    let loops: Vec<Name> = func.loops().into_iter().map(|it| it.var.clone()).collect();
    let (block, target) = (dice.pick(&blocks)?, dice.pick(&loops)?);
    Some(match kind {
        0 | 1 => Step::ComputeAt(ComputeAt { block, target }),
        2 => Step::ReverseComputeAt(ReverseComputeAt { block, target }),
        3 => Step::DecomposeReduction(DecomposeReduction { block, target }),
        _ => Step::Rfactor(Rfactor { target, factor_axis: i64::try_from(dice.roll(2)).ok()? }),
    })
}

/// An iterator as text: the loops that drive it, and what is known of them.
struct Driven {
    loops: Vec<(String, i64)>,
    binding: String,
    guard: Option<String>,
}

/// An iterator over `0..extent`, an even number from 6 on, driven in one of many ways.
fn driven(var: &str, extent: i64, dice: &mut Dice) -> Driven {
    let one =
        |extent, binding: String| Driven { loops: vec![(var.to_owned(), extent)], binding, guard: None };
    let two = |outer, inner, binding| {
        let loops = vec![(format!("{var}0"), outer), (format!("{var}1"), inner)];
        Driven { loops, binding, guard: None }
    };
    let guarded = |it: Driven, guard: String| Driven { guard: Some(guard), ..it };
    match dice.roll(24) {
        0 => two(extent / 2, 2, format!("{var}0*2 + {var}1")),
        1 => one(extent / 2, format!("{var}*2")),
        2 => one(extent * 2, format!("{var} floordiv 2")),
        3 => {
            Driven { loops: vec![(var.to_owned(), extent), (format!("{var}r"), 2)], ..one(1, var.to_owned()) }
        }
        4 => guarded(one(extent, var.to_owned()), format!("{var} < {}", extent - 2)),
        5 => guarded(one(extent, var.to_owned()), format!("1 < {var}")),
        6 => two((extent - 4) / 2 + 1, 4, format!("{var}0*2 + {var}1")),
        7 => one(extent * 2, format!("{var} mod {extent}")),
        8 => one(extent, format!("{} - {var}", extent - 1)),
        9 => one(extent - 1, format!("{var} + 1")),
        10 => {
            let sum = format!("{var}0*4 + {var}1");
            guarded(two((extent + 3) / 4, 4, sum.clone()), format!("{sum} < {extent}"))
        }
        11 => one(extent, format!("min({var}, {})", extent - 2)),
        _ => one(extent, var.to_owned()),
    }
}

/// A nest around one block, its loops in any order.
fn nest(out: &mut String, name: &str, iters: &[(&str, bool, i64)], lines: &[String], dice: &mut Dice) {
    let mut loops = Vec::new();
    let mut heads = Vec::new();
    let mut guards = Vec::new();
    for (iter, reduces, extent) in iters {
        let it = driven(&format!("{}{iter}", name.to_lowercase()), *extent, dice);
        heads.push(format!("{iter}: {}{extent} = {}", if *reduces { "reduce " } else { "" }, it.binding));
        loops.extend(it.loops);
        guards.extend(it.guard);
    }
    let turn = dice.roll(loops.len());
    loops.rotate_left(turn);
    let mut indent = "  ".to_owned();
    for (var, extent) in loops {
        writeln!(out, "{indent}for {var} in 0..{extent}").unwrap();
        indent.push_str("  ");
    }
    let guards = if guards.is_empty() { String::new() } else { format!(" if {}", guards.join(" && ")) };
    writeln!(out, "{indent}block {name}({}){guards}", heads.join(", ")).unwrap();
    for it in lines {
        writeln!(out, "{indent}  {it}").unwrap();
    }
}

fn lines(init: Option<&str>, body: &str) -> Vec<String> {
    let init = init.map(|it| vec!["init".to_owned(), format!("  {it}")]);
    init.into_iter().flatten().chain([body.to_owned()]).collect()
}

/// A producer and a consumer, their results filled before or not.
fn program(shape: &[u64]) -> String {
    let [fills, producer, consumer, more] = shape else { unreachable!("four numbers") };
    let mut dice = Dice(*fills);
    let out = "func odd\n  in A: f32[8, 8]\n  temp T: f32[8]\n";
    let (fill_t, fill_o, kind) = (dice.roll(4) == 0, dice.roll(2) == 0, Dice(*more).roll(9));
    let shape = match kind {
        0 => "6, 6",
        1 => "12",
        _ => "6",
    };
    let mut out = format!("{out}  out O: f32[{shape}]\n\n");
    if fill_t {
        out.push_str("  for zt in 0..8\n    block ZT(v: 8 = zt)\n      T[v] = A[v, 0]\n");
    }
    let fill_o = fill_o && kind > 1;
    if fill_o {
        out.push_str("  for zo in 0..6\n    block ZO(v: 6 = zo)\n      O[v] = A[v, 1]\n");
    }
    let starts = !fill_t || dice.roll(2) == 0;
    let mut with = Dice(*producer);
    if with.roll(3) == 0 {
        nest(&mut out, "P", &[("v", false, 8)], &lines(None, "T[v] = A[v, 2] * 2.0f32"), &mut with);
    } else {
        let lines = lines(starts.then_some("T[v] = 0.0f32"), "T[v] = T[v] + A[v, k]");
        nest(&mut out, "P", &[("v", false, 8), ("k", true, 6)], &lines, &mut with);
    }
    let starts = !fill_o || dice.roll(2) == 0;
    let (mut with, each) = (Dice(*consumer), ("v", false, 6));
    let start = |body: &str| lines(starts.then_some("O[v] = 0.0f32"), body);
    let (iters, lines) = match kind {
        0 => (vec![each, ("w", false, 6)], lines(None, "O[v, w] = T[v] * T[w]")),
        1 => (vec![("v", false, 12)], lines(None, "O[v] = select(v < 8, T[v], 1.0f32)")),
        2 if fill_o => (vec![each], lines(None, "O[v] = O[v] + T[v]")),
        3 => (vec![each, ("k", true, 8)], start("O[v] = O[v] + T[k] * A[v, k]")),
        4 => (vec![each, ("k", true, 6)], start("O[v] = O[v] + T[v] * A[v, k]")),
        5 => (vec![each], lines(None, "O[v] = T[v] + T[v + 2]")),
        _ => (vec![each], lines(None, "O[v] = T[v] + A[v, 3]")),
    };
    nest(&mut out, "C", &iters, &lines, &mut with);
    out
}
