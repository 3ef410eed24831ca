//! Error cascades: which refusals of a script do not follow from earlier ones.
//!
//! After a refused step the later ones are applied to a program that is not the one they were written for. An error that
//! vanishes with another is worse than none, so a later refusal is reported only if it has nothing to do with an earlier one,
//! as far as names show:
//!
//! * What is wrong in the words of a step alone (a factor of 0, no such scope) is wrong in any program.
//! * A missing name is reported if no tainted step mentions it or could have made it. Primitives make names that their script
//!   says, or that extend another by `_`, such as `A_shared`.
//! * Anything else depends on the loops and blocks around it, and is reported if no tainted step is about the same
//!   nest.
//!
//! A step is tainted if it was refused, or mentions what a tainted step before it mentions.

use std::collections::BTreeSet;

use ir::{Func, Name, Scope, Stmt, ThreadAxis};
use schedule::{ScheduleError as E, Step, Thing};

/// The names that tainted steps are about.
#[derive(Debug, Default)]
pub(crate) struct ErrorCascade {
    /// The names that they mention, with those that were probably meant.
    mentioned: BTreeSet<Name>,
    /// The names in the nests of loops that they are about.
    near: BTreeSet<Name>,
}

impl ErrorCascade {
    /// Records a step and its error, if it was refused. Returns whether that error is to be reported: whether it does
    /// not follow from an earlier one.
    pub(crate) fn record(&mut self, step: &Step, func: &Func, err: Option<&E>) -> bool {
        let mut words = names(step);
        if let Some(err) = err {
            words.extend(err.names().into_iter().cloned());
        }
        let is_reported = err.is_some_and(|it| self.is_independent(it, &words, func));
        if err.is_some() || words.iter().any(|it| self.is_mentioned(it)) {
            self.add(words, func, err);
        }
        is_reported
    }

    fn is_independent(&self, err: &E, words: &BTreeSet<Name>, func: &Func) -> bool {
        if self.mentioned.is_empty() || is_of_words(err) {
            return true;
        }
        if words.iter().any(|it| self.is_mentioned(it)) {
            return false;
        }
        if let E::NoSuch { name, .. } = err {
            return !self.near.iter().any(|it| extends(name, it));
        }
        let nests = nests(words, func);
        !nests.iter().any(|it| self.near.contains(it))
    }

    /// Whether a tainted step mentions a name or one that it extends.
    fn is_mentioned(&self, name: &Name) -> bool {
        self.mentioned.iter().any(|it| it == name || extends(name, it))
    }

    fn add(&mut self, mut words: BTreeSet<Name>, func: &Func, err: Option<&E>) {
        if let Some(E::NoSuch { name, known, .. }) = err {
            match schedule::nearest(name.as_str(), known.iter().map(Name::as_str)) {
                Some(near) => words.extend([Name::new(near)]),
                // Nobody knows what was meant, so it may have been any of them.
                None => self.near.extend(known.iter().cloned()),
            }
        }
        self.near.extend(nests(&words, func));
        self.mentioned.extend(words);
    }
}

/// `A_shared` extends `A`.
fn extends(name: &Name, stem: &Name) -> bool {
    name.as_str().strip_prefix(stem.as_str()).is_some_and(|it| it.starts_with('_'))
}

/// Whether something is wrong in a step that no program could make right.
fn is_of_words(err: &E) -> bool {
    match err {
        E::NoSuch { thing, .. } => match thing {
            Thing::Scope
            | Thing::Axis
            | Thing::Style
            | Thing::Mode
            | Thing::Mechanism
            | Thing::Intrinsic
            | Thing::Role => true,
            Thing::Loop
            | Thing::Block
            | Thing::Buffer
            | Thing::Iterator
            | Thing::Annotation
            | Thing::Knob => false,
        },
        err => matches!(
            err,
            E::NotAName { .. }
                | E::Reserved { .. }
                | E::NamedTwice { .. }
                | E::TooFewLoops { .. }
                | E::FactorNotPositive { .. }
                | E::TwoInferred { .. }
                | E::FactorsTooLarge { .. }
                | E::BadAlignment { .. }
                | E::LoopOrBlock { .. }
        ),
    }
}

/// The names in a step: what stands in quotes and is no word of the language.
fn names(step: &Step) -> BTreeSet<Name> {
    let text = step.to_ron();
    let words = text.split('"').skip(1).step_by(2);
    let is_word = |it: &str| Scope::parse(it).is_some() || ThreadAxis::parse(it).is_some();
    words.filter(|it| !is_word(it)).map(Name::new).collect()
}

/// The loops, blocks and buffers of each outermost statement that has one of these names.
fn nests(words: &BTreeSet<Name>, func: &Func) -> BTreeSet<Name> {
    let outermost = match &func.body {
        Stmt::Seq(stmts) => stmts.as_slice(),
        it @ (Stmt::Loop(_) | Stmt::Block(_) | Stmt::Store(_) | Stmt::Instr(_)) => std::slice::from_ref(it),
    };
    let all = outermost.iter().map(|stmt| {
        let mut all = BTreeSet::new();
        stmt.walk(&mut |it| match it {
            Stmt::Loop(it) => all.extend([it.var.clone()]),
            Stmt::Block(it) => {
                let touched = it.reads().into_iter().chain(it.writes());
                all.extend(touched.map(|it| it.buffer.clone()).chain([it.name.clone()]));
            }
            Stmt::Seq(_) | Stmt::Store(_) | Stmt::Instr(_) => {}
        });
        all
    });
    all.filter(|it: &BTreeSet<Name>| !it.is_disjoint(words)).flatten().collect()
}
