//! The space that a script spans: every combination of choices of its knobs, numbered.
//!
//! A point is an index below [`Space::size`], or its digits, one a knob: the place of its choice among the choices of
//! the knob. The first knob counts most, so index 0 has the first choice of each. Not all points are admitted:
//! constraints refuse some, and so that no two points make the same steps for want of use, a knob that stands only in
//! alternatives that are not taken must have its first choice.
//!
//! [`Stream`] goes through all admitted points in an order drawn from a seed, and [`Pruning`] says what is refused.
//! A space is never stored: it may have 10^30 points.

mod activity;
mod permutation;
mod pruning;
mod range;
mod stream;
mod walk;

use std::sync::Arc;

use indexmap::IndexMap;
use ir::Name;
use schedule::{
    Choice, Decisions, Expr, Ref, Script, ScriptError, ScriptProblem, Step, Tree, workload::Param,
};

pub use permutation::Permutation;
pub use pruning::{Pruned, Pruning};
pub use stream::Stream;

use activity::Activity;

/// The space that a script spans at some sizes. Clones share it.
#[derive(Clone, Debug)]
pub struct Space(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    script: Script,
    params: IndexMap<String, Param>,
    axes: IndexMap<Name, Vec<Choice>>,
    /// How far apart neighbouring choices of each knob are.
    strides: Vec<u128>,
    size: u128,
    /// For each knob and each part of its choices the numbers, one a choice.
    columns: Vec<Vec<Vec<i64>>>,
    rules: Vec<Rule>,
    activity: Activity,
}

/// A constraint over digits.
#[derive(Debug)]
struct Rule {
    tree: Tree<KnobPart>,
    /// The knobs in it, a bit each.
    knobs: u64,
}

/// A variable of a constraint: one number of the choice of a knob.
#[derive(Clone, Copy, Debug)]
struct KnobPart {
    axis: usize,
    part: usize,
}

/// Why a point is not admitted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// The constraint of this number in the script does not hold.
    Constraint(usize),
    /// This knob decides nothing here, and has not its first choice.
    Inactive(Name),
}

impl Space {
    /// The space of a script for these values of the workload's parameters.
    pub fn of(script: &Script, params: &IndexMap<String, Param>) -> Result<Space, ScriptError> {
        Space::new(script, params, script.axes(params)?)
    }

    /// The part of this space in which knobs have only some of their choices: those that the user has decided, or
    /// those that a log says a run had.
    pub fn with_choices(&self, some: &IndexMap<Name, Vec<Choice>>) -> Result<Space, ScriptError> {
        let refuse = |message: String| Err(ScriptError::new(ScriptProblem::Decision, message, 0..0));
        let mut axes = self.0.axes.clone();
        for (name, choices) in some {
            let Some(all) = axes.get_mut(name) else {
                return Err(ScriptError::new(
                    ScriptProblem::UnknownName,
                    format!("there is no knob `{name}`"),
                    0..0,
                ));
            };
            if let Some(strange) = choices.iter().find(|it| !all.contains(it)) {
                let known: Vec<_> = all.iter().map(ToString::to_string).collect();
                return refuse(format!("`{name}` cannot be {strange}: its choices are {}", known.join(", ")));
            }
            if choices.is_empty() {
                return refuse(format!("`{name}` has no choices left"));
            }
            all.clone_from(choices);
        }
        Space::new(&self.0.script, &self.0.params, axes)
    }

    fn new(
        script: &Script,
        params: &IndexMap<String, Param>,
        axes: IndexMap<Name, Vec<Choice>>,
    ) -> Result<Space, ScriptError> {
        let mut strides = vec![1u128; axes.len()];
        let mut size = 1u128;
        for ((name, choices), stride) in axes.iter().zip(&mut strides).rev() {
            *stride = size;
            let next = size.checked_mul(choices.len() as u128).filter(|it| *it <= u128::MAX / 2);
            size = next.ok_or_else(|| {
                let span = script.knobs.get(name).map_or(0..0, |it| it.span.clone());
                let message = "the space has more than 2^127 points".to_owned();
                ScriptError::new(ScriptProblem::Choices, message, span).help("give knobs fewer choices")
            })?;
        }
        let columns = axes.values().map(|it| columns(it)).collect();
        let activity = Activity::new(script, &axes);
        let (script, params) = (script.clone(), params.clone());
        let rules = script.constraints.iter().map(|it| Rule::new(it, &axes, &params)).collect();
        Ok(Space(Arc::new(Inner { script, params, axes, strides, size, columns, rules, activity })))
    }

    /// The script.
    pub fn script(&self) -> &Script {
        &self.0.script
    }

    /// The choices of each knob, the default first.
    pub fn axes(&self) -> &IndexMap<Name, Vec<Choice>> {
        &self.0.axes
    }

    /// How many points there are, those included that are not admitted. A script without knobs has one.
    pub fn size(&self) -> u128 {
        self.0.size
    }

    /// The place of the choice of each knob at a point.
    pub fn digits(&self, index: u128) -> Vec<usize> {
        let mut digits = vec![0; self.0.axes.len()];
        self.put_digits(index, &mut digits);
        digits
    }

