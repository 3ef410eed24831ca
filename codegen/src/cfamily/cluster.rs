//! Clusters: which block of threads of one a block is, and how it names the others.

use ir::{Access, Kernel, Scope, ThreadAxis, axis_var};

use super::{Printer, helper::Helper, ptx::Ptx};

/// The blocks of threads of a cluster on each of its axes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct ClusterShape(Option<[i64; 3]>);

impl ClusterShape {
    /// That of a kernel.
    pub(super) fn of(kernel: &Kernel) -> ClusterShape {
        let extent = |axis| kernel.launch.get(&axis).and_then(ir::Index::as_int);
        let is_one = ThreadAxis::GRID.iter().any(|it| extent(it.1).is_some());
        ClusterShape(is_one.then(|| ThreadAxis::GRID.map(|it| extent(it.1).unwrap_or(1))))
    }

    /// How many blocks there are.
    pub(super) fn blocks(self) -> i64 {
        self.0.map_or(1, |it| it.iter().product())
    }

    /// How many there are on an axis of the grid.
    pub(super) fn blocks_on(self, axis: ThreadAxis) -> i64 {
        let at = ThreadAxis::GRID.iter().position(|it| it.0 == axis);
        at.zip(self.0).map_or(1, |(at, extents)| extents[at])
    }

    /// What the head of a kernel says: `__cluster_dims__(2, 1, 1) `.
    pub(super) fn attribute(self) -> String {
        self.0.map(|[x, y, z]| format!("__cluster_dims__({x}, {y}, {z}) ")).unwrap_or_default()
    }

    /// CUDA's expression for an axis of blocks, or of a cluster.
    pub(super) fn block_axis(self, axis: ThreadAxis) -> String {
        let at = ThreadAxis::GRID.iter().position(|it| it.0 == axis || it.1 == axis);
        match (at, self.0) {
            (Some(at), Some(extents)) if extents[at] > 1 || axis.is_cluster() => {
                let sign = if axis.is_cluster() { '%' } else { '/' };
                format!("{} {sign} {}", ThreadAxis::GRID[at].0.as_str(), extents[at])
            }
            _ => axis.as_str().to_owned(),
        }
    }

    /// Whether blocks differ along an axis and along others, so that the numbers of those along it need the places on the others.
    pub(super) fn is_crossed(self, axis: ThreadAxis) -> bool {
        axis.is_cluster() && self.0.is_some_and(|it| it.iter().filter(|it| **it > 1).count() > 1)
    }

    /// How far apart the numbers of neighbours along an axis are, and how many there are.
    fn step(self, axis: ThreadAxis) -> (i64, i64) {
        let at = ThreadAxis::GRID.iter().position(|it| it.1 == axis).expect("it is an axis of the cluster");
        let extents = self.0.unwrap_or([1; 3]);
        (extents[..at].iter().product(), extents[at])
    }

    /// How much further the numbers of the blocks are that differ from the first along some axes.
    pub(super) fn along(self, axes: &[ThreadAxis]) -> Vec<i64> {
        let mut out = vec![0];
        for (step, extent) in axes.iter().map(|it| self.step(*it)) {
            out = (0..extent).flat_map(|n| out.iter().map(move |it| it + n * step)).collect();
        }
        out
    }

    /// The number of the first block along some axes, from this one: an expression, or nothing for zero.
    pub(super) fn first(self, axes: &[ThreadAxis]) -> Option<String> {
        let others =
            ThreadAxis::GRID.iter().map(|it| it.1).filter(|it| !axes.contains(it) && self.step(*it).1 > 1);
        let terms = others.map(|it| match self.step(it).0 {
            1 => axis_var(it).to_string(),
            step => format!("{} * {step}", axis_var(it)),
        });
        Some(terms.collect::<Vec<_>>().join(" + ")).filter(|it| !it.is_empty())
    }
}

impl Printer<'_> {
    /// Goes on when the mbarriers are initialised: those of all blocks of a cluster, in which others arrive.
    pub(super) fn mbarriers_are_known(&mut self) {
        if self.frame.cluster.0.is_some() {
            let name = self.require(Helper::Ptx(Ptx::ClusterBarrier));
            self.line(&format!("{name}();"));
        } else {
            self.line("__syncthreads();");
        }
    }

    /// The name of a buffer, or, where another block of the cluster has the element of an access, its part of the buffer.
    pub(super) fn in_cluster(&mut self, access: &Access, name: String) -> String {
        let is_dealt_out = self.frame.memory.get(&access.buffer).is_some_and(|it| it.1 == Scope::Cluster);
        let Some(block) = access.indices.first().filter(|_| is_dealt_out) else { return name };
        let own = self.frame.block_in_cluster.as_ref();
        if own.is_some_and(|own| self.frame.bounds.simplify(&(block - own)).as_int() == Some(0)) {
            return name;
        }
        let function = self.require(Helper::Ptx(Ptx::InBlock));
        format!("{function}({name}, {})", self.index(block))
    }

    /// The bits of the blocks along some axes, as a multicast wants them.
    pub(super) fn multicast_mask(&self, axes: &[ThreadAxis]) -> String {
        let bits = self.frame.cluster.along(axes).iter().fold(0, |all, it| all | 1 << it);
        match self.frame.cluster.first(axes) {
            None => format!("{bits:#x}"),
            Some(first) => format!("{bits:#x} << ({first})"),
        }
    }

    /// The numbers of the blocks along some axes.
    pub(super) fn blocks_along(&self, axes: &[ThreadAxis]) -> Vec<String> {
        let first = self.frame.cluster.first(axes);
        let one = |by: i64| match (&first, by) {
            (None, _) => by.to_string(),
            (Some(first), 0) => first.clone(),
            (Some(first), _) => format!("{first} + {by}"),
        };
        self.frame.cluster.along(axes).into_iter().map(one).collect()
    }
}
