//! A first schedule without search: rules look at what a program is, and write an ordinary script whose comments say why.
//!
//! Each rule knows one kind of program and gives its choices, the likeliest first. What the compiler refuses is left out; the
//! last rule takes every program, and is legal and lowers wherever the program has independent iterations. Rules compose the procedures of
//! the standard library and know nothing that a script cannot say.

mod anything;
mod elementwise;
mod mma;
mod model;
mod product;
mod simt;
mod wgmma;

use std::fmt::Write as _;

use indexmap::IndexMap;
use ir::{Func, Name, Target};
use schedule::workload::Param;

use crate::build::target_word;

/// What a first schedule is wanted for.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The unscheduled program.
    pub func: &'a Func,
    /// The workload as a script names it.
    pub workload: &'a str,
    /// The parameters that were given.
    pub params: &'a IndexMap<String, Param>,
    /// For what.
    pub target: &'a Target,
    /// How many multiprocessors the GPU has; else what is usual for the architecture.
    pub units: Option<i64>,
}

/// A script in the making: what a rule chose, and why.
#[derive(Clone, Debug)]
pub struct Draft {
    /// The rule that it comes from.
    pub rule: &'static str,
    /// What the script is, in a sentence.
    pub about: String,
    /// The libraries that it uses.
    uses: Vec<&'static str>,
    /// Steps with the reason before them.
    steps: Vec<(Option<String>, String)>,
}

impl Draft {
    fn new(rule: &'static str, about: String, uses: &[&'static str]) -> Draft {
        Draft { rule, about, uses: uses.to_vec(), steps: vec![] }
    }

    /// Adds a step.
    fn step(&mut self, step: impl Into<String>) {
        self.steps.push((None, step.into()));
    }

    /// Adds a step with its reason.
    fn because(&mut self, why: impl Into<String>, step: impl Into<String>) {
        self.steps.push((Some(why.into()), step.into()));
    }

    /// Whether it is of the rule that takes every program, which nobody has asked whether it is legal.
    pub fn is_last(&self) -> bool {
        self.rule == anything::RULE
    }

    /// The reasons, in the order of the steps.
    pub fn reasons(&self) -> impl Iterator<Item = &str> {
        self.steps.iter().filter_map(|it| it.0.as_deref())
    }

    /// The script as text.
    pub fn script(&self, request: &Request<'_>) -> String {
        let params: Vec<_> = request.params.iter().map(|(name, it)| format!("{name:?}: {it}")).collect();
        let mut out = format!("schedule(\n    about: {:?},\n", self.about);
        if !self.uses.is_empty() {
            let uses: Vec<_> = self.uses.iter().map(|it| format!("{it:?}")).collect();
            let _ = writeln!(out, "    use: [{}],", uses.join(", "));
        }
        let _ = write!(
            out,
            "    workload: {:?},\n    target: {:?},\n    params: {{{}}},\n    steps: [\n",
            request.workload,
            target_word(request.target),
            params.join(", ")
        );
        for (why, step) in &self.steps {
            for line in why.iter().flat_map(|it| folded(it)) {
                let _ = writeln!(out, "        // {line}");
            }
            let _ = writeln!(out, "        {step},");
        }
        out.push_str("    ],\n)\n");
        out
    }
}

/// The columns of a comment.
const COLUMNS: usize = 110;

/// A sentence in lines.
fn folded(text: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is a first line");
        if !line.is_empty() && line.len() + word.len() >= COLUMNS {
            lines.push(word.to_owned());
        } else {
            let blank = if line.is_empty() { "" } else { " " };
            let _ = write!(line, "{blank}{word}");
        }
    }
    lines
}

/// A name like that, which nothing of the program has.
fn free(func: &Func, name: &str) -> Name {
    Name::nth(name, |it| func.is_taken(it))
}

/// So many of something, in words.
fn counted(count: i64, one: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {one}{plural}")
}

/// The choices of all rules that know the program, the likeliest first. The last one, [`Draft::is_last`], leaves the program as it is,
/// which every CPU runs, or gives each statement's iterations to threads as far as they are independent.
pub fn drafts(request: &Request<'_>) -> Vec<Draft> {
    let rules: [fn(&Request<'_>) -> Vec<Draft>; 4] =
        [wgmma::drafts, mma::drafts, simt::drafts, elementwise::drafts];
    rules.iter().flat_map(|rule| rule(request)).chain([anything::draft(request)]).collect()
}

/// The first of the [`drafts`] that `is_legal` takes, or the last one, which it is not asked about: what stands in the way of that
/// one stands in the way of the program.
pub fn draft(request: &Request<'_>, mut is_legal: impl FnMut(&Draft) -> bool) -> Draft {
    let mut all = drafts(request);
    let last = all.pop().expect("one rule takes every program");
    all.into_iter().find(|it| is_legal(it)).unwrap_or(last)
}
