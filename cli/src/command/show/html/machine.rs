//! Machine code by source line: how many instructions a line has become, of which classes, and the instructions.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
};

use ir::text::Part;

use super::{
    super::mix::{CodeLine, Mix, Notation, Share},
    folded,
    view::{self, View},
};
use crate::term::{
    code::{Lang, html_line},
    markup::escaped,
    table::counted,
};

/// The machine code of a program.
pub(super) struct Code<'a> {
    /// The instructions of each function, in the order of the disassembler.
    functions: Vec<(&'a str, Mix)>,
    /// What each source line has become; none for what no line is told of.
    by_line: BTreeMap<Option<usize>, Group<'a>>,
    notation: &'static Notation,
}

/// The instructions of a source line, with the labels before them, in the order of their addresses.
#[derive(Default)]
struct Group<'a> {
    lines: Vec<CodeLine<'a>>,
    mix: Mix,
}

impl<'a> Code<'a> {
    /// From its lines.
    pub(super) fn of(notation: &'static Notation, lines: Vec<CodeLine<'a>>) -> Code<'a> {
        let mut out = Code { functions: vec![], by_line: BTreeMap::new(), notation };
        let mut labels = vec![];
        for line in lines {
            match line {
                CodeLine::Label(_) => labels.push(line),
                CodeLine::Function(name) => out.functions.push((name, Mix::default())),
                CodeLine::Instruction(text, from) => {
                    let group = out.by_line.entry(from).or_default();
                    group.lines.append(&mut labels);
                    group.lines.push(line);
                    let Some(it) = (notation.class)(text) else { continue };
                    group.mix.add(it);
                    if let Some((_, mix)) = out.functions.last_mut() {
                        mix.add(it);
                    }
                }
            }
        }
        out
    }

    /// Whether instructions have source lines.
    pub(super) fn has_lines(&self) -> bool {
        self.by_line.keys().any(Option::is_some)
    }

    /// Puts the number of its instructions before each line of the source.
    pub(super) fn count(&self, source: &mut View) {
        for (n, line) in (1..).zip(&mut source.lines) {
            let count = match self.by_line.get(&Some(n)) {
                Some(it) => format!(
                    "<a class=\"ct\" href=\"#m{n}\" title=\"{}\">{}</a>",
                    escaped(&it.mix.words()),
                    it.mix.total()
                ),
                None => "<i class=\"ct\"></i>".to_owned(),
            };
            line.gutter += &count;
        }
    }

    /// How many instructions come from some parts, and the first source line that has one of them.
    pub(super) fn marked(&self, source: &View, parts: &BTreeSet<Part>) -> (usize, Option<usize>) {
        let marked = source.marked(parts).into_iter();
        let marked: Vec<_> =
            marked.filter_map(|n| Some((n, self.by_line.get(&Some(n))?.mix.total()))).collect();
        (marked.iter().map(|it| it.1).sum(), marked.first().map(|it| it.0))
    }

    /// The instruction mix of each function as a table.
    pub(super) fn mixes(&self) -> String {
        let mut out = String::new();
        for (name, mix) in self.functions.iter().filter(|it| it.1.total() > 0) {
            let total = mix.total();
            let _ = write!(
                out,
                "<div class=\"scroll\"><table class=\"mix\"><caption>The {} of <code>{}</code></caption>\n<thead><tr><th>class</th>\
                 <th class=\"n\">count</th><th class=\"n\">share</th><th>operations</th></tr></thead><tbody>\n",
                counted(total, "instruction"),
                escaped(name)
            );
            for Share { class, count, operations } in mix.classes() {
                let operations: Vec<_> = operations
                    .iter()
                    .map(|(name, count)| format!("{}&nbsp;{count}", escaped(name)))
                    .collect();
                let _ = writeln!(
                    out,
                    "<tr><td>{}</td><td class=\"n\">{count}</td><td class=\"n\">{}</td><td>{}</td></tr>",
                    class.title(),
                    share(count, total),
                    operations.join(", ")
                );
            }
            out += "</tbody></table></div>\n";
        }
        out
    }

    /// All instructions, folded up, under the source lines that they come from.
    pub(super) fn listing(&self, source: &View, texts: &str) -> String {
        let texts: Vec<&str> = texts.lines().collect();
        let total = self.by_line.values().map(|it| it.mix.total()).sum();
        let mut out = String::new();
        // What has no line comes last.
        let known = self.by_line.iter().filter(|it| it.0.is_some());
        for (n, group) in known.chain(self.by_line.get_key_value(&None)) {
            let line = n.and_then(|n| source.lines.get(n.checked_sub(1)?));
            let names = line.map(|it| view::names(&it.parts)).unwrap_or_default();
            let line_source = view::line_source(line.and_then(|it| it.line_source));
            let text = n.and_then(|n| texts.get(n.checked_sub(1)?)).map_or("", |it| it.trim());
            let (number, id) =
                n.map_or((String::new(), String::new()), |n| (n.to_string(), format!(" id=\"m{n}\"")));
            let text =
                if n.is_some() { html_line(text, Lang::C) } else { "from no line that is told".to_owned() };
            let words = escaped(&group.mix.words());
            let _ = writeln!(
                out,
                "<details class=\"m\"{names}{line_source}><summary title=\"{words}\"><i class=\"no\">{number}</i><i class=\"ct\">{}</i>\
                 <code>{text}</code></summary>\n<p class=\"quiet\">{words}</p>\n<pre class=\"code\"{id}>{}</pre></details>",
                group.mix.total(),
                group.html(self.notation.end)
            );
        }
        let title = if self.has_lines() {
            format!("{}: {} by source line", self.notation.title, counted(total, "instruction"))
        } else {
            format!("{}: {}", self.notation.title, counted(total, "instruction"))
        };
        folded(&title, &format!("<div class=\"groups\">\n{out}</div>\n"), false)
    }
}

impl Group<'_> {
    fn html(&self, end: &str) -> String {
        let line = |it: &CodeLine<'_>| match it {
            CodeLine::Function(name) | CodeLine::Label(name) => html_line(&format!("{name}:"), Lang::Sass),
            CodeLine::Instruction(text, _) => html_line(&format!("  {text}{end}"), Lang::Sass),
        };
        self.lines.iter().map(line).collect::<Vec<_>>().join("\n")
    }
}

/// A share in percent with one digit, in whole numbers so that it is the same everywhere.
fn share(count: usize, total: usize) -> String {
    let total = total.max(1);
    let tenths = (count * 2000 + total) / (total * 2);
    format!("{}.{} %", tenths / 10, tenths % 10)
}
