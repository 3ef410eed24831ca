//! Text that nobody of us wrote, made harmless inside HTML and SVG.
//!
//! Names, paths and messages of logs may hold anything. After [`escaped`] no character of them is markup, none
//! controls a terminal or turns the direction of what follows, and what was there can still be read.

use std::fmt::Write;

/// The longest text on a page, in characters. Whatever is longer comes from a damaged or a hostile log.
const MAX_TEXT_CHARS: usize = 4_000;

/// A text on one line, for the content of an element and for an attribute in double quotes.
pub(crate) fn escaped(text: &str) -> String {
    escape(text, MAX_TEXT_CHARS, false)
}

/// A text whose lines stay lines, for `<pre>`.
pub(crate) fn escaped_block(text: &str) -> String {
    escape(text, 16 * MAX_TEXT_CHARS, true)
}

/// A sentence, what stands in backticks as code.
pub(crate) fn prose(text: &str) -> String {
    let mut out = String::new();
    for (n, part) in text.split('`').enumerate() {
        let (open, close) = if n % 2 == 1 { ("<code>", "</code>") } else { ("", "") };
        out.extend([open, &escaped(part), close]);
    }
    out
}

/// A text on one line for a terminal: nothing in it controls the terminal or hides.
pub(crate) fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    text.chars().for_each(|it| seen(it, &mut out));
    out
}

/// The first characters of a text, with a sign where there are more.
pub(crate) fn shortened(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

fn escape(text: &str, most: usize, lines: bool) -> String {
    let mut out = String::with_capacity(text.len());
    for (at, it) in text.chars().enumerate() {
        if at == most {
            out.push('…');
            break;
        }
        match it {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\'' => out += "&#39;",
            '\n' if lines => out.push('\n'),
            '\t' if lines => out.push('\t'),
            it => seen(it, &mut out),
        }
    }
    out
}

/// Adds a character, or what it is if it would not be seen.
fn seen(it: char, out: &mut String) {
    let _ = match it {
        it if it.is_control() && u32::from(it) < 0x100 => write!(out, "\\x{:02x}", u32::from(it)),
        it if is_hidden(it) => write!(out, "\\u{{{:x}}}", u32::from(it)),
        it => out.write_char(it),
    };
}

/// Characters that are not seen and change how others are: directions, joiners, line separators, tags.
fn is_hidden(it: char) -> bool {
    matches!(
        it,
        '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}'
    )
}

#[cfg(test)]
mod tests {
    use super::{MAX_TEXT_CHARS, escaped, escaped_block, prose, shortened};

    #[test]
    fn nothing_is_markup_and_nothing_is_hidden() {
        assert_eq!(escaped("a<b>&\"c'"), "a&lt;b&gt;&amp;&quot;c&#39;");
        assert_eq!(escaped("\u{1b}[31mred\0\u{7f}\u{9b}\n"), "\\x1b[31mred\\x00\\x7f\\x9b\\x0a");
        assert_eq!(escaped("\u{202e}evil\u{200b}\u{feff}"), "\\u{202e}evil\\u{200b}\\u{feff}");
        assert_eq!(escaped("größer als 3 µs"), "größer als 3 µs");
        assert_eq!(escaped_block("a\n\tb\r\n"), "a\n\tb\\x0d\n");
        assert_eq!(prose("Moves `<C>` up"), "Moves <code>&lt;C&gt;</code> up");
    }

    #[test]
    fn long_texts_end() {
        assert_eq!(escaped(&"<".repeat(MAX_TEXT_CHARS + 1)).len(), 4 * MAX_TEXT_CHARS + '…'.len_utf8());
        assert_eq!(shortened("größer", 4), "grö…");
        assert_eq!(shortened("größer", 6), "größer");
    }
}
