//! What can be wrong with a lowered program.

use crate::{DType, Index, Name, Participants, Scope, ThreadAxis};

/// An invariant of the lowered form that does not hold: see [`super::verify_module`].
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("kernel `{kernel}`: {kind}")]
pub struct KernelError {
    /// The kernel, or the module where it is about all of them.
    pub kernel: Name,
    /// What is wrong.
    pub kind: KernelErrorKind,
}

/// What is wrong with a lowered program.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name them")]
pub enum KernelErrorKind {
    #[error("`{name}` is no identifier, or stands for something else here already")]
    Name { name: Name },
    #[error("`{at}` speaks of `{var}`, which nothing around it stands for")]
    Variable { at: Name, var: Name },
    #[error("`{buffer}` is neither an argument of it nor allocated here")]
    Buffer { buffer: Name },
    #[error("`{buffer}` is written, and is an input or not marked `mut`")]
    Written { buffer: Name },
    #[error("`{}` has the extent `{extent}`, which is no positive constant of threads or of a cluster, and not over the dimensions", axis.as_str())]
    Axis { axis: ThreadAxis, extent: Index },
    #[error("`{instr}` goes along `{}`, which is no axis of the launch, or is named twice", axis.as_str())]
    Along { instr: &'static str, axis: ThreadAxis },
    #[error("`{var}` runs on the threads of a CPU, and the kernel on a GPU")]
    Parallel { var: Name },
    #[error("`{var}` starts at {start}, and has the slots 0 to {count} without the last")]
    Counter { var: Name, start: i64, count: i64 },
    #[error("`{buffer}` is not local, and so no variable")]
    Register { buffer: Name },
    #[error("an `if` has no conditions")]
    NoCondition,
    #[error("`{buffer}` has no elements")]
    Empty { buffer: Name },
    #[error("`{buffer}` does not start at a multiple of its alignment, which is a power of two")]
    Alignment { buffer: Name },
    #[error("memory of the scope `{scope}` cannot be allocated where `{buffer}` is")]
    Place { buffer: Name, scope: Scope },
    #[error("`{buffer}`, which is dealt out to the blocks of a cluster, has no part for each of {blocks}")]
    Parts { buffer: Name, blocks: i64 },
    #[error("{at} divides by a constant below 1")]
    Divisor { at: Name },
    #[error("not all threads of a {} come to a {instr} together", of.as_str())]
    Divergent { instr: &'static str, of: Participants },
    #[error("the {instr} cannot have `{buffer}` as an operand")]
    Operand { instr: &'static str, buffer: Name },
    #[error("`{map}` is no tensor map of an argument that can be, or not of this one")]
    Map { map: Name },
    #[error("`{barrier}` names no mbarriers of the kernel that can be")]
    Mbarrier { barrier: Name },
    #[error("`{role}` is no role of the kernel that can be, or has more than one list of statements")]
    Role { role: Name },
    #[error("the turns of `{of}` are not among two warpgroups of a role or more, or differ within one")]
    Turn { of: Name },
    #[error("of blocks that take over others: {what}")]
    Claims { what: &'static str },
    #[error("beside what its roles do, a kernel has allocations only")]
    BesideRoles,
    #[error("a {instr} is for {}, and others come to it", team(*of))]
    Team { instr: &'static str, of: Participants },
    #[error(
        "a `{instr}` is for a pair of blocks, two along cluster.x, or for its leader and no other product, and here it is not"
    )]
    Pair { instr: &'static str },
    #[error("`{buffer}` has {rank} dimensions, and an access {subscripts} subscripts")]
    Rank { buffer: Name, rank: usize, subscripts: usize },
    #[error("an access of `{buffer}` has no lanes")]
    Lanes { buffer: Name },
    #[error("`{buffer}` holds {dtype}, and another type is assigned to it")]
    Type { buffer: Name, dtype: DType },
}

fn team(of: Participants) -> String {
    match of {
        Participants::Thread => "one thread, below a `leader`".to_owned(),
        _ => format!("all threads of a {} together", of.as_str()),
    }
}
