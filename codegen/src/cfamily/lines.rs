//! Printed lines, each with what it was printed from.

use ir::text::Origin;

/// A text that grows line by line.
#[derive(Default)]
pub(super) struct Lines {
    /// The text, each line ended by a newline.
    pub(super) text: String,
    /// What each line stands for; none for what belongs to no statement.
    pub(super) origins: Vec<Option<Origin>>,
}

impl Lines {
    /// Adds a line.
    pub(super) fn push(&mut self, line: &str, origin: Option<Origin>) {
        self.text.push_str(line);
        self.text.push('\n');
        self.origins.push(origin);
    }

    /// Adds a function and an empty line.
    pub(super) fn function(&mut self, function: Lines) {
        self.text.push_str(&function.text);
        self.origins.extend(function.origins);
        self.push("", None);
    }

    /// Ends the last line with a semicolon, and adds an empty line.
    pub(super) fn end_declaration(&mut self) {
        self.text.truncate(self.text.trim_end().len());
        self.text.push_str(";\n");
        self.push("", None);
    }
}
