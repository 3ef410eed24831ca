//! A difference as HTML: removed and added lines, and within lines that belong together the words that differ.

use std::fmt::Write;

use crate::term::markup::escaped;

/// The difference of two texts, in the form of [`schedule::diff`]; empty if there is none.
pub(super) fn html(diff: &str) -> String {
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
        let mut told: Vec<[String; 2]> = vec![];
        for n in 0..removed.len().max(added.len()) {
            told.push(match (removed.get(n), added.get(n)) {
                (Some(old), Some(new)) => pair(old, new),
                (old, new) => [old, new].map(|it| it.map(|it| escaped(it)).unwrap_or_default()),
            });
        }
        for (side, class) in ["del", "add"].into_iter().enumerate() {
            let count = [removed.len(), added.len()][side];
            for it in &told[..count] {
                let _ = write!(out, "<span class=\"{class}\">{}</span>", it[side]);
            }
        }
        at += removed.len() + added.len();
    }
    out + "</pre>\n"
}

/// The lines from the start that begin with a sign.
fn run<'a, 'b>(lines: &'a [&'b str], sign: char) -> &'a [&'b str] {
    let end = lines.iter().position(|it| !it.starts_with(sign)).unwrap_or(lines.len());
    &lines[..end]
}

/// Two lines with what differs between them marked; as they are if they have little in common.
fn pair(old: &str, new: &str) -> [String; 2] {
    let (a, b) = (words(&old[1..]), words(&new[1..]));
    let head = a.iter().zip(&b).take_while(|(a, b)| a == b).count();
    let tail = a[head..].iter().rev().zip(b[head..].iter().rev()).take_while(|(a, b)| a == b).count();
    let shared: usize = a[..head].iter().chain(&a[a.len() - tail..]).map(|it| it.trim().len()).sum();
    if shared * 2 < old.trim().len().min(new.trim().len()) {
        return [escaped(old), escaped(new)];
    }
    let marked = |sign: &str, it: &[&str]| {
        let middle = it[head..it.len() - tail].concat();
        let mark = if middle.is_empty() { String::new() } else { format!("<b>{}</b>", escaped(&middle)) };
        let (start, end) = (it[..head].concat(), it[it.len() - tail..].concat());
        [sign, &escaped(&start), &mark, &escaped(&end)].concat()
    };
    [marked("-", &a), marked("+", &b)]
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
        let diff = "  …\n    for i in 0..8\n- for j in 0..1024\n- A[i] = 1\n+ for j in 0..512\n+ for k in 0..2\n  x\n- gone\n";
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
