//! The layout of texts in RON: scripts, workloads and libraries.
//!
//! Like `gofmt`, it keeps the lines that an author chose and puts in order what is in them:
//!
//! * What stands in brackets is on one line, or has its first and its last line for the brackets alone. The author says which by
//!   a line break in it; a value that is broken may share its first and last line with the call that it ends,
//!   `for_each(…, steps: [`.
//! * In a list that is broken each step, or any other call, has a line of its own.
//! * A list, a map or a call of at least two steps that does not fit into [`WIDTH`] columns is broken. Other long lines stay: a
//!   call is read as one.
//! * Indentation is four spaces for each line with open brackets. One space follows `,` and `:`; brackets have none inside.
//! * A comma follows the last element of what is broken, and of nothing else.
//! * Comments stay where they are, those at the end of a line with as many spaces before them as they had. There is at most one
//!   empty line in a row, and none next to a bracket. Lines end as the first one does.

mod group;
mod layout;

use serde::de::IgnoredAny;

use crate::{ron_text::parse, script::check_size, script_error::ScriptError};

/// How many columns a line of several steps may have.
pub const WIDTH: usize = 120;

/// How often a text is laid out until nothing changes. Each time a bracket more may be broken, and they nest no deeper than this.
const ROUNDS: usize = crate::script::MAX_DEPTH + 2;

/// Lays out a text. It has to be RON; what it says is not looked at.
///
/// # Errors
///
/// Texts that are no RON.
pub fn format(text: &str) -> Result<String, ScriptError> {
    check_size(text)?;
    parse::<IgnoredAny>(text)?;
    let mut text = layout::lay_out(text);
    for _ in 0..ROUNDS {
        let next = layout::lay_out(&text);
        if next == text {
            break;
        }
        text = next;
    }
    Ok(text)
}
