//! Libraries that were read already: a search expands thousands of scripts that use the same few.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::definition::{Procedure, Uses};

/// What the text of a library says, whoever uses it.
pub(super) struct Library {
    pub(super) text: Arc<str>,
    pub(super) about: String,
    pub(super) uses: Uses,
    pub(super) procedures: Vec<Procedure>,
}

/// How many are kept, the last ones: an editor makes a new text with each key.
const KEPT: usize = 32;

/// Those that were read last, oldest first.
static READ: Mutex<Vec<Arc<Library>>> = Mutex::new(vec![]);

/// What a text says, if that is known.
pub(super) fn find(text: &str) -> Option<Arc<Library>> {
    read().iter().find(|it| &*it.text == text).cloned()
}

/// Keeps what a text says for those that use it next.
pub(super) fn keep(library: Library) -> Arc<Library> {
    let library = Arc::new(library);
    let mut all = read();
    if all.len() == KEPT {
        all.remove(0);
    }
    all.push(library.clone());
    library
}

/// A reader that panicked left nothing half-done.
fn read() -> MutexGuard<'static, Vec<Arc<Library>>> {
    READ.lock().unwrap_or_else(PoisonError::into_inner)
}
