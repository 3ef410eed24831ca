//! The script line by line, with what is wrong below the line that it is about.

use std::fmt::Write;

use crate::term::{
    code::{Lang, html_line},
    markup::escaped_block,
};

/// Something that is wrong.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Finding {
    /// The byte of the script that it is about; none if it is about nothing there.
    pub(super) at: Option<usize>,
    /// What `check` says of it.
    pub(super) words: String,
    /// Its code.
    pub(super) code: String,
}

/// The lines. What has no place in the script stands above them.
pub(super) fn lines(text: &str, wrong: &[Finding]) -> String {
    let mut out = String::new();
    let at = |it: &Finding| it.at.map(|at| line_of(text, at));
    wrong.iter().filter(|it| it.at.is_none()).for_each(|it| finding(it, &mut out));
    out += "<div class=\"code lines script\">";
    for (n, line) in (1..).zip(text.lines()) {
        let here: Vec<_> = wrong.iter().filter(|it| at(it) == Some(n)).collect();
        let class = if here.is_empty() { "l" } else { "l bad" };
        let shown = html_line(line, Lang::Ron);
        let _ = write!(out, "<span class=\"{class}\" id=\"s{n}\"><i class=\"no\">{n}</i>{shown}</span>");
        for it in here {
            finding(it, &mut out);
        }
    }
    out + "</div>\n"
}

/// The line of a byte, from 1. The end of the text is in its last line, and not behind it.
pub(super) fn line_of(text: &str, at: usize) -> usize {
    let before = &text[..text.floor_char_boundary(at.min(text.len()))];
    (before.matches('\n').count() + 1).min(text.lines().count().max(1))
}

fn finding(it: &Finding, out: &mut String) {
    let words = escaped_block(&it.words);
    let _ = write!(out, "<pre class=\"finding\" data-code=\"{}\">{words}</pre>", it.code);
}

#[cfg(test)]
mod tests {
    use super::{Finding, line_of, lines};

    #[test]
    fn what_is_wrong_stands_below_its_line() {
        let wrong = |at, words: &str| Finding { at, words: words.to_owned(), code: "TW0001".to_owned() };
        let shown =
            lines("a\nb <c>\n", &[wrong(Some(2), "x < y"), wrong(None, "no place"), wrong(Some(99), "end")]);
        insta::assert_snapshot!(shown.replace("<span", "\n<span").replace("<pre", "\n<pre"));
    }

    #[test]
    fn every_byte_has_a_line() {
        assert_eq!([0, 1, 2, 7].map(|at| line_of("a\nü\n", at)), [1, 1, 2, 2]);
        assert_eq!(line_of("", 0), 1);
    }
}
