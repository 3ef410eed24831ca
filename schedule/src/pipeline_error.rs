//! Why a pipeline annotation is refused.

use ir::{Name, deps::DepKind};

/// Why a pipeline annotation is refused.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the message of each variant says what its fields are")]
pub enum PipelineError {
    #[error("the body of loop `{name}` is one statement: there is nothing to overlap")]
    OneComponent { name: Name },
    #[error("loop `{name}` has {components} components, and {given} numbers are given")]
    PipelineArity { name: Name, components: usize, given: usize },
    #[error("`{key}` of loop `{name}` leaves out block `{block}`")]
    PipelineMissing { name: Name, key: &'static str, block: Name },
    #[error("block `{block}` is not in loop `{name}`")]
    NotInLoop { name: Name, block: Name },
    #[error(
        "`{first}` and `{second}` are in one statement of loop `{name}`, and are given different numbers"
    )]
    OneStatement { name: Name, first: Name, second: Name },
    #[error("block `{block}` is given stage {stage}, and stages start at 0")]
    NegativeStage { block: Name, stage: i64 },
    #[error("`{first}` and `{second}` both have order {order}")]
    SameOrder { first: Name, second: Name, order: i64 },
    #[error("in the pipeline of loop `{name}`, `{dst}` would {} `{buffer}` before `{src}` {} it{}",
        later(*kind), earlier(*kind), when(*distance))]
    Hazard { name: Name, kind: DepKind, src: Name, dst: Name, buffer: Name, distance: i64 },
    #[error("block `{block}` does not write one temporary and nothing else")]
    NotOneTemp { block: Name },
    #[error("a buffer has 2 to {limit} slots, and block `{block}` is given {slots}")]
    Slots { block: Name, slots: i64, limit: i64 },
    #[error("no statement of loop `{name}` has stage {stage}")]
    NoSuchStage { name: Name, stage: i64, stages: Vec<i64> },
    #[error("stage {stage} of loop `{name}` is given twice")]
    StageTwice { name: Name, stage: i64 },
}

impl PipelineError {
    /// The names in the script and in the program that the message is about; the first is the culprit.
    pub fn names(&self) -> Vec<&Name> {
        use PipelineError as E;
        match self {
            E::OneComponent { name }
            | E::PipelineArity { name, .. }
            | E::NoSuchStage { name, .. }
            | E::StageTwice { name, .. } => vec![name],
            E::PipelineMissing { name, block, .. } => vec![name, block],
            E::NotInLoop { name, block } => vec![block, name],
            E::OneStatement { name, first, second } => vec![second, first, name],
            E::SameOrder { first, second, .. } => vec![second, first],
            E::NegativeStage { block, .. } | E::NotOneTemp { block, .. } | E::Slots { block, .. } => {
                vec![block]
            }
            E::Hazard { src, dst, buffer, name, .. } => vec![dst, src, buffer, name],
        }
    }

    /// What to try instead, if there is one thing to say.
    pub fn help(&self) -> Option<String> {
        use PipelineError as E;
        let help = match self {
            E::OneComponent { .. } => "compute_at brings a producer into the loop",
            E::PipelineArity { .. } | E::PipelineMissing { .. } => {
                "name one block of each statement in the loop"
            }
            E::OneStatement { .. } => "name one of them",
            E::Hazard { src, dst, distance: 0, .. } => {
                return Some(format!(
                    "give `{dst}` a later stage than `{src}`, or in the same stage a later order"
                ));
            }
            E::Hazard { src, dst, .. } => {
                return Some(format!(
                    "give `{src}` at most one stage more than `{dst}`, and then an earlier order"
                ));
            }
            E::NotOneTemp { .. } => {
                "double buffering is for blocks that fill a temporary, as cache_read makes"
            }
            E::NoSuchStage { stages, .. } => return Some(known_stages(stages)),
            E::Slots { .. } => "two slots are what `double_buffer_scope` asks for without a number",
            E::StageTwice { .. } | E::NotInLoop { .. } | E::NegativeStage { .. } | E::SameOrder { .. } => {
                return None;
            }
        };
        Some(help.to_owned())
    }
}

fn known_stages(stages: &[i64]) -> String {
    match stages {
        [] => "stages start at 0".to_owned(),
        [one] => format!("all its statements have stage {one}"),
        [first @ .., last] => {
            let first = first.iter().map(i64::to_string).collect::<Vec<_>>().join(", ");
            format!("its statements have the stages {first} and {last}")
        }
    }
}

const fn later(kind: DepKind) -> &'static str {
    match kind {
        DepKind::Raw => "read",
        DepKind::War | DepKind::Waw => "write",
    }
}

const fn earlier(kind: DepKind) -> &'static str {
    match kind {
        DepKind::Raw | DepKind::Waw => "has written",
        DepKind::War => "has read",
    }
}

const fn when(distance: i64) -> &'static str {
    match distance {
        0 => " in the same iteration",
        _ => " in the iteration before",
    }
}
