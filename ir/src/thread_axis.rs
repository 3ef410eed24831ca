//! The axes of a GPU launch.

/// An axis of a GPU launch.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[expect(missing_docs, reason = "the names are CUDA's")]
pub enum ThreadAxis {
    BlockX,
    BlockY,
    BlockZ,
    ThreadX,
    ThreadY,
    ThreadZ,
}

impl ThreadAxis {
    /// Every axis, in declaration order.
    pub const ALL: [ThreadAxis; 6] = [
        ThreadAxis::BlockX,
        ThreadAxis::BlockY,
        ThreadAxis::BlockZ,
        ThreadAxis::ThreadX,
        ThreadAxis::ThreadY,
        ThreadAxis::ThreadZ,
    ];

    /// CUDA's spelling, `blockIdx.x`.
    pub const fn as_str(self) -> &'static str {
        match self {
            ThreadAxis::BlockX => "blockIdx.x",
            ThreadAxis::BlockY => "blockIdx.y",
            ThreadAxis::BlockZ => "blockIdx.z",
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
        match self {
            ThreadAxis::BlockX | ThreadAxis::BlockY | ThreadAxis::BlockZ => false,
            ThreadAxis::ThreadX | ThreadAxis::ThreadY | ThreadAxis::ThreadZ => true,
        }
    }
}
