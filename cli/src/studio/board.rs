//! What the page shows, part by part, as the server sends it.
//!
//! Each part has the number of its last change, so that a page is sent what is newer than what it has.

use std::sync::{Mutex, MutexGuard, PoisonError};

use indexmap::IndexMap;
use serde_json::Value;
use tokio::sync::watch::{Receiver, Sender};

use super::told::StepTold;

/// What the page shows. The session writes it and the server reads it.
#[derive(Debug)]
pub(super) struct Board {
    shown: Mutex<Shown>,
    version: Sender<u64>,
}

#[derive(Debug, Default)]
struct Shown {
    version: u64,
    /// By the name of a part.
    parts: IndexMap<String, Part>,
    steps: Steps,
}

/// The steps that the page can ask for.
#[derive(Clone, Debug, Default)]
pub(super) struct Steps {
    /// The program before the first of them.
    pub(super) start: String,
    pub(super) steps: Vec<StepTold>,
}

/// A part of the page.
#[derive(Clone, Debug)]
pub(super) struct Part {
    /// When it was set last.
    pub(super) version: u64,
    /// What sort of part it is: the name of its event.
    pub(super) sort: &'static str,
    /// What it says, as JSON.
    pub(super) data: String,
}

impl Board {
    /// With nothing on it.
    pub(super) fn new() -> Board {
        Board { shown: Mutex::default(), version: Sender::new(0) }
    }

    /// Sets a part. One that says what it said is none that changed.
    pub(super) fn put(&self, sort: &'static str, id: &str, data: &Value) {
        let data = data.to_string();
        let mut shown = self.lock();
        let key = format!("{sort}:{id}");
        if shown.parts.get(&key).is_some_and(|it| it.data == data) {
            return;
        }
        shown.version += 1;
        let version = shown.version;
        shown.parts.insert(key, Part { version, sort, data });
        drop(shown);
        self.version.send_replace(version);
    }

    /// Sets the steps that the page can ask for.
    pub(super) fn set_steps(&self, steps: Steps) {
        self.lock().steps = steps;
    }

    /// What was set after some version, in that order.
    pub(super) fn since(&self, version: u64) -> Vec<Part> {
        let mut parts: Vec<_> =
            self.lock().parts.values().filter(|it| it.version > version).cloned().collect();
        parts.sort_by_key(|it| it.version);
        parts
    }

    /// Tells when something is set.
    pub(super) fn subscribe(&self) -> Receiver<u64> {
        self.version.subscribe()
    }

    /// What to show of a step; the program before the first has the number 0.
    pub(super) fn step<T>(&self, show: impl FnOnce(&Steps) -> T) -> T {
        show(&self.lock().steps)
    }

    fn lock(&self) -> MutexGuard<'_, Shown> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
