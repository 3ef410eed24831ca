//! Watch mode: the current exercise is checked again whenever its file changes, and the next one comes when it is solved.
//! On a terminal keys do what the verbs do.

use std::{path::Path, thread};

use super::{course::Exercise, learner::Learner};
use crate::{
    diagnostic::Diagnostic,
    term::keys::Keys,
    term::shell::Shell,
    term::wrap::wrapped,
    watch::{Files, POLL},
};

/// What ends the wait for a change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Heard {
    /// The file says something else.
    Changed,
    /// A hint is wanted.
    Hint,
    /// The next exercise is wanted.
    Next,
    /// That was all.
    Quit,
}

/// Waits until the file of an exercise says something else than this, or a key is pressed.
pub(super) type Wait<'a> = &'a mut dyn FnMut(&Path, &str) -> Result<Heard, Diagnostic>;

/// Looks at the file and at the keys again and again. Without keys it ends with the program.
pub(super) fn poll(keys: Option<&Keys>, path: &Path, text: &str) -> Result<Heard, Diagnostic> {
    let mut files = Files::new(vec![(path.to_owned(), Some(text.to_owned()))]);
    let listening = keys.map(Keys::listen).transpose()?;
    loop {
        if files.changed().is_some() {
            return Ok(Heard::Changed);
        }
        if let Some(it) = &listening {
            match it.pressed() {
                _ if it.is_stopped() => return Ok(Heard::Quit),
                Some(b'h' | b'H') => return Ok(Heard::Hint),
                Some(b'n' | b'N') => return Ok(Heard::Next),
                Some(b'q' | b'Q') => return Ok(Heard::Quit),
                Some(_) | None => {}
            }
        }
        thread::sleep(POLL);
    }
}

/// From the first exercise that is not solved to the last one. `keys` says whether there are any to press.
pub(super) fn watch(
    learner: &mut Learner,
    exercises: &[Exercise],
    keys: bool,
    wait: Wait<'_>,
    shell: &mut Shell<'_>,
) -> Result<(), Diagnostic> {
    let mut from = 0;
    while let Some(at) = learner.next_from(from, exercises, shell)? {
        let current = &exercises[at];
        let done = learner.solved(exercises)?;
        let path = learner.folder.path(current);
        writeln!(shell.out, "\n[{done}/{}] edit {}", exercises.len(), path.display())?;
        from = match work_on(learner, current, keys, wait, shell)? {
            Heard::Quit => return Ok(()),
            Heard::Next => (at + 1) % exercises.len(),
            Heard::Changed | Heard::Hint => at,
        };
    }
    writeln!(shell.out, "\nall {} exercises are solved", exercises.len())?;
    shell.out.flush()?;
    Ok(())
}

/// Until an exercise is solved, which is a change, or left.
fn work_on(
    learner: &mut Learner,
    current: &Exercise,
    keys: bool,
    wait: Wait<'_>,
    shell: &mut Shell<'_>,
) -> Result<Heard, Diagnostic> {
    let path = learner.folder.path(current);
    loop {
        let text = learner.folder.text(current)?;
        if learner.check_and_tell(current, &text, shell)? {
            return Ok(Heard::Changed);
        }
        loop {
            let helps =
                if keys { "h: hint, n: next exercise, q: quit" } else { "`tilewright learn hint` helps" };
            wrapped(&format!("{helps}; waiting for {} to change", path.display()), "  ", "  ", shell.out)?;
            shell.out.flush()?;
            let heard = wait(&path, &text)?;
            writeln!(shell.out)?;
            match heard {
                Heard::Changed => break,
                Heard::Hint => learner.hint(current, shell)?,
                Heard::Next | Heard::Quit => return Ok(heard),
            }
        }
    }
}
