//! What a page expects of an output: `[..]` is anything within a line, a line `...` any lines.

/// Whether an output is as expected. Blanks at the ends of lines do not count.
pub(crate) fn matches(expected: &str, output: &str) -> bool {
    let lines = |it: &'_ str| it.trim_end().lines().map(|it| it.trim_end().to_owned()).collect::<Vec<_>>();
    match_lines(&lines(expected), &lines(output))
}

/// Whether an expectation leaves something open.
pub(crate) fn has_wildcards(expected: &str) -> bool {
    expected.lines().any(|it| it.trim_end() == "..." || it.contains("[..]"))
}

fn match_lines(expected: &[String], output: &[String]) -> bool {
    match expected.split_first() {
        None => output.is_empty(),
        Some((first, rest)) if first == "..." => {
            (0..=output.len()).any(|it| match_lines(rest, &output[it..]))
        }
        Some((first, rest)) => output
            .split_first()
            .is_some_and(|(line, more)| match_line(first, line) && match_lines(rest, more)),
    }
}

fn match_line(expected: &str, line: &str) -> bool {
    let Some((head, tail)) = expected.split_once("[..]") else { return expected == line };
    let Some(rest) = line.strip_prefix(head) else { return false };
    let ends = rest.char_indices().map(|it| it.0).chain([rest.len()]);
    ends.into_iter().any(|it| match_line(tail, &rest[it..]))
}

#[test]
fn patterns() {
    assert!(matches("a\n...\nc [..] d\n", "a\nx\ny\nc 12 d\n\n"));
    assert!(matches("...\n", ""));
    assert!(matches("[..]a[..]", "bab"));
    assert!(!matches("a\n", "a\nb\n"));
    assert!(!matches("a [..] c", "a b d"));
    assert!(!matches("", "a"));
}
