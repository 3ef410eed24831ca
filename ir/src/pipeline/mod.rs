//! Software pipelines: what their annotations mean, whether they keep every dependence, and the program they make.
//!
//! A *component* is a statement directly in the loop, or a part of an inner pipeline ([`part_names`]). Component `c` of
//! iteration `i` runs at time `(i + stage, order)`.
//!
//! *Legality.* If `dst` of iteration `i + d` touches an element that `src` of iteration `i` touches, and one of them
//! writes it, then `(stage_src, order_src) < (stage_dst + d, order_dst)` has to hold, compared first by stage: for reads
//! after writes, writes after reads and writes after writes, at every distance `d >= 0`. Whether they touch one element is
//! asked of [`crate::solve`], so the rule is exact where the solver is; what it cannot settle counts as touching.
//!
//! *Slots.* A temporary that each iteration fills before it uses ([`private()`]) carries nothing from one iteration to
//! the next; iterations have slots of it, `iteration mod V`. A write of iteration `i + d` that comes before a use of
//! iteration `i` is over must not meet it in a slot: V is the least number of which no such `d` is a multiple. For a
//! writer at stage w and a user at stage r this is `V >= r - w + [order_w < order_r]`.
//!
//! *Emission.* See [`Emission`]. An array in registers cannot be indexed at run time, so where one has several slots the
//! steady loop is unrolled until they are constants.

mod annotation;
mod apart;
mod benign;
mod depend;
mod emission;
mod error;
mod expand;
mod graph;
mod judge;
mod judged;
mod keys;
mod lifetimes;
mod materialize;
mod private;
mod roles;
mod section;
mod walk;
mod written;

use std::collections::BTreeSet;

use indexmap::IndexMap;

pub use annotation::{
    NamedComponent, async_stages, check_numbers, components, components_of, expect_serial, in_program_order,
    is_asynchronous, is_pipeline, named, numbers, part_names,
};
pub use emission::{Emission, Instance, Steady, Step, emit};
pub use error::{Hazard, Legal, PipelineError};
pub use expand::{EmissionPoint, Hooks, Insertions, check, expand, forced};
pub use graph::{Dependence, DependenceGraph, dependences};
pub use judged::{are_alike, is_judged_alike};
pub use keys::{
    ACROSS, ASYNC, ASYNC_BLOCKS, BENIGN, DOUBLE, LAST_STAGE, MECHANISM, ORDER, REASON, SLOTS, STAGE, STYLE,
    Style,
};
pub use lifetimes::split_lifetimes;
pub use private::private;
pub use roles::COMPUTE;
pub use section::Section;

use crate::{Index, Name, Stmt};

/// A statement of a pipelined loop, with its place in time.
#[derive(Clone, Debug)]
pub struct Component {
    /// What annotations call it.
    pub name: Name,
    /// The statement.
    pub body: Stmt,
    /// How many iterations later it runs than a component of stage 0.
    pub stage: i64,
    /// Its place among the components of one step of time.
    pub order: i64,
}

/// How many slots a buffer has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SlotCount {
    /// The least number that keeps iterations apart.
    pub needed: i64,
    /// The least number that the script asks for.
    pub forced: Option<i64>,
}

impl SlotCount {
    /// The number of slots.
    pub fn count(self) -> i64 {
        self.forced.unwrap_or(1).max(self.needed)
    }
}

/// What becomes of a loop.
#[derive(Clone, Debug)]
pub struct PipelinePlan {
    /// The loop.
    pub var: Name,
    /// How many iterations it has.
    pub extent: Index,
    /// How prologue and epilogue are emitted.
    pub style: Style,
    /// The components in program order.
    pub components: Vec<Component>,
    /// The buffers of which each iteration has its own, in declaration order.
    pub slots: IndexMap<Name, SlotCount>,
    /// How many steps one run of the steady loop takes.
    pub unroll: i64,
    /// Why it is as it is, if nobody wrote it by hand.
    pub reason: Option<String>,
}

impl PipelinePlan {
    /// The greatest stage.
    pub fn last_stage(&self) -> i64 {
        self.components.iter().map(|it| it.stage).max().unwrap_or(0)
    }

    /// After how many iterations every buffer is back in the slot that it began with.
    pub fn period(&self) -> i64 {
        self.slots.values().fold(1, |all, it| expand::lcm(all, it.count()))
    }

    /// The components in the order in which they run, with their places in program order.
    pub fn in_order(&self) -> Vec<(usize, &Component)> {
        let mut out: Vec<_> = self.components.iter().enumerate().collect();
        out.sort_by_key(|it| it.1.order);
        out
    }
}

impl Component {
    /// The buffers that it reads.
    pub fn reads(&self) -> BTreeSet<Name> {
        self.body.blocks().iter().flat_map(|it| it.reads()).map(|it| it.buffer.clone()).collect()
    }

    /// The buffers that it writes.
    pub fn writes(&self) -> BTreeSet<Name> {
        self.body.blocks().iter().flat_map(|it| it.writes()).map(|it| it.buffer.clone()).collect()
    }
}
