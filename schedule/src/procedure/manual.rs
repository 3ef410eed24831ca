//! Manuals of procedures and libraries, from what their definitions say.

use super::{
    argument::takes,
    definition::{Definitions, Procedure},
};

impl Procedure {
    /// What it does, in a sentence.
    pub fn summary(&self) -> &str {
        self.about.find(". ").map_or(&*self.about, |it| &self.about[..=it])
    }
}

impl Definitions {
    /// The manual of a procedure, as Markdown: what it does, what it takes, what it stands for, and an example.
    pub fn manual(&self, it: &Procedure) -> String {
        let takes = takes(it).replacen("it", "It", 1);
        let steps = self.steps_of(it);
        let example = it.example.as_ref().map(|it| format!("\nFor example:\n\n```ron\n{it}\n```\n"));
        let example = example.unwrap_or_default();
        format!("{}\n\n{takes}.\n\nIt stands for\n\n```ron\n{steps}\n```\n{example}", it.about)
    }

    /// What a library says about itself and which others it uses, as Markdown.
    pub fn overview(&self) -> String {
        let others: Vec<_> = self.libraries().map(|it| format!("`{it}`")).collect();
        let uses = if others.is_empty() { String::new() } else { format!(" It uses {}.", others.join(", ")) };
        format!("{}{uses}\n\nA script has it by `use: [\"{}\"]`.\n", self.about, self.name())
    }
}
