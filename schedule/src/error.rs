//! Why a step is refused: data with names and numbers. Only the command line renders it.

use std::fmt;

use ir::Name;

/// A kind of thing that a step names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the variants are the words")]
pub enum Thing {
    Loop,
    Block,
    Buffer,
    Iterator,
    Scope,
    Axis,
    Annotation,
    Knob,
}

impl Thing {
    /// The word in messages.
    pub const fn as_str(self) -> &'static str {
        match self {
            Thing::Loop => "loop",
            Thing::Block => "block",
            Thing::Buffer => "buffer",
            Thing::Iterator => "iterator",
            Thing::Scope => "scope",
            Thing::Axis => "axis",
            Thing::Annotation => "annotation",
            Thing::Knob => "knob",
        }
    }
}

impl fmt::Display for Thing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why a step is refused. A refused step changes nothing.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the message of each variant says what its fields are")]
pub enum ScheduleError {
    #[error(transparent)]
    Block(#[from] crate::BlockError),
    #[error("`{name}` is not a memory")]
    NoSuchScope { name: Name },
    #[error("there is no {thing} `{name}`")]
    NoSuch { thing: Thing, name: Name, known: Vec<Name> },
    #[error("`{name}` is a {found}, and a {wanted} is needed here")]
    WrongThing { name: Name, found: Thing, wanted: Thing },
    #[error("`{name}` is not a name: a letter or `_`, then letters, digits and `_`, at most 64")]
    NotAName { name: Name },
    #[error("the name `{name}` is already taken")]
    NameTaken { name: Name },
    #[error("the name `{name}` is given twice")]
    NamedTwice { name: Name },
    #[error("the knob `{name}` has no value")]
    UnresolvedKnob { name: Name },
    #[error("`{name}` is empty: at least one is needed")]
    Empty { name: Name },
    #[error("the factor of `{name}` is {factor}, and factors are at least 1")]
    FactorNotPositive { name: Name, factor: i64 },
    #[error("`{first}` and `{second}` are both `None`, and only one factor can be inferred")]
    TwoInferred { first: Name, second: Name },
    #[error("{product} iterations do not cover the {extent} of loop `{name}`")]
    FactorsTooSmall { name: Name, extent: String, product: i64 },
    #[error("the factors of loop `{name}` multiply to more than 64 bits hold")]
    FactorsOverflow { name: Name },
    #[error("loop `{name}` is already {kind}")]
    LoopHasKind { name: Name, kind: &'static str },
    #[error("loop `{name}` has the annotation `{key}`")]
    LoopHasAnnotation { name: Name, key: String },
}

impl ScheduleError {
    /// The names in the script and in the program that the message is about; the first is the culprit.
    pub fn names(&self) -> Vec<&Name> {
        match self {
            ScheduleError::Block(it) => it.names(),
            ScheduleError::NoSuch { name, .. }
            | ScheduleError::NoSuchScope { name }
            | ScheduleError::WrongThing { name, .. }
            | ScheduleError::NotAName { name }
            | ScheduleError::NameTaken { name }
            | ScheduleError::NamedTwice { name }
            | ScheduleError::UnresolvedKnob { name }
            | ScheduleError::Empty { name }
            | ScheduleError::FactorNotPositive { name, .. }
            | ScheduleError::FactorsTooSmall { name, .. }
            | ScheduleError::FactorsOverflow { name }
            | ScheduleError::LoopHasKind { name, .. }
            | ScheduleError::LoopHasAnnotation { name, .. } => vec![name],
            ScheduleError::TwoInferred { first, second } => vec![second, first],
        }
    }

    /// What to try instead, if there is one thing to say.
    pub fn help(&self) -> Option<String> {
        match self {
            ScheduleError::Block(it) => it.help(),
            ScheduleError::NoSuchScope { .. } => Some("there is `global`, `shared` and `local`".into()),
            ScheduleError::NoSuch { name, known, thing } => Some(candidates(name, known, *thing)),
            ScheduleError::FactorsTooSmall { .. } => {
                Some("leave one factor `None` to have it inferred".into())
            }
            ScheduleError::TwoInferred { .. } => Some("give all factors but one".into()),
            ScheduleError::FactorNotPositive { .. } => {
                Some("`None` asks for the factor to be inferred".into())
            }
            ScheduleError::LoopHasKind { .. } | ScheduleError::LoopHasAnnotation { .. } => {
                Some("split, fuse and reorder loops before binding or annotating them".into())
            }
            ScheduleError::NameTaken { .. }
            | ScheduleError::WrongThing { .. }
            | ScheduleError::NotAName { .. }
            | ScheduleError::NamedTwice { .. }
            | ScheduleError::UnresolvedKnob { .. }
            | ScheduleError::Empty { .. }
            | ScheduleError::FactorsOverflow { .. } => None,
        }
    }
}

/// "did you mean" with the nearest name, or all there are when none is near.
fn candidates(name: &Name, known: &[Name], thing: Thing) -> String {
    if let Some(near) = crate::nearest(name.as_str(), known.iter().map(Name::as_str)) {
        return format!("did you mean `{near}`?");
    }
    match known {
        [] => format!("there is no {thing} at all"),
        known => {
            format!("there is {}", known.iter().map(|it| format!("`{it}`")).collect::<Vec<_>>().join(", "))
        }
    }
}
