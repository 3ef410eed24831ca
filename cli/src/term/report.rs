//! What commands find: one typed value each, printed as text or serialised as a line of JSON, never both by hand. The JSON Schema
//! of a line is derived from its type, with the comments of its fields as descriptions.

use schemars::JsonSchema;
use serde::Serialize;

use super::shell::Shell;
use crate::diagnostic::Diagnostic;

/// What a command found, or a part of it that is told by itself.
pub(crate) trait Report: Serialize + JsonSchema {
    /// Prints it as text.
    fn print(&self, shell: &mut Shell<'_>) -> Result<(), Diagnostic>;
}
