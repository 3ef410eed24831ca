//! The end of the page: what came out of the schedule, down to machine code where a compiler is at hand.

use std::fmt::Write;

use ir::{Func, Target};

use super::{
    super::{
        deps::Graph,
        resources::{HEADS, needs, remarks},
        sass,
    },
    Part, folded, graph, listing,
    step::panel,
};
use crate::{
    build::{build, compile_cuda, lower, source},
    command::timeline,
    diagnostic::Diagnostic,
    plan::Plan,
    term::{
        code::Lang,
        markup::{escaped, prose},
    },
};

/// The parts about a scheduled program; an error if it cannot be lowered.
pub(super) fn told(plan: &Plan, func: &Func, target: &Target) -> Result<Vec<Part>, Diagnostic> {
    let (module, notes) = lower(func, target)?;
    let source = source(func, &module, target)?;
    let mut parts = vec![];
    let mut part = |id, title, html: String| parts.push(Part { id, title, html });
    if !notes.is_empty() {
        part("notes", "Notes", list(&notes));
    }
    part("result", "The scheduled program", listing(&ir::text::print(func).text, Lang::Ir));
    part("dependences", "Dependences", graph::html(&Graph::of(func)));
    if let Some(it) = timeline::drawing(func, target, true)? {
        part("timelines", "Timelines", panel(&it));
    }
    let lines = module.to_string();
    let title = format!("The lowered form: {} lines", lines.lines().count());
    part("kernel", "Kernels", folded(&title, &listing(&lines, Lang::Ir), false));
    part("code", "Generated code", listing(&source, Lang::C));
    if matches!(target, Target::Cuda(_)) {
        part("machine", "On the machine", machine(plan, func, target, &source));
    }
    Ok(parts)
}

fn list(notes: &[String]) -> String {
    let items: Vec<_> = notes.iter().map(|it| format!("<li>{}</li>\n", prose(it))).collect();
    format!("<ul>\n{}</ul>\n", items.concat())
}

/// What the compilers say. That one is missing is a part of the page and no error of it.
fn machine(plan: &Plan, func: &Func, target: &Target, source: &str) -> String {
    let Target::Cuda(arch) = target else { return String::new() };
    let ptx = match compile_cuda(source, func, arch) {
        Ok(it) => it.ptx,
        Err(err) => return missing("Registers, PTX and SASS", &err),
    };
    let mut out = match plan.expect_dims().and_then(|()| build(func, target, &plan.dims)) {
        Ok(built) => {
            let rows: Vec<_> = needs(&built, arch).into_iter().map(|it| it.cells).collect();
            let mut out = table(&rows);
            let remarks = remarks(&built, func, target);
            out.extend((!remarks.is_empty()).then(|| list(&remarks)));
            out
        }
        Err(err) => missing("Registers and occupancy", &err),
    };
    out += &folded(&format!("PTX: {} lines", ptx.lines().count()), &listing(&ptx, Lang::Ptx), false);
    match sass::disassembled(source, func, arch) {
        Ok((text, _)) => {
            let title = format!("SASS: {} lines", text.lines().count());
            out += &folded(&title, &listing(&text, Lang::Sass), false);
        }
        Err(err) => out += &missing("SASS", &err),
    }
    out
}

fn missing(what: &str, err: &Diagnostic) -> String {
    format!("<p class=\"quiet\">{what}: {}</p>\n", prose(err.message()))
}

fn table(rows: &[[String; HEADS.len()]]) -> String {
    let mut out = "<div class=\"scroll\"><table><thead><tr>".to_owned();
    let class = |at: usize| if (1..HEADS.len() - 1).contains(&at) { " class=\"n\"" } else { "" };
    for (at, head) in HEADS.iter().enumerate() {
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
