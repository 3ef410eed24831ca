//! The parts of an expanded pipeline.

/// A part of an [`Emission`](super::Emission).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[expect(missing_docs, reason = "the variants are the words")]
pub enum Section {
    Prologue,
    Steady,
    Epilogue,
}
