//! Pages in Markdown for a terminal: fences are gone and what was between them is indented, paragraphs fit.

use super::wrap::{lines_in, width};

/// A page as it is shown, in as many columns as prose has.
pub(crate) fn shown(page: &str) -> String {
    shown_in(width(), page)
}

fn shown_in(columns: usize, page: &str) -> String {
    let mut out = String::new();
    let mut paragraph: Vec<&str> = vec![];
    let mut is_code = false;
    for line in page.lines() {
        let is_fence = line.starts_with("```");
        let begins =
            is_fence || is_code || line.trim().is_empty() || line.starts_with(['#', '|']) || is_item(line);
        if begins {
            end(&mut paragraph, columns, &mut out);
        }
        match line {
            _ if is_fence => is_code = !is_code,
            _ if is_code && !line.is_empty() => out.extend(["    ", line, "\n"]),
            _ if is_code || line.trim().is_empty() => out.push('\n'),
            _ if line.starts_with('|') => out.extend([line, "\n"]),
            _ => paragraph.push(line.trim_start_matches("# ")),
        }
        if line.starts_with('#') {
            end(&mut paragraph, columns, &mut out);
        }
    }
    end(&mut paragraph, columns, &mut out);
    out
}

/// Puts a paragraph or an item of a list out, the lines of the latter after the first below its text.
fn end(paragraph: &mut Vec<&str>, columns: usize, out: &mut String) {
    let text = std::mem::take(paragraph).join(" ");
    let hanging = if is_item(&text) { text.find(' ').map_or(0, |it| it + 1) } else { 0 };
    for (n, line) in lines_in(columns, &text, 0, hanging).iter().enumerate() {
        let indent = if n == 0 { 0 } else { hanging };
        out.extend([&" ".repeat(indent), line, "\n"]);
    }
}

/// Whether a line begins an item of a list: `* `, `- `, `2. `.
fn is_item(line: &str) -> bool {
    let number = line.trim_start_matches(|it: char| it.is_ascii_digit());
    line.starts_with("* ")
        || line.starts_with("- ")
        || (number.len() < line.len() && number.starts_with(". "))
}

#[cfg(test)]
mod tests {
    use super::shown_in;

    #[test]
    fn fences_are_gone_and_paragraphs_fit() {
        let page = "# TW0001: a thing that is wrong\n\nSome words about it, which are longer than the\nterminal is wide.\n\n\
                    ```text\nfor i in 0..e { s } // a line that stays as it is, however long it may be\n\n->\n```\n\n\
                    * one item of a list, which goes on here\n* two\n1. first\n| a | table |\n";
        assert_eq!(
            shown_in(30, page),
            "TW0001: a thing that is wrong\n\nSome words about it, which are\nlonger than the terminal is\nwide.\n\n    \
             for i in 0..e { s } // a line that stays as it is, however long it may be\n\n    ->\n\n\
             * one item of a list, which\n  goes on here\n* two\n1. first\n| a | table |\n"
        );
    }
}
