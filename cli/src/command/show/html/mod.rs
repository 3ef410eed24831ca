//! `tilewright show --html`: a schedule as a page, from the program that it starts from to machine code.
//!
//! The page loads nothing. Its one script marks which lines belong to which step, and all else is there without it. The page is
//! written also when a step is refused, up to there and with the refusal at its end: then it shows best what went wrong. It is a
//! function of the script and, at its end, of the compilers at hand.
//!
//! `step` tells of one step, `result` of what comes out, `changes` marks what differs, `graph` draws dependences. `history` knows
//! what each step made or changed, `links` what each lowered statement comes from; `view` and `machine` show lines with that.

pub(crate) mod changes;
mod graph;
pub(crate) mod history;
mod links;
mod machine;
pub(crate) mod result;
pub(crate) mod step;
#[cfg(test)]
mod tests;
pub(crate) mod view;

use std::{fmt::Write, path::Path};

use ir::Target;
use schedule::Step;
use schemars::JsonSchema;
use serde::Serialize;
use tuner::build::target_word;

use crate::{
    constant::{True, word},
    diagnostic::Diagnostic,
    plan::Plan,
    term::report::Report,
    term::{
        code::{Lang, html},
        markup::{escaped, escaped_block, plain, prose, shortened},
        page::Sort,
        shell::Shell,
        wrap::error_width,
    },
};
use step::StepSections;

/// What a trace is among our pages.
const TRACE: Sort = Sort {
    command: "show",
    what: "trace",
    style: include_str!("style.css"),
    script: include_str!("links.js"),
};

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
    let mut steps = StepSections::new(&plan.func, target);
    let scheduled = plan.walk(target, until, &mut |step, session| steps.step(step, session));
    let count = steps.sections.len();
    let touched = steps.history.touched();
    let (last, refusal) = match scheduled.and_then(|it| result::ending(plan, it.func(), target, touched)) {
        Ok(it) => (it, None),
        Err(err) => (Ending { sections: refused(plan, count, &err), lines: vec![] }, Some(err)),
    };
    TRACE.write(out, &TRACE.page(&title(plan), &main(plan, target, &steps, &last)), force)?;
    if let Some(err) = refusal {
        shell.note(&format!("{} shows how it came to this", plain(&out.display().to_string())));
        return Err(err);
    }
    shell.report(&Written { ok: True, emit: word::Html, out, steps: count })
}

/// Where the page is.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "--html")]
pub(crate) struct Written<'a> {
    ok: True,
    /// What is shown.
    emit: word::Html,
    /// The file.
    out: &'a Path,
    /// How many steps it shows.
    steps: usize,
}

impl Report for Written<'_> {
    fn print(&self, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
        let steps = if self.steps == 1 { "1 step".to_owned() } else { format!("{} steps", self.steps) };
        Ok(writeln!(shell.out, "wrote {}: {steps}", plain(&self.out.display().to_string()))?)
    }
}

/// A section of the page that the list of contents leads to.
struct Section {
    id: &'static str,
    title: &'static str,
    html: String,
    /// Whether it shows lines that steps mark. Such sections come last.
    is_view: bool,
}

/// What comes after the steps.
struct Ending {
    sections: Vec<Section>,
    /// For each step, which lines are its own; empty if there are none to show.
    lines: Vec<String>,
}

fn name(plan: &Plan) -> String {
    let name = plan.path.file_name().unwrap_or(plan.path.as_os_str());
    shortened(&name.to_string_lossy(), 80)
}

fn title(plan: &Plan) -> String {
    format!("{}: {} step by step", name(plan), shortened(&plan.script.workload.value, 60))
}

fn main(plan: &Plan, target: &Target, steps: &StepSections<'_>, last: &Ending) -> String {
    let sizes = plan.sizes();
    let facts = [plan.script.workload.value.as_str(), &sizes, &target_word(target)]
        .into_iter()
        .filter(|it| !it.is_empty())
        .map(|it| escaped(&shortened(it, 200)))
        .collect::<Vec<_>>();
    let mut out = format!("<h1>{} <small>{}</small></h1>\n", escaped(&name(plan)), facts.join(" · "));
    if let Some(about) = &plan.script.about {
        let _ = writeln!(out, "<p>{}</p>", prose(about));
    }
    out += "<div class=\"trace\">\n";
    out += &contents(steps, last);
    out += "<div class=\"tale\">\n";
    let start = listing(&ir::text::print(&plan.func).text, Lang::Ir);
    let _ = writeln!(out, "<section id=\"start\">\n<h2>The program</h2>\n{start}</section>");
    let none = String::new();
    for (n, it) in steps.sections.iter().enumerate() {
        let lines = last.lines.get(n).unwrap_or(&none);
        let names = view::names(&steps.history.touched()[n]);
        let _ = writeln!(
            out,
            "<section class=\"step\" id=\"step-{}\"{names}>\n{}{lines}{}</section>",
            n + 1,
            it.head,
            it.html
        );
    }
    let (views, others): (Vec<_>, Vec<_>) = last.sections.iter().partition(|it| it.is_view);
    let section =
        |it: &&Section| format!("<section id=\"{}\">\n<h2>{}</h2>\n{}</section>\n", it.id, it.title, it.html);
    out.extend(others.iter().map(section));
    if !views.is_empty() {
        let views: String = views.iter().map(section).collect();
        let _ = writeln!(out, "<div class=\"views\">\n{views}</div>");
        out += "<aside id=\"pinned\" role=\"status\" hidden></aside>\n";
    }
    out += "<footer>Written by tilewright from a schedule. The same schedule and compilers give the same page.</footer>\n";
    out + "</div>\n</div>\n"
}

/// The script as a list of links.
fn contents(steps: &StepSections<'_>, last: &Ending) -> String {
    let mut out = "<nav>\n<p><a href=\"#start\">The program</a></p>\n<ol>\n".to_owned();
    for (n, it) in steps.sections.iter().enumerate() {
        let word = html(&it.call, Lang::Ron);
        let n = n + 1;
        let pin = if last.lines.is_empty() { String::new() } else { view::pin(n) };
        let _ =
            writeln!(out, "<li data-step=\"{n}\">{pin}<a href=\"#step-{n}\"><code>{word}</code></a></li>");
    }
    out += "</ol>\n<p>";
    let links: Vec<_> =
        last.sections.iter().map(|it| format!("<a href=\"#{}\">{}</a>", it.id, it.title)).collect();
    out + &links.join("<br>\n") + "</p>\n</nav>\n"
}

/// The refusal with which the page ends.
fn refused(plan: &Plan, steps: usize, err: &Diagnostic) -> Vec<Section> {
    let at = match plan.steps.get(steps).map(Step::name) {
        Some(name) => format!("<p>Step {}, <code>{name}</code>, is refused.</p>\n", steps + 1),
        None => "<p>The steps are legal, but what comes out of them is refused.</p>\n".to_owned(),
    };
    let words = [err.render(false, error_width()), err.more_words()].join("\n\n");
    let html = format!("{at}<pre class=\"refusal\">{}</pre>\n", escaped_block(&words));
    vec![Section { id: "refusal", title: "The refusal", html, is_view: false }]
}

/// A program in colour.
pub(crate) fn listing(text: &str, lang: Lang) -> String {
    format!("<pre class=\"code\">{}</pre>\n", html(text.trim_end_matches('\n'), lang))
}

/// Something that is folded up until it is wanted.
fn folded(title: &str, content: &str, is_open: bool) -> String {
    let open = if is_open { " open" } else { "" };
    format!("<details{open}><summary>{}</summary>\n{content}</details>\n", escaped(title))
}
