//! The last words of a worker.

use std::{
    collections::VecDeque,
    io::Read,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// The end of what a process wrote to its standard error, shared with the thread that reads it.
#[derive(Clone)]
pub(super) struct Ring {
    inner: Arc<Mutex<Inner>>,
    cap: usize,
}

struct Inner {
    bytes: VecDeque<u8>,
    done: bool,
}

impl Ring {
    pub(super) fn new(cap: usize) -> Ring {
        Ring { inner: Arc::new(Mutex::new(Inner { bytes: VecDeque::new(), done: false })), cap }
    }

    /// Reads to the end, so that the writer never waits, and keeps the last bytes.
    pub(super) fn fill(&self, mut from: impl Read) {
        let mut part = [0; 4096];
        while let Ok(count) = from.read(&mut part) {
            if count == 0 {
                break;
            }
            let mut inner = self.lock();
            inner.bytes.extend(&part[..count]);
            let over = inner.bytes.len().saturating_sub(self.cap);
            inner.bytes.drain(..over);
        }
        self.lock().done = true;
    }

    /// Whether the process can say no more.
    pub(super) fn is_done(&self) -> bool {
        self.lock().done
    }

    /// At most so many of the last bytes as text, control characters escaped.
    pub(super) fn tail(&self, most: usize) -> String {
        let inner = self.lock();
        let over = inner.bytes.len().saturating_sub(most);
        let bytes: Vec<u8> = inner.bytes.iter().skip(over).copied().collect();
        printable(&String::from_utf8_lossy(&bytes)).trim().to_owned()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Text that does nothing to a terminal: control characters but the end of a line are escaped.
pub(super) fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for char in text.chars() {
        if char.is_control() && char != '\n' {
            out.extend(char.escape_default());
        } else {
            out.push(char);
        }
    }
    out
}

/// The beginning of a line, for a message.
pub(super) fn excerpt(line: &[u8]) -> String {
    const MAX_EXCERPT_BYTES: usize = 120;
    let part = &line[..line.len().min(MAX_EXCERPT_BYTES)];
    let dots = if line.len() > MAX_EXCERPT_BYTES { "…" } else { "" };
    format!("{}{dots}", String::from_utf8_lossy(part).escape_debug())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_end_is_kept() {
        let ring = Ring::new(10);
        ring.fill(&[b'a'; 9000][..]);
        ring.fill(&b"the\x1b[31m end"[..]);
        assert!(ring.is_done());
        assert_eq!(ring.tail(100), "e\\u{1b}[31m end");
        assert_eq!(ring.tail(3), "end");
    }

    #[test]
    fn excerpts_are_short_and_harmless() {
        assert_eq!(excerpt(b"a\x07\xff"), "a\\u{7}\u{fffd}");
        assert_eq!(excerpt(&[b'x'; 500]).chars().count(), 121);
    }
}
