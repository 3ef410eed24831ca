//! Why blocks of threads cannot reduce together: data with names. Only the command line renders it.

use ir::{Name, ThreadAxis};

/// Why blocks of threads cannot reduce over a loop together.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the message of each variant says what its fields are")]
pub enum CrossBlockError {
    #[error("no block reduces over loop `{name}`")]
    NotReduced { name: Name },
    #[error("blocks of threads reduce over loop `{name}`, and `{}` is an axis of the threads of one", axis.as_str())]
    Axis { name: Name, axis: ThreadAxis },
    #[error("block `{block}` reduces over loop `{name}` into `{buffer}`, which is not in global memory")]
    Scope { name: Name, block: Name, buffer: Name },
    #[error("block `{block}` does not only add to `{buffer}` in a way that memory can do in one step")]
    NotAtomic { block: Name, buffer: Name },
}

ir::codes!(CrossBlockError {
    NotReduced = 1401,
    Axis = 1402,
    Scope = 1403,
    NotAtomic = 1404,
});

impl CrossBlockError {
    /// The names in the script and in the program that the message is about; the first is the culprit.
    pub fn names(&self) -> Vec<&Name> {
        use CrossBlockError as E;
        match self {
            E::NotReduced { name } | E::Axis { name, .. } => vec![name],
            E::Scope { name, block, buffer } => vec![name, block, buffer],
            E::NotAtomic { block, buffer } => vec![block, buffer],
        }
    }

    /// What to try instead.
    pub const fn help(&self) -> &'static str {
        use CrossBlockError as E;
        match self {
            E::NotReduced { .. } => "bind it: this is for loops whose iterations add to the same elements",
            E::Axis { .. } => "bind it to blockIdx.x, blockIdx.y or blockIdx.z",
            E::Scope { .. } => {
                "let each block have its own partial results by rfactor, and add those in global memory"
            }
            E::NotAtomic { .. } => "use the mechanism `semaphore`, or a sum of f32, f64, i32 or u32",
        }
    }
}
