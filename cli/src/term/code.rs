//! Programs in colour: cut into pieces once, for terminals and for pages.
//!
//! A piece is told by its looks alone, a line at a time; nothing here parses. What the pieces are made of is always the
//! text itself: without colour, and with the markup taken away, every byte is as it was.
//!
//! Only colours that read on a dark and on a light background are used, and those of the terminal's own choice: neither
//! yellow, nor white, nor black, nor dark blue.

use std::fmt::Write;

use clap::builder::styling::{AnsiColor, Style};
use ir::DType;

use super::markup::escaped;

/// What a text is written in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Lang {
    /// The text form of programs and lowered kernels.
    Ir,
    /// Steps of a schedule.
    Ron,
    /// C and CUDA C++.
    C,
    /// PTX.
    Ptx,
    /// SASS.
    Sass,
    /// Graphviz.
    Dot,
    /// TVMScript.
    Python,
    /// A difference: lines that begin with `+`, `-` or a blank.
    Diff,
}

/// What a piece of it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Class {
    Plain,
    Keyword,
    Type,
    Number,
    Text,
    Name,
    Comment,
    Added,
    Removed,
}

const IR: &[&str] = &[
    "func", "module", "kernel", "in", "out", "temp", "alloc", "for", "block", "init", "if", "reduce", "mut",
    "align", "swizzle", "barrier", "commit", "wait", "acquire", "release", "at", "of", "floordiv", "mod",
    "min", "max", "xor", "select", "zeroed",
];
/// Types of C and of headers; the others are those that programs have.
const TYPES: &[&str] = &[
    "void", "char", "short", "int", "long", "float", "double", "half", "unsigned", "signed", "size_t",
    "int64_t", "int32_t", "int16_t", "int8_t", "uint64_t", "uint32_t", "uint16_t", "uint8_t",
];
const C: &str = "if else for while do return break continue struct union typedef static const extern inline asm volatile sizeof \
    switch case default template typename using namespace __global__ __device__ __shared__ __forceinline__ __launch_bounds__ \
    __align__ __restrict__ restrict __attribute__";
const DOT: &[&str] = &["digraph", "subgraph", "node", "edge", "graph", "def", "for", "import", "with"];

/// A line in pieces, which joined are the line.
pub(crate) fn pieces(line: &str, lang: Lang) -> Vec<(Class, &str)> {
    if lang == Lang::Diff {
        let class = match line.as_bytes().first() {
            Some(b'+') => Class::Added,
            Some(b'-') => Class::Removed,
            Some(_) | None => Class::Plain,
        };
        return vec![(class, line)];
    }
    let mut out: Vec<(Class, &str)> = vec![];
    let mut rest = line;
    // What stands before decides what a word is: a name after `for`, an operation at the start.
    let mut before = Before::Start;
    while !rest.is_empty() {
        let end = end_of_piece(rest, lang);
        let (piece, after) = rest.split_at(end);
        let class = class_of(piece, after, lang, before);
        before = before.after(piece, class);
        match out.last_mut() {
            // Pieces of one line lie one after the other, so two of a class are one longer piece.
            Some((last, text)) if *last == class => {
                let start = line.len() - rest.len() - text.len();
                *text = &line[start..line.len() - after.len()];
            }
            _ => out.push((class, piece)),
        }
        rest = after;
    }
    out
}

/// What stands before a piece.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Before {
    /// Nothing but blanks, addresses and conditions.
    Start,
    /// A word that names what comes next.
    Binder,
    Other,
}

impl Before {
    fn after(self, piece: &str, class: Class) -> Before {
        let is_blank = piece.trim().is_empty();
        let is_condition = piece.starts_with('@');
        match self {
            Before::Start if is_blank || class == Class::Comment || is_condition => Before::Start,
            Before::Binder if is_blank => Before::Binder,
            Before::Start | Before::Binder | Before::Other if BINDERS.contains(&piece) => Before::Binder,
            Before::Start | Before::Binder | Before::Other => Before::Other,
        }
    }
}

const BINDERS: [&str; 9] = ["func", "module", "kernel", "block", "for", "temp", "alloc", "in", "out"];

fn is_word(it: char) -> bool {
    it.is_alphanumeric() || it == '_'
}

