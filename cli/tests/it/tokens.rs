//! Sources of this repository as words and marks, for tests that read them.

#![expect(clippy::unwrap_used, reason = "a test may stop")]

/// Cuts a source into words, `::` and single marks, without comments and literals of text. Comments are those of a line: there
/// are no others here.
pub(crate) fn tokens(text: &str) -> Vec<String> {
    let mut out: Vec<String> = vec![];
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let is_word = |it: char| it.is_alphanumeric() || it == '_';
        let length = if first.is_whitespace() {
            first.len_utf8()
        } else if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if first == '"' {
            quoted(rest, '"')
        } else if first == '\'' {
            let is_literal = rest[1..].starts_with('\\') || rest[1..].chars().nth(1) == Some('\'');
            let word = || 1 + rest[1..].find(|it| !is_word(it)).unwrap();
            if is_literal { quoted(rest, '\'') } else { word() }
        } else if is_word(first) {
            let length = rest.find(|it| !is_word(it)).unwrap_or(rest.len());
            let after = rest[length..].trim_start_matches('#');
            if ["r", "br", "cr"].contains(&&rest[..length]) && after.starts_with('"') {
                let end = format!("\"{}", "#".repeat(rest.len() - length - after.len()));
                rest.len() - after.len() + 1 + after[1..].find(&end).unwrap() + end.len()
            } else {
                out.push(rest[..length].to_owned());
                length
            }
        } else {
            let length = if rest.starts_with("::") { 2 } else { first.len_utf8() };
            out.push(rest[..length].to_owned());
            length
        };
        rest = &rest[length..];
    }
    out
}

/// The length of a literal, whose first character is its mark.
fn quoted(text: &str, mark: char) -> usize {
    let mut escaped = false;
    for (at, next) in text.char_indices().skip(1) {
        if next == mark && !escaped {
            return at + 1;
        }
        escaped = next == '\\' && !escaped;
    }
    panic!("a literal without an end")
}

/// Removes what is compiled for tests only.
pub(crate) fn without_tests(tokens: &[String]) -> Vec<String> {
    let attribute = ["#", "[", "cfg", "(", "test", ")", "]"];
    let mut out = vec![];
    let mut at = 0;
    while at < tokens.len() {
        if !tokens[at..].starts_with(&attribute.map(str::to_owned)) {
            out.push(tokens[at].clone());
            at += 1;
            continue;
        }
        let (mut depth, mut is_use) = (0, false);
        loop {
            let token = &*tokens[at];
            is_use |= depth == 0 && token == "use";
            depth +=
                i32::from(["(", "[", "{"].contains(&token)) - i32::from([")", "]", "}"].contains(&token));
            at += 1;
            if depth == 0 && (token == ";" || token == "}" && !is_use) {
                break;
            }
        }
    }
    out
}

/// Whether a token is a name or a keyword.
pub(crate) fn is_word(token: &str) -> bool {
    token.starts_with(|it: char| it.is_alphabetic() || it == '_')
}
