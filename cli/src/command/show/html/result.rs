//! The end of the page: what came out of the schedule, down to machine code where a compiler is at hand.

use std::{collections::BTreeSet, fmt::Write};

use codegen::{device::cc, emit::emit_traced, lower::no_effect};
use ir::{
    Func, Module, Target,
    text::{Part, print, print_module},
};

use super::{
    super::{
        assembly::{self, ASSEMBLY},
        deps::Graph,
        mix::SASS,
        resources::{HEADS, needs, remarks},
        sass,
    },
    Ending, Section, folded, graph,
    links::Links,
    listing,
    machine::Code,
    step::panel,
    view::{View, pin},
};
use crate::{
    build::{build, compile_cuda, lowered},
    diagnostic::Diagnostic,
    guard::{Activity, within},
    plan::Plan,
    term::code::Lang,
    term::markup::{escaped, prose},
    term::table::counted,
    timeline,
};

/// The forms of a scheduled program that have lines which steps mark.
pub(crate) struct Views {
    pub(crate) program: View,
    pub(crate) kernel: View,
    pub(crate) code: View,
    /// The text of the code.
    pub(crate) source: String,
}

/// What comes after the steps, of which it is known what each touched; an error if the program cannot be lowered.
pub(super) fn ending(
    plan: &Plan,
    func: &Func,
    target: &Target,
    touched: &[BTreeSet<Part>],
) -> Result<Ending, Diagnostic> {
    let lowered = lowered(func, target)?;
    let notes = no_effect(func, &lowered.pipelines);
    let mut views = Views::of(func, &lowered.module, target)?;
    let mut sections = vec![];
    let mut section = |id, title, is_view, html: String| sections.push(Section { id, title, html, is_view });
    if !notes.is_empty() {
        section("notes", "Notes", false, list(&notes));
    }
    section("dependences", "Dependences", false, graph::html(&Graph::of(func)));
    if let Some(it) = timeline::drawing(func, &lowered, target, true) {
        section("timelines", "Timelines", false, panel(&it));
    }
    let printed = printed(func, target, &views.source);
    let code = printed.as_ref().ok().map(|it| match target {
        Target::Cuda(_) => Code::of(&SASS, sass::lines(it)),
        Target::Cpu => Code::of(&ASSEMBLY, assembly::lines(it)),
    });
    let counted = code.as_ref().filter(|it| it.has_lines());
    if let Some(it) = counted {
        it.count(&mut views.code);
    }
    section("result", "The scheduled program", true, views.program.html());
    section("kernel", "Kernels", true, views.kernel.html());
    section("code", "Generated code", true, views.code.html());
    let listed = match &printed {
        Ok(_) => code.iter().map(|it| it.mixes() + &it.listing(&views.code, &views.source)).collect(),
        Err(err) => missing("Machine code", err),
    };
    section("machine", "Machine code", true, machine(plan, func, target, &views.source) + &listed);
    let lines = (1..).zip(touched).map(|(n, it)| views.own_lines(n, it, counted)).collect();
    Ok(Ending { sections, lines })
}

impl Views {
    /// Of a scheduled program and what it was lowered to.
    pub(crate) fn of(func: &Func, module: &Module, target: &Target) -> Result<Views, Diagnostic> {
        let (source, line_sources) =
            emit_traced(module, target).map_err(|err| Diagnostic::emit(func, &err))?;
        let links = Links::of(func, module);
        let from = |it| (links.parts(it).cloned().collect(), it);
        let program = print(func);
        let own = program.parts.iter().map(|it| (it.iter().cloned().collect(), None));
        let kernel = print_module(module);
        let mut views = Views {
            program: View::new('p', &program.text, Lang::Ir, own),
            kernel: View::new('k', &kernel.text, Lang::Ir, kernel.line_sources.into_iter().map(from)),
            code: View::new('c', &source, Lang::C, line_sources.into_iter().map(from)),
            source,
        };
        for (n, line) in (1..).zip(&mut views.code.lines) {
            line.gutter = format!("<i class=\"no\">{n}</i>");
        }
        Ok(views)
    }

