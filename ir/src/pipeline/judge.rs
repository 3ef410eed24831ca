//! Whether stages and orders keep every dependence, and which ones would.

use std::collections::{BTreeMap, BTreeSet};

use indexmap::IndexMap;

use super::{
    Component, Hazard, Legal, PipelineError,
    depend::{Meeting, Setting},
};
use crate::{
    Name,
    access::{Axes, FuncAccess, accesses},
    deps::DepKind,
};

/// The components of a loop, with what they touch.
pub(super) struct Judge<'a> {
    pub(super) setting: Setting<'a>,
    pub(super) components: &'a [Component],
    pub(super) accesses: Vec<Vec<FuncAccess<'a>>>,
    /// The buffers that each iteration fills before it uses them: iterations have their own.
    pub(super) private: &'a BTreeSet<Name>,
}

/// A dependence: the places of both components in program order, and the first iteration later that has it.
struct Edge {
    src: usize,
    dst: usize,
    distance: i64,
}

impl<'a> Judge<'a> {
    pub(super) fn new(
        setting: Setting<'a>,
        components: &'a [Component],
        private: &'a BTreeSet<Name>,
    ) -> Judge<'a> {
        let accesses = components.iter().map(|it| accesses(&it.body, Axes::AsLoops)).collect();
        Judge { setting, components, accesses, private }
    }

    /// The lexicographic rule: `dst` of iteration i + d depends on `src` of iteration i, and must run after it:
    /// `(stage_src, order_src) < (stage_dst + d, order_dst)`.
    pub(super) fn check(&self, benign: &BTreeSet<Name>) -> Result<(), PipelineError> {
        let count = self.components.len();
        for (src, dst) in (0..count).flat_map(|src| (0..count).map(move |dst| (src, dst))) {
            for distance in 0.. {
                if self.in_order(src, dst, distance) {
                    break;
                }
                if distance == 0 && dst <= src {
                    continue;
                }
                let forgiven = |a: &FuncAccess<'_>, _: &FuncAccess<'_>| {
                    distance > 0 && !a.write && benign.contains(&a.block_name())
                };
                if let Some(mut hazard) = self.hazard(src, dst, distance, &forgiven) {
                    hazard.legal = self.legal();
                    return Err(PipelineError::Hazard { hazard: Box::new(hazard) });
                }
            }
        }
        Ok(())
    }

    fn time(&self, at: usize) -> (i64, i64) {
        (self.components[at].stage, self.components[at].order)
    }

    fn in_order(&self, src: usize, dst: usize, distance: i64) -> bool {
        let (stage, order) = self.time(dst);
        self.time(src) < (stage + distance, order)
    }

    /// Whether a component depends on another one of that many iterations before.
    pub(super) fn depends(&self, src: usize, dst: usize, distance: i64) -> bool {
        self.hazard(src, dst, distance, &|_, _| false).is_some()
    }

    /// A dependence between two components at that distance, if there is one.
    fn hazard(
        &self,
        src: usize,
        dst: usize,
        distance: i64,
        forgiven: &dyn Fn(&FuncAccess<'_>, &FuncAccess<'_>) -> bool,
    ) -> Option<Hazard> {
        let pairs = self.accesses[src].iter().flat_map(|a| self.accesses[dst].iter().map(move |b| (a, b)));
        pairs.into_iter().find_map(|(a, b)| {
            let kind = match (a.write, b.write) {
                (true, false) => DepKind::Raw,
                (false, true) => DepKind::War,
                (true, true) => DepKind::Waw,
                (false, false) => return None,
            };
            if a.buffer != b.buffer || distance > 0 && self.private.contains(a.buffer) || forgiven(a, b) {
                return None;
            }
            let example = match self.setting.meet(a, b, distance) {
                Meeting::Never => return None,
                Meeting::At(iteration, element) => Some((iteration, element)),
                Meeting::Unknown => None,
            };
            let (name, buffer) = (self.setting.var.clone(), a.buffer.clone());
            let (src, dst) = (a.block_name(), b.block_name());
            Some(Hazard { name, kind, src, dst, buffer, distance, example, kept_for: None, legal: None })
        })
    }

    /// The iterations by which writes of a buffer, given as slots of its own to each iteration, come before uses in an
    /// earlier iteration are over: a slot must not be used again after any of these.
    pub(super) fn overtaken(&self, buffer: &Name) -> BTreeSet<i64> {
        let mut out = BTreeSet::new();
        let all = |at: usize| self.accesses[at].iter().filter(|it| it.buffer == buffer);
        for (user, writer) in
            (0..self.components.len()).flat_map(|a| (0..self.components.len()).map(move |b| (a, b)))
        {
            for distance in 1.. {
                if self.in_order(user, writer, distance) {
                    break;
                }
                let mut pairs =
                    all(user).flat_map(|a| all(writer).filter(|it| it.write).map(move |b| (a, b)));
                if pairs.any(|(a, b)| self.setting.meet(a, b, distance) != Meeting::Never) {
                    out.insert(distance);
                }
            }
        }
        out
    }

    /// Stages and an order that keep every dependence: the given stages if any order does, else each raised as little
    /// as its predecessors ask.
    fn legal(&self) -> Option<Legal> {
        let edges = self.edges();
        let given: Vec<i64> = self.components.iter().map(|it| it.stage).collect();
        let order = |stages: &[i64]| self.order(stages, &edges);
        let raised = raised(&given, &edges);
        let (stages, order, same_stages) = order(&given)
            .map(|it| (given, it, true))
            .or_else(|| raised.and_then(|stages| Some((stages.clone(), order(&stages)?, false))))?;
        let name = |at: &usize| self.components[*at].name.clone();
        let stages = self.components.iter().map(|it| it.name.clone()).zip(stages);
        Some(Legal {
            stages: stages.collect::<IndexMap<_, _>>(),
            order: order.iter().map(name).collect(),
            same_stages,
        })
    }

    /// Every dependence between two components, at the least distance it has.
    fn edges(&self) -> Vec<Edge> {
        let count = self.components.len();
        let most = self.components.iter().map(|it| it.stage).max().unwrap_or(0) + 1;
        let mut out = Vec::new();
        for (src, dst) in (0..count).flat_map(|src| (0..count).map(move |dst| (src, dst))) {
            let mut distances = i64::from(dst <= src)..=most;
            let found = distances.find(|distance| self.hazard(src, dst, *distance, &|_, _| false).is_some());
            out.extend(found.map(|distance| Edge { src, dst, distance }));
        }
        out
    }

    /// An order for these stages, as near to the given one as dependences let it be.
    fn order(&self, stages: &[i64], edges: &[Edge]) -> Option<Vec<usize>> {
        let mut before: BTreeMap<usize, BTreeSet<usize>> =
            (0..stages.len()).map(|it| (it, BTreeSet::new())).collect();
        for Edge { src, dst, distance } in edges {
            match stages[*src].cmp(&(stages[*dst] + distance)) {
                std::cmp::Ordering::Less => {}
                std::cmp::Ordering::Greater => return None,
                std::cmp::Ordering::Equal => {
                    before.get_mut(dst)?.insert(*src);
                }
            }
        }
        let mut out = Vec::new();
        while !before.is_empty() {
            let ready = before.iter().filter(|(_, it)| it.iter().all(|src| out.contains(src)));
            let next = *ready.min_by_key(|(at, _)| self.components[**at].order)?.0;
            before.remove(&next);
            out.push(next);
        }
        Some(out)
    }
}

/// The least stages, none below those given, in which no dependence goes backwards.
fn raised(given: &[i64], edges: &[Edge]) -> Option<Vec<i64>> {
    let mut stages = given.to_vec();
    for _ in 0..=stages.len() {
        let mut changed = false;
        for Edge { src, dst, distance } in edges {
            let least = stages[*src] - distance;
            if stages[*dst] < least {
                stages[*dst] = least;
                changed = true;
            }
        }
        if !changed {
            return Some(stages);
        }
    }
    None
}
