//! Prose in lines that fit a terminal. Wider ones get the same lines: longer ones are harder to read.

use std::io::{self, Write};

/// How many columns a line of prose may have.
pub(crate) const WIDTH: usize = 80;

/// The lines of a text of which the first begins in one column and the others in another, without what is before them.
pub(crate) fn lines(text: &str, first: usize, rest: usize) -> Vec<String> {
    let mut out: Vec<String> = vec![];
    let mut left = 0;
    for word in text.split_whitespace() {
        let width = word.chars().count();
        match out.last_mut() {
            Some(line) if left > width => {
                line.extend([" ", word]);
                left -= width + 1;
            }
            last => {
                let column = if last.is_some() { rest } else { first };
                left = WIDTH.saturating_sub(column + width);
                out.push(word.to_owned());
            }
        }
    }
    out
}

/// Prints a text in lines, the first after one indentation and the others after another.
pub(crate) fn wrapped(text: &str, first: &str, rest: &str, out: &mut dyn Write) -> io::Result<()> {
    let width = |it: &str| it.chars().count();
    let lines = lines(text, width(first), width(rest));
    let indents = [first].into_iter().chain(std::iter::repeat(rest));
    lines.iter().zip(indents).try_for_each(|(line, indent)| writeln!(out, "{indent}{line}"))
}

#[cfg(test)]
mod tests {
    use super::{lines, wrapped};

    #[test]
    fn text_is_wrapped_with_a_hanging_indentation() {
        let mut out = vec![];
        wrapped(&"word ".repeat(18), "- ", "    ", &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.lines().all(|it| it.chars().count() <= 80), "{text}");
        assert!(text.starts_with("- word") && text.lines().nth(1).unwrap().starts_with("    word"));
    }

    #[test]
    fn lines_are_as_full_as_they_can_be() {
        let forty = "x".repeat(40);
        assert_eq!(lines(&format!("{forty} {}", &forty[..39]), 0, 0).len(), 1);
        assert_eq!(lines(&format!("{forty} {forty}"), 0, 0).len(), 2);
        // A word that is wider than a line stands alone in one.
        assert_eq!(lines(&format!("a {} b", forty.repeat(3)), 0, 2), ["a", &forty.repeat(3), "b"]);
        assert!(lines(" ", 0, 0).is_empty());
    }
}
