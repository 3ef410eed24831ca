//! Single keys from a terminal.
//!
//! They are heard only while somebody waits for them. At all other times, and after every end of the process, the terminal is as
//! it was found: a signal that comes while keys are heard is answered after they are not heard any more.

use std::{
    io::{self, IsTerminal, Read},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};

/// A terminal whose keys can be heard.
pub(crate) struct Keys {
    /// Whether the terminal is as it was found.
    is_plain: Arc<AtomicBool>,
    /// Whether a signal asks for the end.
    stop: Arc<AtomicBool>,
}

/// Keys are heard until this is dropped.
pub(crate) struct Listening<'a> {
    keys: &'a Keys,
    input: io::Stdin,
    before: Termios,
}

impl Keys {
    /// The keys of standard input, if that is a terminal. From now on signals that end the process do so with exit code 0.
    pub(crate) fn new() -> io::Result<Option<Keys>> {
        if !io::stdin().is_terminal() {
            return Ok(None);
        }
        let keys = Keys { is_plain: Arc::new(AtomicBool::new(true)), stop: Arc::new(AtomicBool::new(false)) };
        for signal in [SIGINT, SIGTERM, SIGHUP, SIGQUIT] {
            signal_hook::flag::register_conditional_shutdown(signal, 0, Arc::clone(&keys.is_plain))?;
            signal_hook::flag::register(signal, Arc::clone(&keys.stop))?;
        }
        Ok(Some(keys))
    }

    /// Begins to hear keys, without a line to end them and without showing them.
    pub(crate) fn listen(&self) -> io::Result<Listening<'_>> {
        let before = tcgetattr(io::stdin())?;
        let mut modes = before.clone();
        modes.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
        // Reading does not wait.
        modes.special_codes[SpecialCodeIndex::VMIN] = 0;
        modes.special_codes[SpecialCodeIndex::VTIME] = 0;
        self.is_plain.store(false, Ordering::SeqCst);
        let listening = Listening { keys: self, input: io::stdin(), before };
        tcsetattr(io::stdin(), OptionalActions::Now, &modes)?;
        Ok(listening)
    }
}

impl Listening<'_> {
    /// Whether a signal asks for the end.
    pub(crate) fn is_stopped(&self) -> bool {
        self.keys.stop.load(Ordering::SeqCst)
    }

    /// The key that was pressed, if one was since the last time.
    pub(crate) fn pressed(&self) -> Option<u8> {
        let mut key = [0];
        matches!((&self.input).read(&mut key), Ok(1)).then_some(key[0])
    }
}

impl Drop for Listening<'_> {
    fn drop(&mut self) {
        // A terminal that is gone needs nothing.
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.before);
        self.keys.is_plain.store(true, Ordering::SeqCst);
    }
}
