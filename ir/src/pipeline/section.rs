//! The parts of an expanded pipeline.

/// A part of an [`Emission`](super::Emission).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[expect(missing_docs, reason = "the variants are the words")]
pub enum Section {
    Prologue,
    Steady,
    Epilogue,
}

impl Section {
    const ALL: [Section; 3] = [Section::Prologue, Section::Steady, Section::Epilogue];

    /// The word in texts.
    pub const fn as_str(self) -> &'static str {
        match self {
            Section::Prologue => "prologue",
            Section::Steady => "steady",
            Section::Epilogue => "epilogue",
        }
    }

    /// The part of a word.
    pub fn parse(word: &str) -> Option<Section> {
        Section::ALL.into_iter().find(|it| it.as_str() == word)
    }
}
