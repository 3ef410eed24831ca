//! Prose in lines that fit a terminal. Wider ones get the same lines as one of 80 columns: longer ones are harder to read.

use std::{
    env,
    io::{self, Write},
    sync::atomic::{AtomicUsize, Ordering},
};

use terminal_size::{Width, terminal_size_of};

/// How many columns a line of prose may have.
pub(crate) const WIDTH: usize = 80;
/// What is narrower is taken for this: few words would fit.
const MIN_COLUMNS: usize = 20;

/// The columns of prose, and those of errors, which are not wrapped where no terminal shows them.
static COLUMNS: [AtomicUsize; 2] = [AtomicUsize::new(WIDTH), AtomicUsize::new(usize::MAX)];

/// Looks how wide the terminals behind standard output and standard error are; `COLUMNS` in the environment decides for
/// both. Until then prose is 80 columns wide.
pub(crate) fn look() {
    let asked = env::var("COLUMNS").ok().and_then(|it| it.parse::<usize>().ok()).filter(|it| *it > 0);
    let columns = |found: Option<(Width, _)>| asked.or(found.map(|(Width(it), _)| usize::from(it)));
    let prose = columns(terminal_size_of(io::stdout())).unwrap_or(WIDTH);
    let errors = columns(terminal_size_of(io::stderr())).unwrap_or(usize::MAX);
    COLUMNS[0].store(prose.clamp(MIN_COLUMNS, WIDTH), Ordering::Relaxed);
    COLUMNS[1].store(errors.max(MIN_COLUMNS), Ordering::Relaxed);
}

/// How many columns prose has.
pub(crate) fn width() -> usize {
    COLUMNS[0].load(Ordering::Relaxed)
}

/// The same where that is less than usual; else as many as there are, for reports that are wrapped only to fit.
pub(crate) fn narrow() -> usize {
    if width() < WIDTH { width() } else { usize::MAX }
}

/// How many columns the terminal has that shows errors.
pub(crate) fn error_width() -> usize {
    COLUMNS[1].load(Ordering::Relaxed)
}

/// The lines of a text of which the first begins in one column and the others in another, without what is before them.
pub(crate) fn lines(text: &str, first: usize, rest: usize) -> Vec<String> {
    lines_in(width(), text, first, rest)
}

/// The same in so many columns. What stands between escapes of colour takes none.
pub(crate) fn lines_in(columns: usize, text: &str, first: usize, rest: usize) -> Vec<String> {
    let mut out: Vec<String> = vec![];
    let mut left = 0;
    for word in text.split_whitespace() {
        let width = seen(word);
        match out.last_mut() {
            Some(line) if left > width => {
                line.extend([" ", word]);
                left -= width + 1;
            }
            last => {
                let column = if last.is_some() { rest } else { first };
                left = columns.saturating_sub(column + width);
                out.push(word.to_owned());
            }
        }
    }
    out
}

/// What is seen of a text: escapes that colour it are not.
fn plain(text: &str) -> String {
    let (mut out, mut chars) = (String::new(), text.chars());
    while let Some(it) = chars.next() {
        if it == '\u{1b}' {
            // `ESC [` and parameters, up to a letter.
            chars.by_ref().find(char::is_ascii_alphabetic);
        } else {
            out.push(it);
        }
    }
    out
}

fn seen(text: &str) -> usize {
    plain(text).chars().count()
}

/// Prints a text in lines, the first after one indentation and the others after another.
pub(crate) fn wrapped(text: &str, first: &str, rest: &str, out: &mut dyn Write) -> io::Result<()> {
    let width = |it: &str| it.chars().count();
    let lines = lines(text, width(first), width(rest));
    let indents = [first].into_iter().chain(std::iter::repeat(rest));
    lines.iter().zip(indents).try_for_each(|(line, indent)| writeln!(out, "{indent}{line}"))
}

/// A rendered report with its sentences in lines that fit so many columns. Lines that show a source stay as they are, and so
/// do words that do not fit, such as command lines to copy.
pub(crate) fn folded(report: &str, columns: usize) -> String {
    let fold = |line: &str| {
        if seen(line) <= columns || is_source(line) {
            return line.to_owned();
        }
        let indent = line.len() - line.trim_start().len();
        // What follows `  = help: ` begins where that ends, unless it would have no room.
        let hanging = match line.split_once(": ") {
            Some((head, _)) if indent > 0 && seen(head) + 2 <= columns / 3 => seen(head) + 2,
            _ => indent + 2,
        };
        let lines = lines_in(columns, line, indent, hanging);
        format!("{:indent$}{}", "", lines.join(&format!("\n{:hanging$}", "")))
    };
    report.split('\n').map(fold).collect::<Vec<_>>().join("\n")
}

/// Whether a line of a report is one of a source, has a mark below one, or its place.
fn is_source(line: &str) -> bool {
    let plain = plain(line);
    let rest = plain.trim_start().trim_start_matches(|it: char| it.is_ascii_digit()).trim_start();
    ["|", "-->", ":::", "..."].iter().any(|it| rest.starts_with(it))
}

#[cfg(test)]
mod tests {
    use super::{folded, lines, lines_in, wrapped};

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

    #[test]
    fn reports_fit_forty_columns_and_sources_stay() {
        let report = "error[TW1002]: there is no loop `jj` in this program, and none of that name was made before\n \
                      --> mine.ron:6:21\n  |\n6 |         split(loop: \"jj\", into: {\"jo\": None, \"ji\": 16}),\n  \
                      = help: there is `j`, and `jo` is made by the step after this one\n\u{1b}[1mFor more about \
                      this error, try `tilewright explain TW1002`.\u{1b}[0m";
        let text = folded(report, 40);
        assert_eq!(
            text,
            "error[TW1002]: there is no loop `jj` in\n  this program, and none of that name\n  was made before\n \
             --> mine.ron:6:21\n  |\n6 |         split(loop: \"jj\", into: {\"jo\": None, \"ji\": 16}),\n  \
             = help: there is `j`, and `jo` is made\n          by the step after this one\n\u{1b}[1mFor more about \
             this error, try\n  `tilewright explain TW1002`.\u{1b}[0m"
        );
        assert_eq!(folded(report, usize::MAX), report);
        assert_eq!(lines_in(40, &"word ".repeat(9), 0, 0).len(), 2);
    }
}
