//! A first schedule without search: rules look at what a program is, and write an ordinary script whose comments say why.
//!
//! Each rule knows one kind of program and gives its choices, the likeliest first. What the compiler refuses is left out; the
//! last rule takes every program, and is legal and lowers wherever the program has independent iterations. Rules compose the procedures of
//! the standard library and know nothing that a script cannot say.

mod anything;
mod attention;
mod attention_mma;
mod attention_wgmma;
mod block_rows;
mod block_scaled;
mod columns;
mod contraction;
mod cpu;
mod direct;
mod elementwise;
mod gemv;
mod gemv_fragments;
mod gemv_stored;
mod microscaled;
mod mma;
mod model;
mod packing;
mod parts;
mod product;
mod row_steps;
mod rows;
mod scan;
mod scan_columns;
mod scan_rows;
mod simt;
mod simt_tiles;
mod size;
mod tcgen05;
mod together;
mod transpose;
mod unknown_sizes;
mod warpgroup_tiles;
mod wgmma;

use std::fmt::Write as _;

use indexmap::IndexMap;
use ir::{Func, Name, Target};
use schedule::workload::Param;

use crate::build::target_word;
use size::Size;

pub use parts::Check;

/// What a first schedule is wanted for.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The unscheduled program.
    pub func: &'a Func,
    /// The workload as a script names it.
    pub workload: &'a str,
    /// The parameters that were given.
    pub params: &'a IndexMap<String, Param>,
    /// Every parameter of the workload, the defaults included.
    pub known: &'a IndexMap<String, Param>,
    /// For what.
    pub target: &'a Target,
    /// How many multiprocessors the GPU has; else what is usual for the architecture.
    pub units: Option<i64>,
    /// What is to be written.
    pub form: Form,
}

/// What rules write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// A schedule.
    Script,
    /// A space around that schedule, which is its first point.
    Space,
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
    lines: Vec<Line>,
    form: Form,
    /// The parameters of the workload, whose names no knob may have.
    params: Vec<String>,
    /// How many cycles it takes by the rule's estimate, where rules are weighed against each other.
    cycles: Option<f64>,
    /// What a space chooses from.
    knobs: Vec<(String, Vec<i64>)>,
    /// What is computed of that.
    values: Vec<(String, String)>,
    constraints: Vec<String>,
}

/// What a list of steps has.
#[derive(Clone, Debug)]
enum Line {
    /// The reason for the next step.
    Why(String),
    Step(String),
}

