//! Why a pipeline annotation is refused.

use indexmap::IndexMap;

use crate::{Mechanism, Name, ThreadAxis, deps::DepKind};

/// Why a pipeline annotation is refused.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the message of each variant says what its fields are")]
pub enum PipelineError {
    #[error("the body of loop `{name}` is one statement: there is nothing to overlap")]
    OneComponent { name: Name },
    #[error("loop `{name}` is bound to {}: only a serial or unrolled loop can be pipelined", axis.as_str())]
    Bound { name: Name, axis: ThreadAxis },
    #[error("loop `{name}` is {kind}: only a serial or unrolled loop can be pipelined")]
    Kind { name: Name, kind: &'static str },
    #[error("loop `{name}` has {components} components, and {given} numbers are given")]
    PipelineArity { name: Name, components: usize, given: usize },
    #[error("`{key}` of loop `{name}` leaves out block `{block}`")]
    PipelineMissing { name: Name, key: &'static str, block: Name },
    #[error("loop `{name}` has no component `{block}`: components go by the names of their blocks")]
    NotInLoop { name: Name, block: Name, known: Vec<Name> },
    #[error(
        "`{first}` and `{second}` are in one statement of loop `{name}`, and are given different numbers"
    )]
    OneStatement { name: Name, first: Name, second: Name },
    #[error("`{key}` of loop `{name}` is neither a map from its statements to numbers nor a list of numbers")]
    NotAMap { name: Name, key: &'static str },
    #[error("block `{block}` is given stage {stage}, and stages start at 0")]
    NegativeStage { block: Name, stage: i64 },
    #[error("block `{block}` is given stage {stage}, and the last stage there can be is {limit}")]
    StageTooLate { block: Name, stage: i64, limit: i64 },
    #[error("`{first}` and `{second}` both have order {order}")]
    SameOrder { first: Name, second: Name, order: i64 },
    #[error("`{part}` is a part of the pipeline of loop `{inner}`, which is not written out in parts")]
    NoParts { name: Name, inner: Name, part: Name },
    #[error("in the pipeline of loop `{}`, {}", hazard.name, hazard.sentence())]
    Hazard { hazard: Box<Hazard> },
    #[error("`{block}` is said to be benign, and {reason}")]
    NotBenign { name: Name, block: Name, reason: String },
    #[error("block `{block}` writes no temporary")]
    NotOneTemp { block: Name },
    #[error("a buffer has 2 to {limit} slots, and block `{block}` is given {slots}")]
    Slots { block: Name, slots: i64, limit: i64 },
    #[error("no statement of loop `{name}` has stage {stage}")]
    NoSuchStage { name: Name, stage: i64, stages: Vec<i64> },
    #[error("stage {stage} of loop `{name}` is given twice")]
    StageTwice { name: Name, stage: i64 },
    #[error("loop `{name}` is not pipelined")]
    NoPipeline { name: Name },
    #[error(
        "loop `{outer}` is not the serial or persistent loop around loop `{name}` with only loops over threads between"
    )]
    NotAround { name: Name, outer: Name },
    #[error(
        "a block of threads may have nothing to do, and the pipeline of loop `{name}` would begin all the same"
    )]
    MayNotRun { name: Name },
    #[error("role `{role}` copies for loop `{name}`, and goes on from one run to the next by itself")]
    OwnPace { name: Name, role: Name },
    #[error("loop `{name}` is scheduled for no GPU, and pipelines are worked out for GPUs")]
    NoGpu { name: Name },
    #[error(
        "{count} pipelines are worked out for loop `{name}`, numbered from 0, and {choice} is none of them"
    )]
    NoSuchChoice { name: Name, choice: i64, count: usize },
    #[error("no pipeline can be worked out for loop `{name}`: {why}")]
    NotWorkedOut { name: Name, why: &'static str },
    #[error("loop `{name}`: `{component}` cannot be {mechanism}, as the script asks: {reason}")]
    Mechanism { name: Name, component: Name, mechanism: Mechanism, reason: String, change: &'static str },
}

crate::codes!(PipelineError {
    OneComponent = 1501,
    Bound = 1502,
    Kind = 1503,
    PipelineArity = 1504,
    PipelineMissing = 1505,
    NotInLoop = 1506,
    OneStatement = 1507,
    NotAMap = 1508,
    NegativeStage = 1509,
    StageTooLate = 1510,
    SameOrder = 1511,
    NoParts = 1512,
    Hazard = 1513,
    NotBenign = 1514,
    NotOneTemp = 1515,
    Slots = 1516,
    NoSuchStage = 1517,
    StageTwice = 1518,
    Mechanism = 1519,
    NoPipeline = 1520,
    NotAround = 1521,
    OwnPace = 1522,
    MayNotRun = 1523,
    NoGpu = 1524,
    NoSuchChoice = 1525,
    NotWorkedOut = 1526,
});

/// A dependence that a pipeline would break.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hazard {
    /// The loop.
    pub name: Name,
    /// What `dst` does to what `src` did.
    pub kind: DepKind,
    /// The block that comes first in the program.
    pub src: Name,
    /// The block that comes later, and would come too early.
    pub dst: Name,
    /// What both touch.
    pub buffer: Name,
    /// In which later iteration `dst` touches it.
    pub distance: i64,
    /// An iteration of `src` and an element in which they meet. `None` where it could neither be found nor excluded.
    pub example: Option<(i64, Vec<i64>)>,
    /// Where iterations cannot have the temporary for their own, the block that may read what an earlier one has left in it.
    pub kept_for: Option<Name>,
    /// Numbers that would be legal, as near to those given as could be found.
    pub legal: Option<Legal>,
}

