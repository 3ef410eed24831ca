//! Where in a step a refusal is to be shown.

/// The part of a step that is to blame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Blame {
    /// The first of the error's names that the step mentions.
    Name,
    /// The same, where it stands for the second time.
    Again,
    /// The value of a field.
    Field(&'static str),
}
