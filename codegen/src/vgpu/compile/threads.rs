//! The blocks and threads of a kernel, its roles and its mbarriers, for sizes of the symbolic dimensions.

use std::collections::HashMap;

use ir::{Index, Kernel, Name, ThreadAxis, axis_var};

use crate::vgpu::{VgpuError, index::WARP, mbarrier::MbarrierInfo, program::RoleInfo};

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

/// The place of each of `count` threads on the axes of a role; of others zero.
pub(super) fn threads_of(role: &RoleInfo, count: usize) -> HashMap<Name, Vec<i64>> {
    let mut out = HashMap::new();
    let mut stride = 1;
    let axes = [ThreadAxis::ThreadX, ThreadAxis::ThreadY, ThreadAxis::ThreadZ];
    for (axis, extent) in axes.into_iter().zip(role.axes) {
        let at = |thread: usize| {
            let number = thread.checked_sub(role.threads.start).and_then(|it| i64::try_from(it).ok());
            number.map_or(0, |it| it / stride % extent)
        };
        out.insert(axis_var(axis), (0..count).map(at).collect());
        stride *= extent;
    }
    out
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

/// How many blocks and threads there are on each axis.
pub(super) fn extents(kernel: &Kernel, dims: &HashMap<Name, i64>) -> Result<([i64; 3], [i64; 3]), VgpuError> {
    let mut all = [1; 6];
    for (&axis, extent) in &kernel.launch {
        let value = extent.eval(&|it| dims.get(it).copied()).filter(|it| *it > 0);
        let error = || VgpuError::Launch { kernel: kernel.name.clone(), axis, extent: extent.clone() };
        all[axis as usize] = value.filter(|it| *it <= MAX_BLOCKS).ok_or_else(error)?;
    }
    let [bx, by, bz, tx, ty, tz] = all;
    let blocks = bx.saturating_mul(by).saturating_mul(bz);
    if blocks > MAX_BLOCKS {
        return Err(VgpuError::TooManyBlocks { kernel: kernel.name.clone(), blocks });
    }
    Ok(([bx, by, bz], [tx, ty, tz]))
}
