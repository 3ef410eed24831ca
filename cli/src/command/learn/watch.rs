//! Watch mode: the current exercise is checked again whenever its file changes, and the next one comes when it is solved.

use std::{fs, path::Path, thread, time::Duration};

use super::{course::Exercise, learner::Learner};
use crate::{
    diagnostic::Diagnostic,
    term::{shell::Shell, wrap::wrapped},
};

/// How often a file is looked at.
const EVERY: Duration = Duration::from_millis(300);

/// Waits until the file of an exercise says something else than this. Whether there was a change, rather than an end.
pub(super) type Wait<'a> = &'a mut dyn FnMut(&Path, &str) -> bool;

/// Looks at the file again and again; ends with the program.
pub(super) fn poll(path: &Path, text: &str) -> bool {
    loop {
        thread::sleep(EVERY);
        // An editor may take a file away for a moment while it writes.
        if fs::read_to_string(path).is_ok_and(|it| it != text) {
            return true;
        }
    }
}

/// From the first exercise that is not solved to the last one.
pub(super) fn watch(
    learner: &mut Learner,
    exercises: &[Exercise],
    wait: Wait<'_>,
    shell: &mut Shell<'_>,
) -> Result<(), Diagnostic> {
    while let Some(current) = learner.next(exercises, shell)? {
        let path = learner.place.path(current);
        let done = learner.solved(exercises)?;
        writeln!(shell.out, "\n[{done}/{}] edit {}", exercises.len(), path.display())?;
        loop {
            let text = learner.place.text(current)?;
            if learner.check_and_tell(current, &text, shell)? {
                break;
            }
            let words = format!("`tilewright learn hint` helps; waiting for {} to change", path.display());
            wrapped(&words, "  ", "  ", shell.out)?;
            shell.out.flush()?;
            if !wait(&path, &text) {
                return Ok(());
            }
            writeln!(shell.out)?;
        }
    }
    writeln!(shell.out, "\nall {} exercises are solved", exercises.len())?;
    shell.out.flush()?;
    Ok(())
}