    /// The same into a slice with one place a knob.
    fn put_digits(&self, index: u128, digits: &mut [usize]) {
        let lens = self.0.axes.values().map(Vec::len);
        if let Ok(mut rest) = u64::try_from(index) {
            // Divisions of 128 bits are several times as slow.
            for (digit, len) in digits.iter_mut().zip(lens).rev() {
                *digit = usize::try_from(rest % len as u64).expect("it is less than a length");
                rest /= len as u64;
            }
            return;
        }
        let mut rest = index;
        for (digit, len) in digits.iter_mut().zip(lens).rev() {
            *digit = usize::try_from(rest % len as u128).expect("it is less than a length");
            rest /= len as u128;
        }
    }

    /// The point of some digits, one a knob.
    pub fn index(&self, digits: &[usize]) -> u128 {
        digits.iter().zip(&self.0.strides).map(|(digit, stride)| *digit as u128 * stride).sum()
    }

    /// The point that has these choices, and the first of every knob that is not among them; none if a knob does not
    /// have such a choice.
    pub fn index_of(&self, decisions: &Decisions) -> Option<u128> {
        let mut digits = vec![0; self.0.axes.len()];
        for (name, choice) in decisions {
            let (axis, _, choices) = self.0.axes.get_full(name)?;
            digits[axis] = choices.iter().position(|it| it == choice)?;
        }
        Some(self.index(&digits))
    }

    /// What is decided at a point for the knobs that its steps use.
    pub fn decisions(&self, index: u128) -> Decisions {
        let digits = self.digits(index);
        let active = self.0.activity.active(&digits);
        let all = self.0.axes.iter().zip(digits).enumerate();
        let used = all.filter(|(axis, _)| active >> axis & 1 == 1);
        used.map(|(_, ((name, choices), digit))| (name.clone(), choices[digit].clone())).collect()
    }

    /// Whether a point is to be tried, and if not, why.
    pub fn admits(&self, index: u128) -> Result<(), Refusal> {
        self.admits_digits(&self.digits(index))
    }

    /// The same for digits.
    pub fn admits_digits(&self, digits: &[usize]) -> Result<(), Refusal> {
        if let Some(axis) = self.first_inactive(digits) {
            let name = self.0.axes.get_index(axis).map(|(name, _)| name.clone());
            return Err(Refusal::Inactive(name.expect("there is a digit for each knob")));
        }
        match self.0.rules.iter().position(|it| !self.holds(it, digits)) {
            Some(broken) => Err(Refusal::Constraint(broken)),
            None => Ok(()),
        }
    }

    /// A knob that decides nothing and has not its first choice.
    fn first_inactive(&self, digits: &[usize]) -> Option<usize> {
        let active = self.0.activity.active(digits);
        digits.iter().enumerate().position(|(axis, digit)| *digit != 0 && active >> axis & 1 == 0)
    }

    fn holds(&self, rule: &Rule, digits: &[usize]) -> bool {
        let columns = &self.0.columns;
        rule.tree.holds(&|it: &KnobPart| columns[it.axis][it.part][digits[it.axis]])
    }

    /// A refusal in words.
    pub fn words(&self, refusal: &Refusal) -> String {
        match refusal {
            Refusal::Constraint(at) => {
                let text = self.0.script.constraints.get(*at).map_or("", Expr::text);
                format!("the constraint `{text}` does not hold")
            }
            Refusal::Inactive(name) => {
                format!("the knob `{name}` decides nothing here, and has not its first choice")
            }
        }
    }

    /// The steps of a point, no knob and no expression left. An error tells of an expression without a value.
    pub fn steps(&self, index: u128) -> Result<Vec<Step>, ScriptError> {
        // Every knob gets its choice, so that no default has to be worked out.
        let all = self.0.axes.iter().zip(self.digits(index));
        let all = all.map(|((name, choices), digit)| (name.clone(), choices[digit].clone())).collect();
        let steps = self.0.script.resolve(&self.0.params, &all)?;
        Ok(steps.into_iter().map(|it| it.value).collect())
    }

    /// What constraints and inactive knobs refuse.
    pub fn pruning(&self) -> Pruning {
        Pruning::of(self)
    }
}

/// The numbers of choices, for each part one a choice.
fn columns(choices: &[Choice]) -> Vec<Vec<i64>> {
    let parts = match choices.first() {
        Some(Choice::Tile(parts)) => parts.len(),
        Some(Choice::Int(_)) | None => 1,
    };
    let number = |choice: &Choice, part: usize| match choice {
        Choice::Int(it) => *it,
        Choice::Tile(parts) => parts[part],
    };
    (0..parts).map(|part| choices.iter().map(|it| number(it, part)).collect()).collect()
}

impl Rule {
    /// A constraint whose names were checked.
    fn new(expr: &Expr, all: &IndexMap<Name, Vec<Choice>>, params: &IndexMap<String, Param>) -> Rule {
        let mut knobs = 0u64;
        let mut bind = |it: &Ref| -> Result<Tree<KnobPart>, std::convert::Infallible> {
            let given = params.get(it.name.as_str());
            if it.bytes {
                let bytes = given.and_then(Param::element_bytes);
                return Ok(Tree::Int(bytes.expect("`Script::axes` has seen that it is a type")));
            }
            Ok(match (all.get_index_of(&it.name), given) {
                (Some(axis), _) => {
                    knobs |= 1 << axis;
                    Tree::Var(KnobPart { axis, part: it.part.unwrap_or(0) })
                }
                (None, Some(Param::Int(value))) => Tree::Int(*value),
                (None, Some(Param::Float(_) | Param::Text(_)) | None) => {
                    unreachable!("`Script::axes` has seen that the name is a knob or a whole number")
                }
            })
        };
        let Ok(tree) = expr.tree().try_map(&mut bind);
        Rule { tree, knobs }
    }
}