/// How long the piece is that a text begins with.
fn end_of_piece(rest: &str, lang: Lang) -> usize {
    let until = |stop: &dyn Fn(char) -> bool| rest.find(stop).unwrap_or(rest.len());
    let first = rest.chars().next().unwrap_or(' ');
    let has_comments = (lang != Lang::Ron || rest.starts_with("// ")) && lang != Lang::Python;
    if rest.starts_with("//") && has_comments {
        return rest.len();
    }
    if rest.starts_with("/*") {
        return rest.find("*/").map_or(rest.len(), |it| it + 2);
    }
    if first == '"' {
        return end_of_text(rest);
    }
    if first.is_ascii_digit() {
        return end_of_number(rest);
    }
    let tail = |skip: usize, more: &str| {
        let is_part = |it: char| is_word(it) || more.contains(it);
        skip + rest[skip..].find(|it| !is_part(it)).unwrap_or(rest.len() - skip)
    };
    match (first, lang) {
        (it, _) if it.is_whitespace() => until(&|it| !it.is_whitespace()),
        ('@', Lang::Ir | Lang::Ptx | Lang::Sass) => tail(1, ".%!").max(1),
        ('#', Lang::C) => tail(1, ""),
        ('.' | '%' | '$', Lang::Ptx) | ('.', Lang::Sass) => tail(1, ".$"),
        (it, Lang::Ptx | Lang::Sass) if is_word(it) => tail(0, "."),
        (it, _) if is_word(it) => tail(0, ""),
        (it, _) => it.len_utf8(),
    }
}

fn end_of_text(rest: &str) -> usize {
    let mut is_escaped = false;
    for (at, it) in rest.char_indices().skip(1) {
        match it {
            '"' if !is_escaped => return at + 1,
            '\\' => is_escaped = !is_escaped,
            _ => is_escaped = false,
        }
    }
    rest.len()
}

/// Digits with point, exponent and type; the points of a range are none of it.
fn end_of_number(rest: &str) -> usize {
    let bytes = rest.as_bytes();
    let mut at = 1;
    while let Some(it) = bytes.get(at) {
        let is_range = *it == b'.' && bytes.get(at + 1) == Some(&b'.');
        let is_exponent = matches!(it, b'+' | b'-')
            && matches!(bytes[at - 1], b'e' | b'E')
            && !rest.starts_with("0x")
            && bytes.get(at + 1).is_some_and(u8::is_ascii_digit);
        if is_range || !(it.is_ascii_alphanumeric() || matches!(it, b'.' | b'_') || is_exponent) {
            break;
        }
        at += 1;
    }
    at
}

fn class_of(piece: &str, after: &str, lang: Lang, before: Before) -> Class {
    let first = piece.chars().next().unwrap_or(' ');
    if piece.starts_with("//") || piece.starts_with("/*") {
        return Class::Comment;
    }
    if first == '"' {
        return Class::Text;
    }
    if first.is_ascii_digit() {
        return Class::Number;
    }
    let is_type = TYPES.contains(&piece) || piece.parse::<DType>().is_ok();
    match lang {
        Lang::Ir if first == '@' && piece.len() > 1 => Class::Keyword,
        Lang::Ir if before == Before::Binder && is_word(first) => Class::Name,
        Lang::Ir if IR.contains(&piece) => Class::Keyword,
        Lang::Ir | Lang::C if is_type || (lang == Lang::C && piece.starts_with("tw_f")) => Class::Type,
        Lang::C if first == '#' || C.split(' ').any(|it| it == piece) => Class::Keyword,
        Lang::Ron if is_word(first) && after.starts_with('(') => Class::Keyword,
        Lang::Ron if is_word(first) && after.starts_with(':') => Class::Name,
        Lang::Dot | Lang::Python if DOT.contains(&piece) => Class::Keyword,
        Lang::Ptx | Lang::Sass if is_word(first) || matches!(first, '.' | '$') => {
            machine(piece, after, before)
        }
        Lang::Ir | Lang::C | Lang::Ron | Lang::Dot | Lang::Python | Lang::Ptx | Lang::Sass | Lang::Diff => {
            Class::Plain
        }
    }
}

/// A word of an assembly: a label, the operation at the start of a line, a directive or its operand.
fn machine(piece: &str, after: &str, before: Before) -> Class {
    match before {
        Before::Start if after.starts_with(':') => Class::Name,
        Before::Start => Class::Keyword,
        Before::Binder | Before::Other if piece.starts_with(['.', '$']) && !piece.starts_with(".L") => {
            Class::Type
        }
        Before::Binder | Before::Other => Class::Plain,
    }
}

fn style(class: Class) -> Style {
    let fg = |it: AnsiColor| Style::new().fg_color(Some(it.into()));
    match class {
        Class::Plain => Style::new(),
        Class::Keyword => fg(AnsiColor::Magenta),
        Class::Type | Class::Number => fg(AnsiColor::Cyan),
        Class::Text | Class::Added => fg(AnsiColor::Green),
        Class::Removed => fg(AnsiColor::Red),
        Class::Name => Style::new().bold(),
        Class::Comment => Style::new().dimmed(),
    }
}

