//! `tilewright show --html`: a schedule as a page, from the program that it starts from to machine code.
//!
//! The page runs no script and loads nothing. It is written also when a step is refused, up to there and with the refusal at
//! its end: then it shows best what went wrong. It is a function of the script and, at its end, of the compilers at hand.
//!
//! `step` tells of one step, `result` of what comes out, `changes` marks what differs, `graph` draws dependences.

mod changes;
mod graph;
mod result;
mod step;

use std::{fmt::Write, path::Path};

use ir::Target;
use schedule::Step;
use serde_json::json;

use super::words;
use crate::{
    diagnostic::Diagnostic,
    plan::Plan,
    term::{
        code::{Lang, html},
        markup::{escaped, escaped_block, plain, prose, shortened},
        page::Sort,
        shell::Shell,
    },
};
use step::Tale;

/// What a trace is among our pages.
const TRACE: Sort = Sort { command: "show", what: "trace", style: include_str!("style.css") };

/// Writes the page.
pub(super) fn write(
    plan: &Plan,
    target: &Target,
    until: Option<usize>,
    out: &Path,
    force: bool,
    shell: &mut Shell<'_>,
) -> Result<(), Diagnostic> {
    TRACE.expect_ours(out, force)?;
    let mut tale = Tale::new(&plan.func, target);
    let scheduled = plan.walk(target, until, &mut |step, session| tale.step(step, session));
    let steps = tale.told.len();
    let (last, refusal) = match scheduled.and_then(|it| result::told(plan, it.func(), target)) {
        Ok(it) => (it, None),
        Err(err) => (refused(plan, steps, &err), Some(err)),
    };
    TRACE.write(out, &TRACE.page(&title(plan), &main(plan, target, &tale, &last)), force)?;
    if let Some(err) = refusal {
        shell.note(&format!("{} shows how it came to this", plain(&out.display().to_string())));
        return Err(err);
    }
    if shell.json {
        return shell.json(&json!({"ok": true, "emit": "html", "out": out, "steps": steps}));
    }
    let steps = if steps == 1 { "1 step".to_owned() } else { format!("{steps} steps") };
    writeln!(shell.out, "wrote {}: {steps}", plain(&out.display().to_string()))?;
    Ok(())
}

/// A part of the page that the list of contents leads to.
struct Part {
    id: &'static str,
    title: &'static str,
    html: String,
}

fn name(plan: &Plan) -> String {
    let name = plan.path.file_name().unwrap_or(plan.path.as_os_str());
    shortened(&name.to_string_lossy(), 80)
}

fn title(plan: &Plan) -> String {
    format!("{}: {} step by step", name(plan), shortened(&plan.script.workload.value, 60))
}

fn main(plan: &Plan, target: &Target, tale: &Tale<'_>, last: &[Part]) -> String {
    let sizes = plan.sizes();
    let facts = [plan.script.workload.value.as_str(), &sizes, &words(target)]
        .into_iter()
        .filter(|it| !it.is_empty())
        .map(|it| escaped(&shortened(it, 200)))
        .collect::<Vec<_>>();
    let mut out = format!("<h1>{} <small>{}</small></h1>\n", escaped(&name(plan)), facts.join(" · "));
    if let Some(about) = &plan.script.about {
        let _ = writeln!(out, "<p>{}</p>", prose(about));
    }
    out += "<div class=\"trace\">\n";
    out += &contents(tale, last);
    out += "<div class=\"tale\">\n";
    let start = listing(&ir::text::print(&plan.func).text, Lang::Ir);
    let _ = writeln!(out, "<section id=\"start\">\n<h2>The program</h2>\n{start}</section>");
    out.extend(tale.told.iter().map(|it| &*it.html));
    for it in last {
        let _ = writeln!(out, "<section id=\"{}\">\n<h2>{}</h2>\n{}</section>", it.id, it.title, it.html);
    }
    out += "<footer>Written by tilewright from a schedule. The same schedule and compilers give the same page.</footer>\n";
    out + "</div>\n</div>\n"
}

/// The script as a list of links.
fn contents(tale: &Tale<'_>, last: &[Part]) -> String {
    let mut out = "<nav>\n<p><a href=\"#start\">The program</a></p>\n<ol>\n".to_owned();
    for (n, it) in tale.told.iter().enumerate() {
        let word = html(&it.call, Lang::Ron);
        let _ = writeln!(out, "<li><a href=\"#step-{}\"><code>{word}</code></a></li>", n + 1);
    }
    out += "</ol>\n<p>";
    let links: Vec<_> = last.iter().map(|it| format!("<a href=\"#{}\">{}</a>", it.id, it.title)).collect();
    out + &links.join("<br>\n") + "</p>\n</nav>\n"
}

/// The refusal with which the page ends.
fn refused(plan: &Plan, steps: usize, err: &Diagnostic) -> Vec<Part> {
    let at = match plan.steps.get(steps).map(Step::name) {
        Some(name) => format!("<p>Step {}, <code>{name}</code>, is refused.</p>\n", steps + 1),
        None => "<p>The steps are legal, but what comes out of them is refused.</p>\n".to_owned(),
    };
    let words = [err.render(false), err.more_words()].join("\n\n");
    let html = format!("{at}<pre class=\"refusal\">{}</pre>\n", escaped_block(&words));
    vec![Part { id: "refusal", title: "The refusal", html }]
}

/// A program in colour.
fn listing(text: &str, lang: Lang) -> String {
    format!("<pre class=\"code\">{}</pre>\n", html(text.trim_end_matches('\n'), lang))
}

/// Something that is folded up until it is wanted.
fn folded(title: &str, content: &str, is_open: bool) -> String {
    let open = if is_open { " open" } else { "" };
    format!("<details{open}><summary>{}</summary>\n{content}</details>\n", escaped(title))
}
