use std::{collections::BTreeSet, fmt::Write, path::Path};

use ir::{
    Name,
    text::{Part, print, print_module},
};

use super::{
    super::{mix::SASS, sass},
    history::History,
    machine::Code,
    result::Views,
    view::{View, names},
};
use crate::{build::lower, plan::Plan};

/// Each line of a view behind the steps that mark it.
fn margin(view: &View, text: &str, touched: &[BTreeSet<Part>]) -> String {
    let mut out = String::new();
    for (line, text) in view.lines.iter().zip(text.lines()) {
        let is_marked = |it: &&(usize, &BTreeSet<Part>)| !it.1.is_disjoint(&line.parts);
        let all: Vec<_> = (1..).zip(touched).collect();
        let steps: Vec<_> = all.iter().filter(is_marked).map(|it| it.0.to_string()).collect();
        let _ = writeln!(out, "{:>24} | {text}", steps.join(" "));
    }
    out
}

/// What each step of a script touched, and which steps mark each line of what comes out.
fn told(path: &Path) -> String {
    codegen::lower::set_vector_bytes(64);
    let plan = Plan::load(path, &[]).unwrap_or_else(|err| panic!("{}", err));
    let target = plan.target(None, None);
    let (mut history, mut calls) = (History::new(&plan.func), vec![]);
    let session = plan.walk(&target, None, &mut |step, session| {
        history.step(session.func());
        calls.push(step.to_ron());
    });
    let func = session.unwrap_or_else(|err| panic!("{}", err)).func().clone();
    let (module, _) = lower(&func, &target).unwrap_or_else(|err| panic!("{}", err));
    let views = Views::of(&func, &module, &target).unwrap_or_else(|err| panic!("{}", err));
    let touched = history.touched();
    let mut out = String::new();
    for (n, (call, parts)) in (1..).zip(calls.iter().zip(touched)) {
        let _ = writeln!(out, "{n} {call}\n   {}", names(parts).trim());
    }
    for (view, text) in [
        (&views.program, print(&func).text),
        (&views.kernel, print_module(&module).text),
        (&views.code, views.source.clone()),
    ] {
        assert_eq!(view.lines.len(), text.lines().count());
        let _ = write!(out, "\n{}", margin(view, &text, touched));
    }
    out
}

#[test]
fn steps_mark_lines() {
    insta::glob!("cases/*.ron", |path| insta::assert_snapshot!(told(path)));
}

#[test]
fn steps_of_shipped_scripts_mark_lines() {
    insta::glob!("../../../../../workloads/matmul/ladders", "*/0[27]_t*.ron", |path| {
        insta::assert_snapshot!(told(path));
    });
}

/// Machine code that was recorded: what nvdisasm printed of the source beside it.
#[test]
fn machine_code_is_counted_by_source_line() {
    let (source, printed) = (include_str!("cases/tile.cu"), include_str!("cases/tile.sass"));
    let none = source.lines().map(|_| (BTreeSet::new(), None));
    let mut view = View::new('c', source, crate::term::code::Lang::C, none);
    let code = Code::of(&SASS, sass::lines(printed));
    assert!(code.has_lines());
    code.count(&mut view);
    let mut out = code.mixes();
    for (line, text) in view.lines.iter().zip(source.lines()) {
        let _ = writeln!(out, "{} | {text}", line.gutter);
    }
    let listing = code.listing(&view, source);
    assert_eq!(listing.matches("<details class=\"m\"").count(), out.matches("class=\"ct\" href").count());
    let end = listing
        .find("<details class=\"m\"")
        .map_or(0, |it| it + listing[it..].find("</details>").unwrap_or(0));
    insta::assert_snapshot!(out + &listing[..end]);
}

/// What tells no lines is counted all the same.
#[test]
fn machine_code_without_lines_has_a_mix() {
    let code = Code::of(
        &SASS,
        sass::lines(
            "\t\tFunction : mine\n        /*0000*/        FADD R1, R2, R3 ;\n        /*0010*/        EXIT ;\n",
        ),
    );
    assert!(!code.has_lines());
    let listing = code.listing(&View::new('c', "", crate::term::code::Lang::C, std::iter::empty()), "");
    insta::assert_snapshot!(code.mixes() + &listing);
}

#[test]
fn names_are_no_markup() {
    let parts = BTreeSet::from([Part::Loop(Name::new("a\"><script>")), Part::Block(Name::new("b'&"))]);
    assert_eq!(names(&parts), " data-n=\"loop.a&quot;&gt;&lt;script&gt; block.b&#39;&amp;\"");
}
