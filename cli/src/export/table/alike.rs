//! Whether programs compute the same but for sizes.

use ir::{Func, text::print};

use crate::{diagnostic::Diagnostic, usage_error::UsageError};

/// Refuses programs that could not stand for each other: other inputs and outputs, or other arithmetic. Sizes, symbolic or not, may
/// differ; numbers in values may not.
pub(super) fn expect_alike(first: (&str, &Func), other: (&str, &Func)) -> Result<(), Diagnostic> {
    let (a, b) = (skeleton(first.1), skeleton(other.1));
    let differing = a.iter().zip(&b).find(|(a, b)| a != b);
    let (mine, theirs) = match differing {
        None if a.len() == b.len() => return Ok(()),
        Some((a, b)) => (a.as_str(), b.as_str()),
        None => ("", ""),
    };
    let title = format!("`{}` and `{}` compute different things, and a call takes either", first.0, other.0);
    let help = format!("`{mine}` is not `{theirs}`, where `#` is any size: export them one by one");
    Err(Diagnostic::usage(UsageError::Options, title).help(help))
}

/// The lines of the program with `#` for each size, and for what is computed of sizes alone.
fn skeleton(func: &Func) -> Vec<String> {
    let dims: Vec<&str> = func.dims.iter().map(ir::Name::as_str).collect();
    let text = print(func).text;
    // The first line lists the symbolic dimensions behind the name.
    let head = |line: &str| line.starts_with("func ").then(|| line.split('(').next().map(str::to_owned))?;
    text.lines().map(|line| head(line).unwrap_or_else(|| line_skeleton(line.trim(), &dims))).collect()
}

fn line_skeleton(line: &str, dims: &[&str]) -> String {
    let mut out: Vec<String> = vec![];
    for word in words(line) {
        let is_size = dims.contains(&word) || word.bytes().all(|it| it.is_ascii_digit());
        out.push(if is_size { "#".to_owned() } else { word.to_owned() });
    }
    let mut text = out.concat();
    // What is computed of sizes is one size where all of them are numbers.
    for sign in ["*", " + ", " - ", " floordiv ", " mod "] {
        let pair = format!("#{sign}#");
        while text.contains(&pair) {
            text = text.replace(&pair, "#");
        }
    }
    text
}

/// The words of a line, numbers with a point or an exponent among them, and each other character alone.
fn words(line: &str) -> Vec<&str> {
    let is_word = |it: u8| it.is_ascii_alphanumeric() || it == b'_' || it == b'.';
    let mut out = vec![];
    let mut at = 0;
    while at < line.len() {
        let bytes = line.as_bytes();
        // Ranges are written `0..n`.
        let is_range = |at: usize| line[at..].starts_with("..");
        let mut end = at;
        while end < line.len() && is_word(bytes[end]) && !is_range(end) {
            end += 1;
        }
        if end == at {
            end += if is_range(at) { 2 } else { line[at..].chars().next().map_or(1, char::len_utf8) };
        }
        out.push(&line[at..end]);
        at = end;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::line_skeleton;

    #[test]
    fn sizes_are_alike_and_numbers_are_not() {
        let of = |line: &str| line_skeleton(line, &["m", "n"]);
        assert_eq!(of("for i in 0..m {"), of("for i in 0..64 {"));
        assert_eq!(of("A: f32[m*2 + 1, n]"), of("A: f32[129, 7]"));
        assert_ne!(of("C[i] = A[i] * 0.5"), of("C[i] = A[i] * 0.25"));
        assert_ne!(of("C[i] = A[i] * 2.0"), of("C[i] = A[i] * 3.0"));
        assert_ne!(of("C[i] = A[i] + B[i]"), of("C[i] = A[i] * B[i]"));
    }
}
