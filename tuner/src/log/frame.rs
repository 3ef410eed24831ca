//! How an entry becomes a line, and how lines are told from damage.
//!
//! A line is one JSON object whose first key is `k` and whose last is `crc`: CRC-32C, in eight hexadecimal digits, of
//! all bytes before `,"crc":`. Control characters, the newline too, stand in it as `\u000a`, so a line is a line
//! and may be shown on a terminal as it is. What is whole can be told without knowing where lines begin and end.

use std::{borrow::Cow, fmt::Write as _, ops::Range};

use serde::{Deserialize, Serialize};

use super::Entry;

/// What every line begins with.
const HEAD: &[u8] = b"{\"k\":\"";
/// What stands before the checksum.
const CRC: &[u8] = b",\"crc\":\"";
/// What stands after it.
const END: &[u8] = b"\"}";
/// From the comma before the checksum to the end of the line.
const TRAILER: usize = CRC.len() + 8 + END.len();
/// How many ends are tried for each beginning in a damaged line. A whole record has one, or a few more where it
/// quotes one; the limit keeps a hostile file from taking quadratic time.
const ENDS: usize = 8;

/// A whole record: a line, or a part of one, that has a good checksum.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Raw<'a> {
    bytes: &'a [u8],
}

impl<'a> Raw<'a> {
    /// The whole of these bytes as a record, if they are one.
    pub fn of(bytes: &'a [u8]) -> Option<Raw<'a>> {
        let (body, stored) = parts(bytes)?;
        (bytes.starts_with(HEAD) && crc32c::crc32c(body) == stored).then_some(Raw { bytes })
    }

    /// The object as it stands in the file, with its checksum and without a newline.
    pub fn bytes(self) -> &'a [u8] {
        self.bytes
    }

    /// Its kind: `run`, `trial`, or one that this version does not know.
    pub fn kind(self) -> &'a str {
        let word = &self.bytes[HEAD.len()..];
        let end = word.iter().position(|it| *it == b'"').unwrap_or(0);
        str::from_utf8(&word[..end]).unwrap_or_default()
    }

    /// Reads it.
    pub fn entry(self) -> Result<Entry, String> {
        // Without its checksum, which would else be taken for a field of a later version.
        let mut object = self.bytes[..self.bytes.len() - TRAILER].to_vec();
        object.push(b'}');
        serde_json::from_slice(&object).map_err(|err| err.to_string())
    }

    /// Reads a few of its fields.
    pub fn fields<T: Deserialize<'a>>(self) -> Result<T, String> {
        serde_json::from_slice(self.bytes).map_err(|err| err.to_string())
    }
}

/// The line of an entry, its newline included.
pub(super) fn seal(entry: &impl Serialize) -> Result<Vec<u8>, String> {
    let text = serde_json::to_string(entry).map_err(|err| err.to_string())?;
    let mut line = escape_controls(&text).into_owned();
    if !line.as_bytes().starts_with(HEAD) || line.pop() != Some('}') {
        return Err("it is no object whose first key is `k`".to_owned());
    }
    let crc = crc32c::crc32c(line.as_bytes());
    writeln!(line, ",\"crc\":\"{crc:08x}\"}}").expect("writing to a string does not fail");
    Ok(line.into_bytes())
}

/// JSON with every control character as an escape, those that JSON allows in texts too, and those that change the
/// direction of writing. It means the same, and a terminal shows what it says.
pub fn escape_controls(json: &str) -> Cow<'_, str> {
    if !json.contains(is_control) {
        return Cow::Borrowed(json);
    }
    let mut out = String::with_capacity(json.len() + 16);
    for it in json.chars() {
        if is_control(it) {
            write!(out, "\\u{:04x}", u32::from(it)).expect("writing to a string does not fail");
        } else {
            out.push(it);
        }
    }
    Cow::Owned(out)
}