/// Stages and places by component that keep every dependence.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Legal {
    /// The stage of each component.
    pub stages: IndexMap<Name, i64>,
    /// The components in the order in which they run.
    pub order: Vec<Name>,
    /// Whether the stages are those that were given.
    pub same_stages: bool,
}

impl Hazard {
    fn sentence(&self) -> String {
        let Hazard { kind, src, dst, buffer, distance, example, .. } = self;
        let (later, earlier) = match kind {
            DepKind::Raw => ("read", "has written"),
            DepKind::War => ("write", "has read"),
            DepKind::Waw => ("write", "has written"),
        };
        let when = match distance {
            0 => " in the same iteration".to_owned(),
            1 => " in the iteration before".to_owned(),
            more => format!(" {more} iterations before"),
        };
        let example = match example {
            None => "; that they never meet there could not be proved".to_owned(),
            Some((iteration, element)) => {
                let element = element.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
                let then = match distance {
                    0 => format!("iteration {iteration}"),
                    more => format!("iterations {iteration} and {}", iteration + more),
                };
                format!(" (they meet in `{buffer}[{element}]`, {then})")
            }
        };
        format!("`{dst}` would {later} `{buffer}` before `{src}` {earlier} it{when}{example}")
    }
}

impl PipelineError {
    /// The names in the script and in the program that the message is about; the first is the culprit.
    pub fn names(&self) -> Vec<&Name> {
        use PipelineError as E;
        match self {
            E::OneComponent { name }
            | E::Bound { name, .. }
            | E::Kind { name, .. }
            | E::NotAMap { name, .. }
            | E::NoSuchStage { name, .. }
            | E::StageTwice { name, .. }
            | E::NoPipeline { name }
            | E::MayNotRun { name }
            | E::NoGpu { name }
            | E::NoSuchChoice { name, .. }
            | E::NotWorkedOut { name, .. }
            | E::PipelineArity { name, .. } => vec![name],
            E::NotAround { name, outer } => vec![outer, name],
            E::OwnPace { name, role } => vec![name, role],
            E::PipelineMissing { name, block, .. } => vec![name, block],
            E::NotInLoop { name, block, .. } | E::NotBenign { name, block, .. } => vec![block, name],
            E::OneStatement { name, first, second } => vec![second, first, name],
            E::SameOrder { first, second, .. } => vec![second, first],
            E::NegativeStage { block, .. }
            | E::StageTooLate { block, .. }
            | E::Slots { block, .. }
            | E::NotOneTemp { block } => vec![block],
            E::Mechanism { name, component, .. } => vec![component, name],
            E::NoParts { name, inner, part } => vec![part, inner, name],
            E::Hazard { hazard } => vec![&hazard.dst, &hazard.src, &hazard.buffer, &hazard.name],
        }
    }

    /// What to try instead, if there is one thing to say.
    pub fn help(&self) -> Option<String> {
        use PipelineError as E;
        let help = match self {
            E::OneComponent { .. } => "compute_at brings a producer into the loop",
            E::PipelineArity { .. } | E::PipelineMissing { .. } | E::NotAMap { .. } => {
                "name one block of each statement in the loop; steps that add a statement to it come before it is pipelined"
            }
            E::OneStatement { .. } => "name one of them",
            E::NoParts { .. } => {
                "pipeline the inner loop first, over a constant extent, with the style \"peel\""
            }
            E::Hazard { hazard } => return Some(hazard.help()),
            E::NotOneTemp { .. } => {
                "double buffering is for blocks that fill a temporary, as cache_read makes"
            }
            E::NotBenign { .. } => {
                "benign is for a store that every iteration repeats and that only the last decides"
            }
            E::NotInLoop { known, .. } => {
                let known: Vec<_> = known.iter().map(|it| format!("`{it}`")).collect();
                return Some(format!("it has {}", known.join(", ")));
            }
            E::NoSuchStage { stages, .. } => return Some(known_stages(stages)),
            E::NoGpu { .. } => "say stages and an order, or schedule for the target `cuda`",
            E::NoSuchChoice { .. } => "leave `choice` out for the best of them",
            E::NotWorkedOut { .. } => "say stages and an order",
            E::NoPipeline { .. } => "give it stages and an order first",
            E::NotAround { .. } => {
                "name the loop over tiles, and apply this after the steps that move or split loops"
            }
            E::OwnPace { .. } => "leave the step out",
            E::MayNotRun { .. } => {
                "deal the iterations to no more blocks than there are: smaller `blocks`, or a size that is given"
            }
            E::Mechanism { change, .. } => change,
            E::Slots { .. } => "two slots are what `double_buffer_scope` asks for without a number",
            E::Bound { .. }
            | E::Kind { .. }
            | E::StageTwice { .. }
            | E::NegativeStage { .. }
            | E::StageTooLate { .. }
            | E::SameOrder { .. } => return None,
        };
        Some(help.to_owned())
    }
}

impl Hazard {
    fn help(&self) -> String {
        let Hazard { buffer, kept_for, .. } = self;
        let why = kept_for.as_ref().map(|block| {
            format!("iterations share one `{buffer}`, since `{block}` may read what an earlier one has left in it; ")
        });
        format!("{}{}", why.unwrap_or_default(), self.numbers())
    }

    fn numbers(&self) -> String {
        let Some(Legal { stages, order, same_stages }) = &self.legal else {
            return "give every statement the same stage and the order of the program".to_owned();
        };
        let quoted = order.iter().map(|it| format!("\"{it}\"")).collect::<Vec<_>>().join(", ");
        if *same_stages {
            return format!("with these stages, the order [{quoted}] is legal");
        }
        let stages = stages.iter().map(|(name, stage)| format!("\"{name}\": {stage}"));
        let stages = stages.collect::<Vec<_>>().join(", ");
        format!("the stages {{{stages}}} with the order [{quoted}] are legal")
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
