//! Which knobs the steps of a point use.

use indexmap::IndexMap;
use ir::Name;
use schedule::{Choice, Expr, Item, Number, Script};

/// The knobs that a list of steps uses, and the alternatives in it. Knobs are bits.
#[derive(Debug)]
pub(super) struct Activity {
    always: u64,
    chooses: Vec<Fork>,
}

#[derive(Debug)]
struct Fork {
    axis: usize,
    /// Which alternative each choice of the knob takes.
    takes: Vec<usize>,
    one_of: Vec<Activity>,
}

impl Activity {
    pub(super) fn new(script: &Script, axes: &IndexMap<Name, Vec<Choice>>) -> Activity {
        of_items(&script.items, axes)
    }

    /// The knobs that are used, given all digits.
    pub(super) fn active(&self, digits: &[usize]) -> u64 {
        self.possible(&|axis| Some(digits[axis]))
    }

    /// The knobs that may be used, given some digits.
    pub(super) fn possible(&self, digit: &impl Fn(usize) -> Option<usize>) -> u64 {
        self.chooses.iter().fold(self.always, |all, fork| {
            all | match digit(fork.axis) {
                Some(known) => fork.one_of[fork.takes[known]].possible(digit),
                None => fork.one_of.iter().fold(0, |all, it| all | it.possible(digit)),
            }
        })
    }

    /// The knobs that decide between alternatives, outer ones first.
    pub(super) fn forks(&self, out: &mut Vec<usize>) {
        for fork in &self.chooses {
            if !out.contains(&fork.axis) {
                out.push(fork.axis);
            }
            fork.one_of.iter().for_each(|it| it.forks(out));
        }
    }
}

fn of_items(items: &[Item], axes: &IndexMap<Name, Vec<Choice>>) -> Activity {
    let bit = |name: &Name| axes.get_index_of(name).map_or(0, |axis| 1u64 << axis);
    let mut out = Activity { always: 0, chooses: vec![] };
    for item in items {
        match item {
            Item::Step(step) => {
                for number in step.value.clone().get_mut().numbers() {
                    if let Number::Expr(expr) = number {
                        each_name(expr, &mut |name| out.always |= bit(name));
                    }
                }
            }
            Item::Choose(it) => {
                let Some((knob, _, choices)) = axes.get_full(&it.knob) else { continue };
                out.always |= 1 << knob;
                let takes = choices.iter().map(|choice| match choice {
                    Choice::Int(at) => usize::try_from(*at).expect("each choice names an alternative"),
                    Choice::Tile(_) => unreachable!("no alternative is a tile"),
                });
                let takes = takes.collect();
                let one_of = it.one_of.iter().map(|it| of_items(it, axes)).collect();
                out.chooses.push(Fork { axis: knob, takes, one_of });
            }
            // Both lists count: a condition may be about sizes alone, and which one holds is not asked here.
            Item::When(it) => {
                it.expr().into_iter().for_each(|it| each_name(it, &mut |name| out.always |= bit(name)));
                for list in [&it.then, &it.otherwise] {
                    let inner = of_items(list, axes);
                    out.always |= inner.always;
                    out.chooses.extend(inner.chooses);
                }
            }
        }
    }
    out
}

fn each_name(expr: &Expr, seen: &mut impl FnMut(&Name)) {
    expr.tree().each_var(&mut |it| seen(&it.name));
}
