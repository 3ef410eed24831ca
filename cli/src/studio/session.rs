//! The process that serves: it looks at the files, starts work on each save, and keeps what is known.

use std::{
    io,
    net::TcpListener,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, RecvTimeoutError, channel},
    },
    time::Instant,
};

use signal_hook::consts::{SIGINT, SIGTERM};

use super::{
    Subject,
    board::Board,
    host::Address,
    known::Known,
    server,
    told::{Panel, Told},
    work::Part,
    workbench::Workbench,
};
use crate::{
    diagnostic::Diagnostic,
    plan::read,
    watch::{Files, POLL},
};

/// What happens.
#[derive(Debug)]
pub(super) enum News {
    /// A process that works tells something.
    Told(u64, Told),
    /// It has closed its streams, after these words on standard error.
    Ended(u64, String),
    /// Somebody asks for the virtual GPU.
    Asked,
}

/// How many looks in a row a file is not there before that is told: an editor may take it away for a moment.
const PATIENCE: usize = 5;

/// Serves until it is interrupted. `started` is called with the address once the page can be asked for.
pub(crate) fn serve(
    subject: &Subject,
    port: u16,
    started: &mut dyn FnMut(Address) -> Result<(), Diagnostic>,
) -> Result<(), Diagnostic> {
    // What is not there is a mistake, and nothing to wait for.
    read(&subject.script)?;
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    let listener = TcpListener::bind(("127.0.0.1", port)).map_err(|err| super::port_taken(port, &err))?;
    let address = Address { port: listener.local_addr()?.port() };
    let (send, news) = channel();
    let board = Arc::new(Board::new());
    let known = Known::new(Arc::clone(&board), &subject.script);
    let bench = Workbench::new(send.clone())?;
    server::start(listener, address, board, send)?;
    started(address)?;
    let files = Files::named(&[&subject.script]);
    Session { subject, known, bench, files, absent: 0, is_missing: false }.run(&news, &stop)?;
    Ok(())
}

struct Session<'a> {
    subject: &'a Subject,
    known: Known,
    bench: Workbench,
    files: Files,
    /// For how many looks in a row the script was not there.
    absent: usize,
    is_missing: bool,
}

impl Session<'_> {
    fn run(&mut self, news: &Receiver<News>, stop: &AtomicBool) -> io::Result<()> {
        self.begin()?;
        let mut looked = Instant::now();
        while !stop.load(Ordering::Relaxed) {
            match news.recv_timeout(POLL.saturating_sub(looked.elapsed())) {
                Ok(it) => self.hear(it)?,
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
            if looked.elapsed() >= POLL {
                looked = Instant::now();
                self.look()?;
            }
        }
        self.bench.clear();
        Ok(())
    }

    /// Begins to work on what the files say now. What was under way is about something older.
    fn begin(&mut self) -> io::Result<()> {
        self.bench.clear();
        // Looked at before the work, so that what changes meanwhile is not missed.
        self.files = Files::named(&[&self.subject.script]);
        self.known.begin();
        self.bench.start(Part::All)
    }

    fn look(&mut self) -> io::Result<()> {
        let is_there = self.subject.script.exists();
        self.absent = if is_there { 0 } else { self.absent + 1 };
        if self.absent == PATIENCE {
            self.is_missing = true;
            self.bench.clear();
            self.known.missing(&self.subject.script);
        }
        if is_there && self.is_missing || self.files.changed().is_some() {
            self.is_missing = false;
            self.begin()?;
        }
        Ok(())
    }

    fn hear(&mut self, news: News) -> io::Result<()> {
        match news {
            News::Told(job, told) if self.bench.is_current(job) => self.known.hear(told),
            News::Told(..) => {}
            News::Ended(job, errors) => match self.bench.take(job) {
                Some(Ok(status)) if !status.success() => self.known.fail(errors.trim_end().to_owned()),
                Some(Ok(_)) if self.bench.is_idle() => self.known.end(),
                Some(Ok(_)) | None => {}
                Some(Err(err)) => self.known.fail(err.to_string()),
            },
            News::Asked => {
                if self.known.asked(Panel::VirtualGpu) {
                    self.bench.start(Part::VirtualGpu)?;
                }
            }
        }
        Ok(())
    }
}