/// Whether a character steers a terminal instead of being seen.
pub fn is_control(it: char) -> bool {
    it.is_control()
        || matches!(it, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The bytes that the checksum is of, and the checksum.
fn parts(bytes: &[u8]) -> Option<(&[u8], u32)> {
    let at = bytes.len().checked_sub(TRAILER)?;
    let (body, trailer) = bytes.split_at(at);
    let digits = trailer.strip_prefix(CRC)?.strip_suffix(END)?;
    // `from_str_radix` would take a sign, and capitals, which are a flipped bit away.
    let digits = digits.iter().all(|it| matches!(it, b'0'..=b'9' | b'a'..=b'f')).then_some(digits)?;
    Some((body, u32::from_str_radix(str::from_utf8(digits).ok()?, 16).ok()?))
}

/// The checksum of a line as it should be and as it stands there.
pub(super) fn checksums(bytes: &[u8]) -> Option<(u32, u32)> {
    parts(bytes).map(|(body, stored)| (crc32c::crc32c(body), stored))
}

/// The whole records in a line that is not one: two that lost the newline between them, or one with rubbish beside.
pub(super) fn salvage(bytes: &[u8]) -> Vec<Range<usize>> {
    let mut found = vec![];
    let mut from = 0;
    while let Some(start) = find(bytes, HEAD, from) {
        let end = ends(bytes, start).find(|end| Raw::of(&bytes[start..*end]).is_some());
        found.extend(end.map(|end| start..end));
        from = end.unwrap_or(start + HEAD.len());
    }
    found
}

/// Where a record that begins at `start` may end.
fn ends(bytes: &[u8], start: usize) -> impl Iterator<Item = usize> {
    let mut from = start;
    let next = move || {
        let at = find(bytes, CRC, from)?;
        from = at + CRC.len();
        Some(at + TRAILER)
    };
    std::iter::from_fn(next).take(ENDS).filter(|end| *end <= bytes.len())
}

fn find(bytes: &[u8], what: &[u8], from: usize) -> Option<usize> {
    bytes.get(from..)?.windows(what.len()).position(|it| it == what).map(|at| from + at)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Raw, escape_controls, salvage, seal};

    #[test]
    fn a_line_ends_with_the_checksum_of_what_is_before_it() {
        let line = seal(&json!({"k": "x", "n": 1})).unwrap();
        // By ten lines of Python, bit by bit.
        assert_eq!(str::from_utf8(&line).unwrap(), "{\"k\":\"x\",\"n\":1,\"crc\":\"7f9bcc2e\"}\n");
        let raw = Raw::of(&line[..line.len() - 1]).unwrap();
        assert_eq!(raw.kind(), "x");
        assert_eq!(Raw::of(&line), None);
        assert!(seal(&json!({"a": 1})).is_err() && seal(&json!([1])).is_err());
    }

    #[test]
    fn control_characters_are_escaped() {
        let text = "\u{1b}[2J\u{7f}\u{9b}31m\u{202e}ß\n";
        let line = seal(&json!({"k": "x", "text": text})).unwrap();
        let line = str::from_utf8(&line).unwrap().trim_end();
        assert!(line.contains(r#""\u001b[2J\u007f\u009b31m\u202eß\n""#), "{line}");
        let value: serde_json::Value = Raw::of(line.as_bytes()).unwrap().fields().unwrap();
        assert_eq!(value["text"], text);
        assert_eq!(escape_controls("plain"), "plain");
    }

    #[test]
    fn whole_records_are_found_beside_rubbish() {
        let line = |n: u32| {
            let mut it = seal(&json!({"k": "x", "n": n, "quote": {"k": "y", "crc": "00000000"}})).unwrap();
            it.pop();
            it
        };
        let (a, b) = (line(1), line(2));
        let text = [b"}\0{\"k\":\"", &*a, b"\x0b", &*b, b"{\"k\":\"x\",\"crc\":\"0000"].concat();
        let found: Vec<_> = salvage(&text).into_iter().map(|it| &text[it]).collect();
        assert_eq!(found, [&*a, &*b]);
        assert!(salvage(&a[1..]).is_empty() && salvage(b"").is_empty());
    }
}
