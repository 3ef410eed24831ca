//! Printed lines, each with what it was printed from.

use ir::text::LineSource;

/// A text that grows line by line.
#[derive(Default)]
pub(super) struct Lines {
    /// The text, each line ended by a newline.
    pub(super) text: String,
    /// What each line stands for; none for what belongs to no statement.
    pub(super) line_sources: Vec<Option<LineSource>>,
}

impl Lines {
    /// Adds a line.
    pub(super) fn push(&mut self, line: &str, line_source: Option<LineSource>) {
        self.text.push_str(line);
        self.text.push('\n');
        self.line_sources.push(line_source);
    }

    /// Adds a function and an empty line.
    pub(super) fn function(&mut self, function: Lines) {
        self.text.push_str(&function.text);
        self.line_sources.extend(function.line_sources);
        self.push("", None);
    }

    /// Ends the last line with a semicolon, and adds an empty line.
    pub(super) fn end_declaration(&mut self) {
        self.text.truncate(self.text.trim_end().len());
        self.text.push_str(";\n");
        self.push("", None);
    }
}
