//! Changes of a script's text that keep most of it whole: steps, numbers and strings are found and changed; now and then
//! bytes are. What comes out is often accepted up to some step, which a text of random bytes never is.

use std::ops::Range;

use crate::rng::Rng;

const NUMBERS: [&str; 24] = [
    "0",
    "1",
    "2",
    "3",
    "4",
    "5",
    "7",
    "8",
    "16",
    "17",
    "31",
    "32",
    "33",
    "64",
    "255",
    "1024",
    "-1",
    "-8",
    "2147483648",
    "4611686018427387904",
    "9223372036854775807",
    "-9223372036854775808",
    "99999999999999999999",
    "1e308",
];

const STRINGS: [&str; 22] = [
    "",
    " ",
    "i",
    "j",
    "k",
    "io",
    "ii",
    "A",
    "B",
    "C",
    "A_shared",
    "C_local",
    "blockIdx.x",
    "threadIdx.x",
    "threadIdx.y",
    "shared",
    "local",
    "__global__",
    "é",
    "i\\u{0}",
    "0 - 9223372036854775807 - 1",
    "8 / (4 - 4)",
];

/// One to four changes. Steps and strings of `others` may get in.
pub(crate) fn mutate(text: &str, others: &[String], rng: &mut Rng) -> String {
    let mut text = text.to_owned();
    for _ in 0..=rng.below(4) {
        text = once(&text, others, rng);
    }
    text
}

fn once(text: &str, others: &[String], rng: &mut Rng) -> String {
    match rng.below(20) {
        0..8 => of_steps(text, others, rng),
        8..13 => replaced(text, &numbers(text), rng.pick(&NUMBERS), rng),
        13..17 => of_strings(text, others, rng),
        17 => replaced(text, &strings(text), &format!("\"{}\"", "a".repeat(rng.below(5000))), rng),
        _ => of_bytes(text, rng),
    }
}

/// Deletes, doubles, swaps or takes over a step.
fn of_steps(text: &str, others: &[String], rng: &mut Rng) -> String {
    let all = steps(text);
    if all.is_empty() {
        return of_bytes(text, rng);
    }
    let at = all[rng.below(all.len())].clone();
    let other = all[rng.below(all.len())].clone();
    let whole =
        |range: &Range<usize>, by: &str| format!("{}{by}{}", &text[..range.start], &text[range.end..]);
    match rng.below(4) {
        0 => whole(&at, ""),
        1 => whole(&at, &format!("{0},{0}", &text[at.clone()])),
        2 => {
            let (first, second) = if at.start < other.start { (at, other) } else { (other, at) };
            if first.end > second.start {
                return text.to_owned();
            }
            let parts = [&text[..first.start], &text[second.clone()], &text[first.end..second.start]];
            format!("{}{}{}", parts.concat(), &text[first], &text[second.end..])
        }
        _ => {
            let from = &others[rng.below(others.len())];
            let theirs = steps(from);
            if theirs.is_empty() {
                return text.to_owned();
            }
            let step = &from[theirs[rng.below(theirs.len())].clone()];
            whole(&(at.start..at.start), &format!("{step},"))
        }
    }
}

fn of_strings(text: &str, others: &[String], rng: &mut Rng) -> String {
    let from = if rng.below(3) == 0 { &others[rng.below(others.len())] } else { text };
    let known = strings(from);
    if known.is_empty() || rng.below(4) == 0 {
        let word = format!("\"{}\"", rng.pick(&STRINGS));
        return replaced(text, &strings(text), &word, rng);
    }
    let word = &from[known[rng.below(known.len())].clone()];
    replaced(text, &strings(text), word, rng)
}

fn of_bytes(text: &str, rng: &mut Rng) -> String {
    let floor = |at: usize| text.floor_char_boundary(at.min(text.len()));
    let start = floor(rng.below(text.len() + 1));
    let end = floor(start + rng.below(12)).max(start);
    let by = rng.pick(&[
        "", "(", ")", "[", "]", "{", "}", "\"", ",", ":", "None", "-", "\0", "\u{feff}", "\u{202e}", "🦀",
    ]);
    match rng.below(8) {
        0 => text[..start].to_owned(),
        _ => format!("{}{by}{}", &text[..start], &text[end..]),
    }
}

fn replaced(text: &str, places: &[Range<usize>], by: &str, rng: &mut Rng) -> String {
    if places.is_empty() {
        return text.to_owned();
    }
    let at = &places[rng.below(places.len())];
    format!("{}{by}{}", &text[..at.start], &text[at.end..])
}

/// The steps of the outermost list behind `steps:`.
pub(crate) fn steps(text: &str) -> Vec<Range<usize>> {
    let Some(list) = text.find("steps:").and_then(|at| Some(at + text[at..].find('[')? + 1)) else {
        return vec![];
    };
    let (mut out, mut depth, mut start, mut quoted) = (vec![], 0usize, list, false);
    for (at, byte) in text.bytes().enumerate().skip(list) {
        match byte {
            b'"' => quoted = !quoted,
            _ if quoted => {}
            b'(' | b'[' | b'{' => depth += 1,
            b']' if depth == 0 => break,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => {
                out.push(start..at);
                start = at + 1;
            }
            _ => {}
        }
    }
    out.retain(|it| !text[it.clone()].trim().is_empty());
    out
}

fn numbers(text: &str) -> Vec<Range<usize>> {
    let mut out: Vec<Range<usize>> = vec![];
    for (at, byte) in text.bytes().enumerate().filter(|it| it.1.is_ascii_digit()) {
        debug_assert!(byte.is_ascii_digit(), "others were left out");
        match out.last_mut() {
            Some(last) if last.end == at => last.end = at + 1,
            _ => out.push(at..at + 1),
        }
    }
    // A digit of a name is no number.
    let in_name = |at: usize| {
        at > 0 && (text.as_bytes()[at - 1].is_ascii_alphabetic() || text.as_bytes()[at - 1] == b'_')
    };
    out.retain(|it| !in_name(it.start));
    out
}

fn strings(text: &str) -> Vec<Range<usize>> {
    let quotes: Vec<usize> = text.match_indices('"').map(|it| it.0).collect();
    quotes.chunks_exact(2).map(|it| it[0]..it[1] + 1).collect()
}
