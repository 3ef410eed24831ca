//! The fuzzer: it runs many cases, each on a thread that may panic or take too long.

use std::{
    fs,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{self, Receiver, RecvTimeoutError, Sender},
    },
    thread,
    time::{Duration, Instant},
};

use crate::{
    case::{self, Came},
    mutate::{mutate, steps},
    rng::Rng,
};

/// How long a case may take.
pub(crate) const CASE_TIMEOUT: Duration = Duration::from_secs(10);

/// The stack of a thread that runs cases: that of a main thread.
const STACK: usize = 8 << 20;

/// The verdict on a case.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum CaseResult {
    /// It was accepted or refused.
    Fine(Came),
    /// It panicked, with these words.
    Panic(String),
    /// It took too long.
    Hang,
}

/// A case that panicked or hung.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    /// Its verdict.
    pub(crate) verdict: CaseResult,
    /// The script, with the steps left out that it does not need.
    pub(crate) text: String,
}

/// The result of a session.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// How many cases came how far, in the order of [`case::ALL`].
    pub(crate) came: [u64; 7],
    /// The cases that panicked or hung; the same panic once.
    pub(crate) failures: Vec<Failure>,
    /// How long the slowest case took.
    pub(crate) slowest: Duration,
    /// That case.
    pub(crate) slow: String,
}

/// A thread that runs cases, and is abandoned when one hangs.
struct CaseThread {
    scripts: Sender<String>,
    answers: Receiver<CaseResult>,
}

impl CaseThread {
    fn new(words: &Arc<Mutex<String>>) -> CaseThread {
        let (scripts, texts) = mpsc::channel::<String>();
        let (sender, answers) = mpsc::channel();
        let words = Arc::clone(words);
        let work = move || {
            for text in texts {
                let came = catch_unwind(AssertUnwindSafe(|| {
                    case::read_log(text.as_bytes());
                    case::run(&text)
                }));
                let said = || words.lock().unwrap_or_else(PoisonError::into_inner).clone();
                let verdict = came.map_or_else(|_| CaseResult::Panic(said()), CaseResult::Fine);
                if sender.send(verdict).is_err() {
                    break;
                }
            }
        };
        thread::Builder::new().stack_size(STACK).spawn(work).expect("the system has threads");
        CaseThread { scripts, answers }
    }
}

/// Does cases one after the other.
pub(crate) struct Fuzzer {
    thread: CaseThread,
    words: Arc<Mutex<String>>,
    /// Where the case is written before it runs: an overflow of the stack ends the process.
    last: Option<PathBuf>,
}

impl Drop for Fuzzer {
    fn drop(&mut self) {
        // A panic elsewhere shall be heard again. It cannot be taken away while this thread panics.
        if !thread::panicking() {
            drop(std::panic::take_hook());
        }
    }
}

impl Fuzzer {
    /// A fuzzer. From now on panics of this process say nothing of their own.
    pub(crate) fn new(last: Option<PathBuf>) -> Fuzzer {
        let words = Arc::new(Mutex::new(String::new()));
        let heard = Arc::clone(&words);
        std::panic::set_hook(Box::new(move |it| {
            *heard.lock().unwrap_or_else(PoisonError::into_inner) = it.to_string();
        }));
        Fuzzer { thread: CaseThread::new(&words), words, last }
    }

    /// What a script comes to.
    pub(crate) fn run(&mut self, text: &str) -> CaseResult {
        if let Some(path) = &self.last {
            let _ = fs::write(path, text);
        }
        let sent = self.thread.scripts.send(text.to_owned());
        let verdict = self.thread.answers.recv_timeout(CASE_TIMEOUT);
        match (sent, verdict) {
            (Ok(()), Ok(it)) => it,
            (_, Err(RecvTimeoutError::Timeout)) => {
                self.thread = CaseThread::new(&self.words);
                CaseResult::Hang
            }
            (Err(_), _) | (_, Err(RecvTimeoutError::Disconnected)) => {
                self.thread = CaseThread::new(&self.words);
                CaseResult::Panic("the thread ended".to_owned())
            }
        }
    }

    /// Mutates scripts until `going` says no.
    pub(crate) fn session(
        &mut self,
        corpus: &[String],
        seed: u64,
        going: &mut dyn FnMut(u64) -> bool,
    ) -> Tally {
        let mut rng = Rng::new(seed);
        let mut tally = Tally::default();
        let mut n = 0;
        while going(n) {
            n += 1;
            let text = mutate(&corpus[rng.below(corpus.len())], corpus, &mut rng);
            let begin = Instant::now();
            let verdict = self.run(&text);
            let took = begin.elapsed();
            if took > tally.slowest {
                (tally.slowest, tally.slow) = (took, text.clone());
            }
            match verdict {
                CaseResult::Fine(came) => tally.came[came as usize] += 1,
                verdict
                    if tally
                        .failures
                        .iter()
                        .any(|it| it.verdict == verdict && verdict != CaseResult::Hang) => {}
                verdict => {
                    let text = self.shrunk(text, &verdict);
                    tally.failures.push(Failure { verdict, text });
                }
            }
        }
        tally
    }

    /// The script without the steps that do not matter.
    fn shrunk(&mut self, mut text: String, verdict: &CaseResult) -> String {
        let mut at = 0;
        if *verdict == CaseResult::Hang {
            return text;
        }
        while let Some(step) = steps(&text).get(at).cloned() {
            let comma = usize::from(text[step.end..].starts_with(','));
            let less = format!("{}{}", &text[..step.start], &text[step.end + comma..]);
            if self.run(&less) == *verdict { text = less } else { at += 1 }
        }
        text
    }
}

/// The scripts that ship, and those of a folder.
pub(crate) fn corpus(folder: &Path) -> Vec<String> {
    let rungs = workloads::ladders().iter().flat_map(|it| it.rungs).map(|it| it.text.to_owned());
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder).into_iter().flatten().flatten().map(|it| it.path()).collect();
    paths.retain(|it| it.extension().is_some_and(|it| it == "ron"));
    paths.sort();
    rungs.chain(paths.iter().filter_map(|it| fs::read_to_string(it).ok())).collect()
}