impl Draft {
    fn new(rule: &'static str, about: String, uses: &[&'static str], request: &Request<'_>) -> Draft {
        Draft {
            rule,
            about,
            uses: uses.to_vec(),
            lines: vec![],
            form: request.form,
            params: request.known.keys().cloned().collect(),
            cycles: None,
            knobs: vec![],
            values: vec![],
            constraints: vec![],
        }
    }

    /// A size that a space may choose otherwise.
    fn knob(&mut self, name: &str, chosen: i64, others: &[i64]) -> Size {
        if self.form == Form::Script {
            return chosen.into();
        }
        let others = others.iter().copied().filter(|it| *it != chosen);
        let name = self.free(name);
        self.knobs.push((name.clone(), std::iter::once(chosen).chain(others).collect()));
        Size::named(&name, chosen)
    }

    /// A name for what is computed of knobs.
    fn value(&mut self, name: &str, size: &Size) -> Size {
        if !size.is_open() {
            return size.clone();
        }
        let name = self.free(name);
        self.values.push((name.clone(), size.words()));
        Size::named(&name, size.value)
    }

    /// A name like this one that no parameter has.
    fn free(&self, name: &str) -> String {
        Name::nth(name, |it| self.params.iter().any(|param| it == param.as_str())).to_string()
    }

    /// What has to hold for the points of a space.
    fn constraint(&mut self, words: impl Into<String>) {
        self.constraints.push(words.into());
    }

    /// The same script for another rule, which begins with steps of its own.
    fn behind(mut self, rule: &'static str, why: &str, steps: &[String]) -> Draft {
        let first = steps.iter().map(|it| Line::Step(it.clone()));
        self.lines.splice(0..0, [Line::Why(why.to_owned())].into_iter().chain(first));
        self.rule = rule;
        self
    }

    /// The same script with a reason that is about all of it.
    fn prefaced(mut self, why: &str) -> Draft {
        self.lines.insert(0, Line::Why(why.to_owned()));
        self
    }

    /// Gives the reason for the next step.
    fn reason(&mut self, why: impl Into<String>) {
        self.lines.push(Line::Why(why.into()));
    }

    /// Adds one of two lists of steps, or lets a space decide it by the size.
    fn step_if(&mut self, size: &Size, cond: &str, holds: bool, then: &[String], otherwise: &[String]) {
        if self.form == Form::Script {
            let taken = if holds { then } else { otherwise };
            for it in taken {
                self.step(it);
            }
            return;
        }
        let otherwise = match otherwise {
            [] => String::new(),
            some => format!(", else: [{}]", some.join(", ")),
        };
        self.step(format!("when(cond: \"{} {cond}\", then: [{}]{otherwise})", size.words(), then.join(", ")));
    }

    /// Adds a step.
    fn step(&mut self, step: impl Into<String>) {
        self.lines.push(Line::Step(step.into()));
    }

    /// Adds a step with its reason.
    fn because(&mut self, why: impl Into<String>, step: impl Into<String>) {
        self.reason(why);
        self.step(step);
    }

    /// Whether it is of the rule that takes every program, which nobody has asked whether it is legal.
    pub fn is_last(&self) -> bool {
        self.rule == anything::RULE
    }

    /// The reasons, in the order of the steps.
    pub fn reasons(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().filter_map(|it| match it {
            Line::Why(it) => Some(it.as_str()),
            Line::Step(_) => None,
        })
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
            "    workload: {:?},\n    target: {:?},\n    params: {{{}}},\n",
            request.workload,
            target_word(request.target),
            params.join(", "),
        );
        out.push_str(&self.choices());
        out.push_str("    steps: [\n");
        for line in &self.lines {
            match line {
                Line::Why(why) => folded(why).iter().for_each(|it| {
                    let _ = writeln!(out, "        // {it}");
                }),
                Line::Step(step) => {
                    let _ = writeln!(out, "        {step},");
                }
            }
        }
        out.push_str("    ],\n)\n");
        out
    }

    /// The knobs and constraints of a space.
    fn choices(&self) -> String {
        let mut out = String::new();
        if self.form == Form::Script {
            return out;
        }
        out.push_str("    // What was chosen without search stands first, and the comments below speak of it.\n    knobs: {\n");
        for (name, choices) in &self.knobs {
            let _ = writeln!(out, "        {name:?}: {choices:?},");
        }
        out.push_str("    },\n");
        if !self.values.is_empty() {
            out.push_str("    values: {\n");
            for (name, words) in &self.values {
                let _ = writeln!(out, "        {name:?}: {words:?},");
            }
            out.push_str("    },\n");
        }
        if !self.constraints.is_empty() {
            out.push_str("    constraints: [\n");
            for it in &self.constraints {
                let _ = writeln!(out, "        {it:?},");
            }
            out.push_str("    ],\n");
        }
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

/// What `mma` takes of the cycles of `wgmma`, by estimate, where it is tried first. The estimates are rough, and `wgmma` is the faster of two
/// that come out alike.
const CLEARLY: f64 = 0.75;

/// Products by warpgroups, or into tensor memory, come before those by warps, except where few tiles leave most multiprocessors idle: `mma` splits long sums.
fn on_tensor_cores(request: &Request<'_>) -> Vec<Draft> {
    let wide = wgmma::drafts(request).into_iter().chain(tcgen05::drafts(request)).collect::<Vec<_>>();
    let narrow = mma::drafts(request);
    let cycles = |it: &[Draft]| it.first().and_then(|it| it.cycles);
    let is_split_better = cycles(&narrow).zip(cycles(&wide)).is_some_and(|(it, other)| it < CLEARLY * other);
    let (first, second) = if is_split_better { (narrow, wide) } else { (wide, narrow) };
    first.into_iter().chain(second).collect()
}

/// The choices of all rules that know the program, the likeliest first. The last one, [`Draft::is_last`], leaves the program as it is,
/// which every CPU runs, or gives each statement's iterations to threads as far as they are independent.
pub fn drafts(request: &Request<'_>) -> Vec<Draft> {
    drafts_of_rules(request).into_iter().chain([anything::draft(request)]).collect()
}

/// The same without the last one. Rules see symbolic dimensions as numbers; whether a script is legal for all sizes is asked of the program itself.
fn drafts_of_rules(request: &Request<'_>) -> Vec<Draft> {
    let Some(sized) = unknown_sizes::sized(request.func) else { return drafts_of_sizes(request) };
    let names: Vec<_> = request.func.dims.iter().map(Name::as_str).collect();
    let why = format!(
        "What is chosen by size is chosen as for {} in place of {}.",
        unknown_sizes::SIZE,
        names.join(" and ")
    );
    let drafts = drafts_of_sizes(&Request { func: &sized, ..*request });
    drafts.into_iter().map(|it| it.prefaced(&why)).collect()
}

/// The same for a program whose sizes are numbers.
fn drafts_of_sizes(request: &Request<'_>) -> Vec<Draft> {
    let rules: [fn(&Request<'_>) -> Vec<Draft>; 15] = [
        gemv::drafts,
        attention::drafts,
        block_scaled::drafts,
        microscaled::drafts,
        on_tensor_cores,
        simt::drafts,
        contraction::drafts,
        cpu::drafts,
        scan::drafts,
        rows::drafts,
        block_rows::drafts,
        columns::drafts,
        transpose::drafts,
        elementwise::drafts,
        direct::drafts,
    ];
    rules.iter().flat_map(|rule| rule(request)).collect()
}

/// The first choice of the rules that know the program, or its parts, which `check` takes; else the last of the [`drafts`], which it is not
/// asked about: what stands in the way of that one stands in the way of the program.
pub fn draft(request: &Request<'_>, check: &mut Check<'_>) -> Draft {
    let known = drafts_of_rules(request).into_iter().find(|it| check(request, it).is_some());
    let in_parts =
        |check: &mut Check<'_>| parts::draft(request, check).filter(|it| check(request, it).is_some());
    known.or_else(|| in_parts(check)).unwrap_or_else(|| anything::draft(request))
}
