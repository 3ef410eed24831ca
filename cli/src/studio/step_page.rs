//! A step as the page shows it when it is chosen.

use std::fmt::Write;

use serde_json::{Value, json};

use super::{board::Steps, told::StepTold};
use crate::{
    command::show::html::{changes, listing, step::about},
    term::{
        code::{Lang, html},
        markup::{escaped, prose},
    },
};

/// The step of a number, counted from 1; 0 is the program before the first of them.
pub(super) fn step_json(steps: &Steps, number: usize) -> Option<Value> {
    let html = match number.checked_sub(1) {
        None => {
            let words = "<p>The program before the first step, as the workload says it.</p>\n";
            format!("<h2>The program</h2>\n{words}{}", listing(&steps.start, Lang::Ir))
        }
        Some(at) => shown(number, steps.steps.get(at)?),
    };
    Some(json!({ "number": number, "html": html }))
}

fn shown(number: usize, it: &StepTold) -> String {
    let mut out = format!("<h2>Step {number}: {}</h2>\n", escaped(&it.name));
    let _ = writeln!(out, "<pre class=\"call\">{}</pre>", html(&it.call, Lang::Ron));
    let _ = writeln!(out, "<p>{}</p>", prose(&about(&it.name)));
    out += "<h3>What it changes</h3>\n";
    out += &match changes::html(&it.diff) {
        diff if diff.is_empty() => "<p class=\"quiet\">Nothing in the program.</p>\n".to_owned(),
        diff => diff,
    };
    out += "<h3>The loop nest after it</h3>\n";
    out + &listing(&it.nest, Lang::Ir)
}
