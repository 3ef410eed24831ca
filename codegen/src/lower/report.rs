//! What became of the pipelines of a program.

use ir::{Index, Mechanism, Name, Scope};

/// A software pipeline as it was lowered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PipelineReport {
    /// The loop.
    pub var: Name,
    /// How often it ran before.
    pub extent: Index,
    /// `peel` or `predicate`.
    pub style: &'static str,
    /// How often its steady body is written out.
    pub unroll: i64,
    /// Its statements.
    pub components: Vec<ComponentReport>,
    /// The buffers that live in its iterations.
    pub buffers: Vec<SlotReport>,
}

/// A statement of a pipeline.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ComponentReport {
    /// Its name.
    pub name: Name,
    /// Its stage.
    pub stage: i64,
    /// Its order.
    pub order: i64,
    /// How it moves data.
    pub mechanism: Mechanism,
    /// Why.
    pub reason: String,
    /// What it reads.
    pub reads: Vec<Name>,
    /// What it writes.
    pub writes: Vec<Name>,
}

/// The slots of a buffer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SlotReport {
    /// The buffer.
    pub buffer: Name,
    /// Its memory.
    pub scope: Scope,
    /// How many iterations of it there are.
    pub slots: i64,
    /// How many the order of the statements needs.
    pub needed: i64,
    /// How many the script asks for.
    pub forced: Option<i64>,
    /// The bytes of one.
    pub bytes: i64,
}