    /// Which lines are a step's own, with a link to the first of each form.
    fn own_lines(&self, step: usize, parts: &BTreeSet<Part>, machine: Option<&Code<'_>>) -> String {
        let link = |key: char, line: Option<usize>, count: usize, word: &str, of: &str| match line {
            Some(line) => format!("<a href=\"#{key}{line}\">{}{of}</a>", counted(count, word)),
            None => format!("<span class=\"quiet\">none{of}</span>"),
        };
        let mut words = vec![];
        for (view, key, of) in [
            (&self.program, 'p', " of the program"),
            (&self.kernel, 'k', " of the kernels"),
            (&self.code, 'c', " of the code"),
        ] {
            let lines = view.marked(parts);
            words.push(link(key, lines.first().copied(), lines.len(), "line", of));
        }
        if let Some(it) = machine {
            let (count, first) = it.marked(&self.code, parts);
            let of = if first.is_some() { "" } else { " of the machine code" };
            words.push(link('m', first, count, "instruction", of));
        }
        let words = if parts.is_empty() {
            "<span class=\"quiet\">none: nothing that this step made or changed is left</span>".to_owned()
        } else {
            words.join(", ")
        };
        format!("<p class=\"own\">{}Its lines: {words}</p>\n", pin(step))
    }
}

/// Sentences as a list.
pub(crate) fn list(notes: &[String]) -> String {
    let items: Vec<_> = notes.iter().map(|it| format!("<li>{}</li>\n", prose(it))).collect();
    format!("<ul>\n{}</ul>\n", items.concat())
}

/// The machine code as text: what a disassembler says for a GPU, and a C compiler for a CPU.
fn printed(func: &Func, target: &Target, source: &str) -> Result<String, Diagnostic> {
    match target {
        Target::Cuda(arch) => Ok(sass::printed(source, func, arch)?.0),
        Target::Cpu => {
            let compiler = cc::find()?;
            Ok(within(Activity::Compiler, || compiler.assembly(source))?)
        }
    }
}

/// What the compilers say. That one is missing is a part of the page and no error of it.
fn machine(plan: &Plan, func: &Func, target: &Target, source: &str) -> String {
    let Target::Cuda(arch) = target else { return String::new() };
    let ptx = match compile_cuda(source, func, arch) {
        Ok(it) => it.ptx,
        Err(err) => return missing("Registers and PTX", &err),
    };
    let mut out = match plan.expect_dims().and_then(|()| build(func, target, &plan.dims)) {
        Ok(built) => {
            let rows: Vec<_> = needs(&built, arch).into_iter().map(|it| it.cells).collect();
            let mut out = table(HEADS, &rows);
            let remarks = remarks(&built);
            out.extend((!remarks.is_empty()).then(|| list(&remarks)));
            out
        }
        Err(err) => missing("Registers and occupancy", &err),
    };
    out += &folded(&format!("PTX: {} lines", ptx.lines().count()), &listing(&ptx, Lang::Ptx), false);
    out
}

fn missing(what: &str, err: &Diagnostic) -> String {
    format!("<p class=\"quiet\">{what}: {}</p>\n", prose(err.message()))
}

/// Figures as a table: names in the first column and words in the last.
pub(crate) fn table<const N: usize>(heads: [&str; N], rows: &[[String; N]]) -> String {
    let mut out = "<div class=\"scroll\"><table><thead><tr>".to_owned();
    let class = |at: usize| if (1..N - 1).contains(&at) { " class=\"n\"" } else { "" };
    for (at, head) in heads.iter().enumerate() {
        let _ = write!(out, "<th{}>{head}</th>", class(at));
    }
    out += "</tr></thead><tbody>\n";
    for row in rows {
        out += "<tr>";
        for (at, cell) in row.iter().enumerate() {
            let _ = write!(out, "<td{}>{}</td>", class(at), escaped(cell));
        }
        out += "</tr>\n";
    }
    out + "</tbody></table></div>\n"
}
