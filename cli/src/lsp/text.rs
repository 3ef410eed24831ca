//! Texts as editors see them: lines, and places in units that the client has chosen.

use std::{ops::Range, sync::Arc};

use gen_lsp_types::{Position, TextDocumentContentChangeEvent};

/// What columns count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Encoding {
    /// Bytes.
    Utf8,
    /// Units of UTF-16, as the protocol has it unless both sides agree on something else.
    Utf16,
}

/// A text and where its lines begin.
#[derive(Clone, Debug)]
pub(super) struct Text {
    pub(super) whole: Arc<str>,
    lines: Vec<usize>,
    encoding: Encoding,
}

impl Text {
    pub(super) fn new(text: &str, encoding: Encoding) -> Text {
        let bytes = text.as_bytes();
        let ends =
            |at: &usize| bytes[*at] == b'\n' || (bytes[*at] == b'\r' && bytes.get(at + 1) != Some(&b'\n'));
        let lines = [0].into_iter().chain((0..bytes.len()).filter(ends).map(|it| it + 1)).collect();
        Text { whole: text.into(), lines, encoding }
    }

    /// The text after a change.
    pub(super) fn changed(&self, change: &TextDocumentContentChangeEvent) -> Text {
        match change {
            TextDocumentContentChangeEvent::TextDocumentContentChangeWholeDocument(it) => {
                Text::new(&it.text, self.encoding)
            }
            TextDocumentContentChangeEvent::TextDocumentContentChangePartial(it) => {
                let (from, to) = (self.offset(it.range.start), self.offset(it.range.end));
                let mut text = self.whole.to_string();
                text.replace_range(from..to.max(from), &it.text);
                Text::new(&text, self.encoding)
            }
        }
    }

    /// A line without its end.
    fn line(&self, line: usize) -> &str {
        let Some(start) = self.lines.get(line) else { return "" };
        let end = self.lines.get(line + 1).copied().unwrap_or(self.whole.len());
        self.whole[*start..end].trim_end_matches(['\r', '\n'])
    }

    /// The byte at a place. A place behind a line is its end, one behind the text the end of that: clients may be a change ahead.
    pub(super) fn offset(&self, at: Position) -> usize {
        let number = |it: u32| usize::try_from(it).expect("numbers have 32 bits here at least");
        let line = number(at.line);
        let Some(start) = self.lines.get(line) else { return self.whole.len() };
        let mut left = number(at.character);
        let text = self.line(line);
        for (byte, letter) in text.char_indices() {
            let width = self.width(letter);
            if left < width {
                return start + byte;
            }
            left -= width;
        }
        start + text.len()
    }

    /// The place of a byte.
    pub(super) fn position(&self, offset: usize) -> Position {
        let offset = self.whole.floor_char_boundary(offset.min(self.whole.len()));
        let line = self.lines.partition_point(|it| *it <= offset) - 1;
        let before = &self.whole[self.lines[line]..offset];
        let column: usize = before.chars().map(|it| self.width(it)).sum();
        let number = |it: usize| u32::try_from(it).expect("texts are shorter than 2^32 bytes");
        Position::new(number(line), number(column))
    }

    pub(super) fn range(&self, span: &Range<usize>) -> gen_lsp_types::Range {
        gen_lsp_types::Range::new(self.position(span.start), self.position(span.end.max(span.start)))
    }

    fn width(&self, letter: char) -> usize {
        match self.encoding {
            Encoding::Utf8 => letter.len_utf8(),
            Encoding::Utf16 => letter.len_utf16(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_bytes_and_back_in_both_units() {
        let text = "a\r\nß😀x\n\rend";
        for (encoding, column) in [(Encoding::Utf16, 3), (Encoding::Utf8, 6)] {
            let text = Text::new(text, encoding);
            assert_eq!(text.position(9), Position::new(1, column));
            for (at, _) in text.whole.char_indices().filter(|it| it.1 != '\n' && it.1 != '\r') {
                assert_eq!(text.offset(text.position(at)), at);
            }
            assert_eq!(text.offset(Position::new(0, 99)), 1);
            assert_eq!(text.offset(Position::new(99, 0)), text.whole.len());
            assert_eq!(text.position(99), Position::new(3, 3));
        }
        // The middle of a letter of two units is its beginning.
        assert_eq!(Text::new(text, Encoding::Utf16).offset(Position::new(1, 2)), 5);
    }
}