/// The class of a piece on a page; none for what is plain.
const fn css(class: Class) -> &'static str {
    match class {
        Class::Plain => "",
        Class::Keyword => "k",
        Class::Type => "t",
        Class::Number => "n",
        Class::Text => "s",
        Class::Name => "d",
        Class::Comment => "c",
        Class::Added => "add",
        Class::Removed => "del",
    }
}

/// A text for a terminal that shows colour.
pub(crate) fn ansi(text: &str, lang: Lang) -> String {
    let mut out = String::with_capacity(text.len() * 2);
    for (n, line) in text.split('\n').enumerate() {
        out.extend((n > 0).then_some('\n'));
        for (class, piece) in pieces(line, lang) {
            // Blanks have no colour, and a colour that nothing shows only makes the output longer.
            if class == Class::Plain || piece.trim().is_empty() {
                out += piece;
            } else {
                let style = style(class);
                let _ = write!(out, "{style}{piece}{style:#}");
            }
        }
    }
    out
}

/// A text for a page, whose style gives the classes `k t n s d c` their colours.
pub(crate) fn html(text: &str, lang: Lang) -> String {
    let mut out = String::with_capacity(text.len() * 2);
    for (n, line) in text.split('\n').enumerate() {
        out.extend((n > 0).then_some('\n'));
        out += &html_line(line, lang);
    }
    out
}

/// One line of it.
pub(crate) fn html_line(line: &str, lang: Lang) -> String {
    let mut out = String::with_capacity(line.len() * 2);
    for (class, piece) in pieces(line, lang) {
        // Tabs are no control characters here.
        let piece = piece.split('\t').map(escaped).collect::<Vec<_>>().join("\t");
        if class == Class::Plain || piece.trim().is_empty() {
            out += &piece;
        } else {
            let _ = write!(out, "<span class=\"{}\">{piece}</span>", css(class));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{Lang, ansi, html, pieces};

    const SAMPLES: [(Lang, &str); 7] = [
        (
            Lang::Ir,
            "func mine(n)\n  temp A_shared: f32[n, 64] @shared align(0, 32, 4)\n\n  for io in 0..n floordiv 8 @blockIdx.x\n    \
             for k in 0..64 #{stage: {A: 0}, note: \"a \\\" b\"}\n      block C(vk: reduce 64 = k) if io*8 < n // why\n        \
             C[vi] = C[vi] + 1.5e-3f32 * f32(A[vk])\n    wait 1 for A_shared\n    A[0 +: 4] <- B[0 +: 4]",
        ),
        (Lang::Ron, "split(loop: \"i\", into: {\"io\": None, \"ii\": 32}),"),
        (
            Lang::C,
            "#pragma unroll\nextern \"C\" __global__ void __launch_bounds__(128) mine(const float *__restrict__ A) {\n  \
             for (int i = 0; i < 0x1f; ++i) { /* here */ A[i] = 0.5f; } // done",
        ),
        (
            Lang::Ptx,
            ".visible .entry mine(\n\t.param .u64 mine_param_0\n)\n$L__BB0_1:\n\t@%p1 bra \t$L__BB0_2;\n\tmul.wide.s32 \t%rd2, %r1, 4; // x",
        ),
        (
            Lang::Sass,
            "mine:\n.L_x_2:\n  /*0010*/  @!P0 LDG.E.128 R4, [R2.64+0x10] ;\n  /*0020*/  BRA `(.L_x_2) ;",
        ),
        (Lang::Dot, "digraph \"mine\" {\n  \"A\" -> \"C\" [label=\"RAW A\", style=dashed];\n}"),
        (Lang::Diff, "  same\n- for i in 0..8\n+ for io in 0..4"),
    ];

    #[test]
    fn colours_of_a_terminal() {
        let shown = SAMPLES.map(|(lang, text)| format!("{lang:?}\n{}", ansi(text, lang)));
        insta::assert_snapshot!(shown.join("\n\n").replace('\u{1b}', "␛"));
    }

    #[test]
    fn classes_of_a_page() {
        let shown = SAMPLES.map(|(lang, text)| html(text, lang));
        insta::assert_snapshot!(shown.join("\n\n"));
    }

    #[test]
    fn pieces_joined_are_the_line() {
        let odd = [
            "",
            "\"open",
            "/* open",
            "größer µs 3µ",
            "0..",
            "1e+",
            "@",
            "#",
            "a\\\"b",
            "\u{1b}[2J<b>",
            "..",
            "%",
            "//",
        ];
        for (lang, text) in SAMPLES {
            for line in text.lines().chain(odd) {
                let joined: String = pieces(line, lang).iter().map(|it| it.1).collect();
                assert_eq!(joined, line, "{lang:?}");
            }
        }
        assert!(!html("<script>\u{1b}", Lang::Ir).contains(['<', '\u{1b}']));
    }
}
