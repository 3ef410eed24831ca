//! The axes of a GPU launch.

/// An axis of a GPU launch.
///
/// A *cluster* is some blocks of threads that run at the same time, and can write into each other's shared memory. Where there are clusters,
/// the axes `blockIdx` number them, and the axes `cluster` the blocks of one. CUDA's own `blockIdx.x` numbers all blocks instead: it is
/// `blockIdx.x * extent of cluster.x + cluster.x`, which only launches and the printer of CUDA C++ know.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[expect(missing_docs, reason = "the names are CUDA's")]
pub enum ThreadAxis {
    BlockX,
    BlockY,
    BlockZ,
    ClusterX,
    ClusterY,
    ClusterZ,
    ThreadX,
    ThreadY,
    ThreadZ,
}

impl ThreadAxis {
    /// Every axis, in declaration order.
    pub const ALL: [ThreadAxis; 9] = [
        ThreadAxis::BlockX,
        ThreadAxis::BlockY,
        ThreadAxis::BlockZ,
        ThreadAxis::ClusterX,
        ThreadAxis::ClusterY,
        ThreadAxis::ClusterZ,
        ThreadAxis::ThreadX,
        ThreadAxis::ThreadY,
        ThreadAxis::ThreadZ,
    ];

    /// The axes of blocks, each with that of the cluster on the same axis of CUDA's grid; in the order in which the blocks of a cluster are
    /// numbered (PTX ISA, `%cluster_ctarank`).
    pub const GRID: [(ThreadAxis, ThreadAxis); 3] = [
        (ThreadAxis::BlockX, ThreadAxis::ClusterX),
        (ThreadAxis::BlockY, ThreadAxis::ClusterY),
        (ThreadAxis::BlockZ, ThreadAxis::ClusterZ),
    ];

    /// CUDA's spelling, `blockIdx.x`; CUDA has none for `cluster.x`, which is `cluster_ctaid.x` in PTX.
    pub const fn as_str(self) -> &'static str {
        match self {
            ThreadAxis::BlockX => "blockIdx.x",
            ThreadAxis::BlockY => "blockIdx.y",
            ThreadAxis::BlockZ => "blockIdx.z",
            ThreadAxis::ClusterX => "cluster.x",
            ThreadAxis::ClusterY => "cluster.y",
            ThreadAxis::ClusterZ => "cluster.z",
            ThreadAxis::ThreadX => "threadIdx.x",
            ThreadAxis::ThreadY => "threadIdx.y",
            ThreadAxis::ThreadZ => "threadIdx.z",
        }
    }

    /// The axis of a CUDA spelling.
    pub fn parse(text: &str) -> Option<ThreadAxis> {
        ThreadAxis::ALL.into_iter().find(|it| it.as_str() == text)
    }

    /// Whether this is a `threadIdx` axis: its threads share shared memory and meet at barriers.
    pub const fn is_thread(self) -> bool {
        matches!(self, ThreadAxis::ThreadX | ThreadAxis::ThreadY | ThreadAxis::ThreadZ)
    }

    /// Whether this is a `cluster` axis: its blocks run at the same time.
    pub const fn is_cluster(self) -> bool {
        matches!(self, ThreadAxis::ClusterX | ThreadAxis::ClusterY | ThreadAxis::ClusterZ)
    }
}
