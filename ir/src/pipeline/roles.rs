//! Roles: which warps run which components of a pipeline, each at its own pace.
//!
//! Where components belong to different roles, their stages say no longer when one role runs and when another, since mbarriers order them: what
//! the stages are for then is how many slots a ring has. So each role starts with its first stage, and a step has what is written before what
//! reads it. What one role does by itself is what is declared: it may run parts of several iterations in a step, as attention does, which starts
//! the products of the next scores before it is done with these.

use super::{Component, PipelinePlan};
use crate::{Index, Loop, LoopKind, Name};

/// The role by which warps run what has none: [`crate::BlockAttrs::role`].
pub const COMPUTE: &str = "compute";

impl PipelinePlan {
    /// The role of a component: that of its blocks.
    pub fn role(&self, component: usize) -> Option<&Name> {
        self.components[component].body.blocks().into_iter().find_map(|it| it.attrs.role.as_ref())
    }

    /// Whether its components have several roles.
    pub fn has_roles(&self) -> bool {
        let first = self.role(0);
        (1..self.components.len()).any(|it| self.role(it) != first)
    }

    /// The number of an iteration among those of all runs of the loop, counted through the serial loops around it.
    pub fn position(&self, around: &[&Loop], iteration: &Index) -> Index {
        let serial = around.iter().filter(|it| !matches!(it.kind, LoopKind::Bound(_)));
        let outer = serial.fold(Index::int(0), |all, it| all * it.extent.clone() + Index::var(&it.var));
        outer * self.extent.clone() + iteration.clone()
    }

    /// The plan with each role at its own pace: as early as what it needs of others lets it be, its components among each other
    /// at the stages and in the order that are declared.
    #[must_use]
    pub fn by_role(&self) -> PipelinePlan {
        let edges = self.between_roles();
        let earlier = self.earlier(&edges);
        let mut out = self.clone();
        for (component, earlier) in out.components.iter_mut().zip(earlier) {
            component.stage -= earlier;
        }
        for (order, at) in (0..).zip(out.in_order_of_need(&edges)) {
            out.components[at].order = order;
        }
        out
    }

    /// Components, each with one of another role that reads what it writes in the same iteration.
    fn between_roles(&self) -> Vec<(usize, usize)> {
        let all = 0..self.components.len();
        let pairs = all.clone().flat_map(|src| all.clone().skip(src + 1).map(move |dst| (src, dst)));
        let time = |it: &Component| (it.stage, it.order);
        let is_needed = |&(src, dst): &(usize, usize)| {
            let is_other = self.role(src) != self.role(dst);
            let (src, dst) = (&self.components[src], &self.components[dst]);
            is_other && time(src) < time(dst) && !src.writes().is_disjoint(&dst.reads())
        };
        pairs.filter(is_needed).collect()
    }

    /// By how many stages each component runs earlier: all of a role by as many, at most by its first stage, and none so that it would come
    /// to a stage before that of what it needs. As no edge leads to an earlier stage, this ends.
    fn earlier(&self, edges: &[(usize, usize)]) -> Vec<i64> {
        let all = 0..self.components.len();
        let of_role = |at: usize| all.clone().filter(move |it| self.role(*it) == self.role(at));
        let first =
            |at: usize| of_role(at).map(|it| self.components[it].stage).min().expect("it is of its own role");
        let mut out: Vec<i64> = all.clone().map(first).collect();
        let most = |out: &[i64], src: usize, dst: usize| {
            out[src] + self.components[dst].stage - self.components[src].stage
        };
        while let Some((src, dst)) = edges.iter().find(|it| out[it.1] > most(&out, it.0, it.1)) {
            let least = most(&out, *src, *dst);
            of_role(*dst).for_each(|it| out[it] = least);
        }
        out
    }

    /// The components as a step runs them: those of a role in the order that is declared, each behind what it needs of the same step, and in
    /// program order where that leaves a choice.
    ///
    /// There is such an order. Needs lead from a role that is earlier by some stages to one that is earlier by no fewer, if both ends are in one step;
    /// around a circle all are earlier by as many, and so had been in one step as declared, whose order has no circle.
    fn in_order_of_need(&self, edges: &[(usize, usize)]) -> Vec<usize> {
        let components = &self.components;
        let is_behind = |at: usize, other: usize| {
            let is_needed = edges.contains(&(other, at)) && components[other].stage == components[at].stage;
            let comes_first = components[other].order < components[at].order;
            is_needed || self.role(other) == self.role(at) && comes_first
        };
        let mut left: Vec<usize> = (0..components.len()).collect();
        let mut out = Vec::new();
        while !left.is_empty() {
            let is_free = |at: &usize| !left.iter().any(|other| is_behind(*at, *other));
            let next = left.iter().position(is_free).expect("the needs of a step have no circle");
            out.push(left.remove(next));
        }
        out
    }
}
