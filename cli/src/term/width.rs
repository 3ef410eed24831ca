//! How wide a terminal is, and how wide texts are on it.

use std::io;

use terminal_size::{Width, terminal_size_of};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// How many columns a terminal has that does not say.
const DEFAULT_COLUMNS: usize = 80;

/// How many columns the terminal of standard error has now: its user may change that at any time.
pub(crate) fn columns() -> usize {
    match terminal_size_of(io::stderr()) {
        Some((Width(columns), _)) if columns > 0 => columns.into(),
        Some(_) | None => DEFAULT_COLUMNS,
    }
}

/// How many columns a text takes in one line.
pub(crate) fn width(text: &str) -> usize {
    text.width()
}

/// A text, or as much of it as fits so many columns with `…` behind it.
pub(crate) fn cut(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mut left = columns.saturating_sub(1);
    let fits = |it: &char| {
        let wide = it.width().unwrap_or(0);
        let fits = wide <= left;
        left = left.saturating_sub(wide);
        fits
    };
    let mut out: String = text.chars().take_while(fits).collect();
    out.extend((columns > 0).then_some('…'));
    out
}

#[cfg(test)]
mod tests {
    use super::{cut, width};

    #[test]
    fn texts_are_cut_by_what_is_seen() {
        assert_eq!(cut("12/200 searching", 16), "12/200 searching");
        assert_eq!(cut("12/200 searching", 15), "12/200 searchi…");
        assert_eq!(cut("ß▂▅", 2), "ß…");
        // Each of these takes two columns, and no half of one is shown.
        assert_eq!(cut("行列の積", 8), "行列の積");
        assert_eq!(cut("行列の積", 7), "行列の…");
        assert_eq!(cut("行列の積", 6), "行列…");
        assert_eq!((cut("ab", 1), cut("ab", 0)), ("…".to_owned(), String::new()));
        for columns in 0..12 {
            assert!(width(&cut("行a列bのc積", columns)) <= columns);
        }
    }
}
