//! What stops a program from being measured.

use codegen::device::DeviceError;

/// What stops a program from being measured.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum Failure {
    /// The device refused to load or to run it.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// It was compiled for other sizes.
    #[error("the program expects buffers of {program:?} bytes where the workload has {case:?}")]
    Buffers {
        /// The sizes of the program's first buffers.
        program: Vec<usize>,
        /// The sizes of the workload's inputs and outputs.
        case: Vec<usize>,
    },
    /// Its numbers are wrong at once.
    #[error("its numbers are wrong")]
    Wrong,
    /// They differ by more than is allowed, and so do those of the unscheduled program in its own types.
    #[error("its numbers differ by more than is allowed, and without a schedule they do as well")]
    IllConditioned,
    /// Its numbers were right once and then wrong: it races, or depends on what was there before.
    #[error("its numbers are wrong after timing, though they were right before")]
    WrongAfterTiming,
    /// It ran but the machine reported no time.
    #[error("the machine reports that it took no time")]
    NoTime,
}

ir::codes!(Failure {
    Buffers = 3111,
    Wrong = 3112,
    WrongAfterTiming = 3113,
    NoTime = 3114,
    IllConditioned = 3115,
} of { Device });

impl Failure {
    /// What to do about it, if there is one thing to say.
    pub fn help(&self) -> Option<String> {
        match self {
            Failure::Device(err) => err.help(),
            Failure::IllConditioned => Some(
                "compute it in types of more digits or in another way, or let the workload say how far its numbers may be: \
                 `tolerance: 1e-3`"
                    .to_owned(),
            ),
            Failure::Buffers { .. } | Failure::Wrong | Failure::WrongAfterTiming | Failure::NoTime => None,
        }
    }
}
