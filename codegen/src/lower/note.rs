//! Comments in a kernel that tell where the statements of a pipeline begin and its steps end. Only timelines want them.

use ir::{
    Name,
    pipeline::{Emission, Marks, Place, Plan, Section},
};

use super::marks;

/// What is told.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Note {
    /// The loop.
    pub(crate) var: Name,
    /// The part of its emission.
    pub(crate) section: Section,
    /// The step of that part.
    pub(crate) step: usize,
    /// The component that begins, by its place in the plan; none where the step ends.
    pub(crate) component: Option<usize>,
}

const HEAD: &str = "@pipeline";
const SECTIONS: [(&str, Section); 3] =
    [("prologue", Section::Prologue), ("steady", Section::Steady), ("epilogue", Section::Epilogue)];

impl Note {
    fn text(&self) -> String {
        let Note { var, section, step, component } = self;
        let section = SECTIONS.iter().find(|it| it.1 == *section).map_or("", |it| it.0);
        let component = component.map_or_else(|| "end".to_owned(), |it| it.to_string());
        format!("{HEAD} {var} {section} {step} {component}")
    }

    /// The note that a comment is, if it is one.
    pub(crate) fn parse(text: &str) -> Option<Note> {
        let mut words = text.strip_prefix(HEAD)?.split_ascii_whitespace();
        let var = Name::new(words.next()?);
        let section = words.next()?;
        let section = SECTIONS.iter().find(|it| it.0 == section)?.1;
        let step = words.next()?.parse().ok()?;
        Some(Note { var, section, step, component: words.next()?.parse().ok() })
    }
}

/// Adds a note before each statement and after each step.
pub(crate) fn add(marks: &mut Marks, plan: &Plan, emission: &Emission) {
    let steady = emission.steady.as_ref().map_or(&[][..], |it| &it.steps);
    let sections = [&emission.prologue, steady, &emission.epilogue];
    for ((_, section), steps) in SECTIONS.iter().zip(sections) {
        for (number, step) in steps.iter().enumerate() {
            for at in 0..=step.len() {
                let component = step.get(at).map(|it| it.component);
                let note = Note { var: plan.var.clone(), section: *section, step: number, component };
                let place = Place { section: *section, step: number, at };
                marks.entry(place).or_default().push(marks::note(note.text()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use ir::{Name, pipeline::Section};

    use super::Note;

    #[test]
    fn notes_are_read_back() {
        for component in [Some(3), None] {
            let note = Note { var: Name::new("ko"), section: Section::Steady, step: 2, component };
            assert_eq!(Note::parse(&note.text()), Some(note));
        }
        assert_eq!(Note::parse("A_shared: written before, read after"), None);
    }
}
