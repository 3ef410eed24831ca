//! A difference as HTML: removed and added lines, and within lines that belong together the words that differ.

use std::fmt::Write;

use crate::term::{markup::escaped, table};

/// The difference of two texts, in the form of [`schedule::diff`]; empty if there is none.
pub(crate) fn html(diff: &str) -> String {
    if diff.is_empty() {
        return String::new();
    }
    let lines: Vec<&str> = diff.lines().collect();
    let mut out = "<pre class=\"code diff\">".to_owned();
    let mut at = 0;
    while at < lines.len() {
        let removed = run(&lines[at..], '-');
        let added = run(&lines[at + removed.len()..], '+');
        if removed.is_empty() && added.is_empty() {
            let class = if lines[at].trim() == "…" { "gap" } else { "same" };
            let _ = write!(out, "<span class=\"{class}\">{}</span>", escaped(lines[at]));
            at += 1;
            continue;
        }
        let (old, new) = marked(removed, added);
        for (class, lines) in [("del", old), ("add", new)] {
            for it in lines {
                let _ = write!(out, "<span class=\"{class}\">{it}</span>");
            }
        }
        at += removed.len() + added.len();
    }
    out + "</pre>\n"
}

/// How many lines a difference has more and less, in words; none if there is none.
pub(crate) fn counted(diff: &str) -> Option<String> {
    let count = |sign: char| diff.lines().filter(|it| it.starts_with(sign)).count();
    let lines = |count| table::counted(count, "line");
    match (count('+'), count('-')) {
        (0, 0) => None,
        (more, 0) => Some(format!("{} new", lines(more))),
        (0, less) => Some(format!("{} gone", lines(less))),
        (more, less) => Some(format!("{} new, {} gone", lines(more), lines(less))),
    }
}

/// The lines from the start that begin with a sign.
fn run<'a, 'b>(lines: &'a [&'b str], sign: char) -> &'a [&'b str] {
    let end = lines.iter().position(|it| !it.starts_with(sign)).unwrap_or(lines.len());
    &lines[..end]
}

/// Removed and added lines, each removed one marked against the first added one after the last match that it shares most
/// of its words with.
fn marked(removed: &[&str], added: &[&str]) -> (Vec<String>, Vec<String>) {
    let mut new: Vec<String> = added.iter().map(|it| escaped(it)).collect();
    let mut next = 0;
    let old = removed.iter().map(|line| {
        let found = (next..added.len()).find_map(|at| Some((at, pair(line, added[at])?)));
        let Some((at, [old, other])) = found else { return escaped(line) };
        next = at + 1;
        new[at] = other;
        old
    });
    (old.collect(), new)
}

/// Two lines with what differs between them marked, apart from their indentation; none if they have little in common.
fn pair(old: &str, new: &str) -> Option<[String; 2]> {
    let start = |line: &str| 1 + line[1..].len() - line[1..].trim_start().len();
    let (a, b) = (words(&old[start(old)..]), words(&new[start(new)..]));
    let head = a.iter().zip(&b).take_while(|(a, b)| a == b).count();
    let tail = a[head..].iter().rev().zip(b[head..].iter().rev()).take_while(|(a, b)| a == b).count();
    let length = |words: &[&str]| words.iter().map(|it| it.trim().len()).sum::<usize>();
    let shared = length(&a[..head]) + length(&a[a.len() - tail..]);
    if shared == 0 || shared * 2 < length(&a).min(length(&b)) {
        return None;
    }
    let marked = |line: &str, it: &[&str]| {
        let middle = it[head..it.len() - tail].concat();
        let mark = if middle.is_empty() { String::new() } else { format!("<b>{}</b>", escaped(&middle)) };
        let (start, end) =
            ([&line[..start(line)], &it[..head].concat()].concat(), it[it.len() - tail..].concat());
        [escaped(&start), mark, escaped(&end)].concat()
    };
    Some([marked(old, &a), marked(new, &b)])
}

/// A line cut into words, numbers, blanks and single signs.
fn words(line: &str) -> Vec<&str> {
    let is_word = |it: char| it.is_alphanumeric() || it == '_';
    let mut out = vec![];
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        let is_part = |it: char| if first == ' ' { it == ' ' } else { is_word(it) };
        let end = rest.find(|it| !is_part(it)).unwrap_or(rest.len()).max(first.len_utf8());
        out.push(&rest[..end]);
        rest = &rest[end..];
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{html, words};

    #[test]
    fn what_differs_is_marked() {
        let diff = "  …\n    for i in 0..8\n- for j in 0..1024\n-   A[j + i] = B[j] + 1\n+ for jo in 0..512\n+   for ji in 0..2\n+     \
                    A[jo*2 + ji + i] = B[jo*2 + ji] + 1\n  x\n- gone\n";
        let shown = html(diff).replace("<span", "\n<span");
        insta::assert_snapshot!(shown);
        assert_eq!(html(""), "");
    }

    #[test]
    fn words_joined_are_the_line() {
        for line in ["", "  for µ in 0..8 ", "größer <b>&", "\t…"] {
            assert_eq!(words(line).concat(), line);
        }
    }
}
