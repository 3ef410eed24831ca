//! The blocks and threads of a kernel, its roles and its mbarriers, for sizes of the symbolic dimensions.

use std::collections::HashMap;

use ir::{Arch, Index, Kernel, Name, ThreadAxis, axis_var};

use crate::vgpu::{VgpuError, cluster::Cluster, index::WARP, mbarrier::MbarrierInfo, program::RoleInfo};

/// Where counts of threads are cut off, far behind what any block has: they stay numbers of both types.
const MOST_THREADS: usize = 1 << 40;

/// The roles of a kernel whose launch has so many threads on each axis.
pub(super) fn roles(kernel: &Kernel, axes: [i64; 3]) -> Result<Vec<RoleInfo>, VgpuError> {
    let size = |axes: [i64; 3]| {
        let threads = axes.iter().fold(1, |a: i64, b| a.saturating_mul(*b));
        usize::try_from(threads.max(0)).expect("it is not negative")
    };
    if kernel.roles.is_empty() {
        return Ok(vec![RoleInfo { name: None, threads: 0..size(axes).min(MOST_THREADS), axes }]);
    }
    let mut first: usize = 0;
    let one = |(name, role): (&Name, &ir::WarpRole)| {
        if let Some((&axis, &extent)) = role.axes.iter().find(|it| *it.1 < 1) {
            let (kernel, extent) = (kernel.name.clone(), Index::int(extent));
            return Err(VgpuError::Launch { kernel, axis, extent });
        }
        let extent = |axis| role.axes.get(&axis).copied().unwrap_or(1);
        let axes = [ThreadAxis::ThreadX, ThreadAxis::ThreadY, ThreadAxis::ThreadZ].map(extent);
        let threads = first..first.saturating_add(size(axes)).min(MOST_THREADS);
        first = threads.end;
        Ok(RoleInfo { name: Some(name.clone()), threads, axes })
    };
    kernel.roles.iter().map(one).collect()
}

/// Refuses roles that share a warp.
pub(super) fn expect_warps(kernel: &Kernel, roles: &[RoleInfo]) -> Result<(), VgpuError> {
    for RoleInfo { name, threads, .. } in roles {
        if let Some(role) = name.clone()
            && !threads.len().is_multiple_of(WARP)
        {
            let (kernel, threads) = (kernel.name.clone(), threads.len());
            return Err(VgpuError::PartOfAWarp { kernel, role, threads });
        }
    }
    Ok(())
}

/// The place of each thread of a cluster on the axes of a role, for other threads zero, and that of its block in the cluster.
pub(super) fn threads_of(role: &RoleInfo, cluster: &Cluster) -> HashMap<Name, Vec<i64>> {
    let mut out = HashMap::new();
    let mut stride = 1;
    let axes = [ThreadAxis::ThreadX, ThreadAxis::ThreadY, ThreadAxis::ThreadZ];
    for (axis, extent) in axes.into_iter().zip(role.axes) {
        let at = |thread: usize| {
            let own = cluster.in_block(thread);
            let number = own.checked_sub(role.threads.start).and_then(|it| i64::try_from(it).ok());
            number.map_or(0, |it| it / stride % extent)
        };
        out.insert(axis_var(axis), (0..cluster.count()).map(at).collect());
        stride *= extent;
    }
    for (axis, at) in [ThreadAxis::ClusterX, ThreadAxis::ClusterY, ThreadAxis::ClusterZ].into_iter().zip(0..)
    {
        let place = |thread: usize| cluster.place(cluster.block_of(thread))[at];
        out.insert(axis_var(axis), (0..cluster.count()).map(place).collect());
    }
    out
}

/// The blocks of a cluster, each of so many threads.
pub(super) fn blocks_of_cluster(axes: [i64; 3], threads: usize) -> Cluster {
    let is_one = axes == [1; 3];
    // A warpgroup begins at a multiple of its threads in each block.
    let stride = threads.next_multiple_of(if is_one { WARP } else { 4 * WARP });
    Cluster { axes, stride }
}

/// The mbarriers of a kernel, numbered through.
pub(super) fn mbarriers(kernel: &Kernel) -> Vec<MbarrierInfo> {
    let mut first = 0;
    let one = |(name, it): (&Name, &ir::Mbarriers)| {
        let slots = usize::try_from(it.slots).expect("`verify` demands a slot");
        let info = MbarrierInfo { name: name.clone(), slots, arrivals: it.arrivals, first };
        first += slots;
        info
    };
    kernel.mbarriers.iter().map(one).collect()
}

/// The most blocks that it takes on.
const MAX_BLOCKS: i64 = 1 << 26;

/// How many clusters, blocks of a cluster and threads there are on each axis.
pub(super) fn extents(kernel: &Kernel, dims: &HashMap<Name, i64>) -> Result<[[i64; 3]; 3], VgpuError> {
    let mut all = [1; 9];
    for (&axis, extent) in &kernel.launch {
        let value = extent.eval(&|it| dims.get(it).copied()).filter(|it| *it > 0);
        let error = || VgpuError::Launch { kernel: kernel.name.clone(), axis, extent: extent.clone() };
        all[axis as usize] = value.filter(|it| *it <= MAX_BLOCKS).ok_or_else(error)?;
    }
    let [bx, by, bz, cx, cy, cz, tx, ty, tz] = all;
    let blocks = bx.saturating_mul(by).saturating_mul(bz);
    if blocks > MAX_BLOCKS {
        return Err(VgpuError::TooManyBlocks { kernel: kernel.name.clone(), blocks });
    }
    if cx.saturating_mul(cy).saturating_mul(cz) > i64::from(Arch::MAX_CLUSTER) {
        return Err(VgpuError::Cluster { kernel: kernel.name.clone(), axes: [cx, cy, cz] });
    }
    Ok([[bx, by, bz], [cx, cy, cz], [tx, ty, tz]])
}
