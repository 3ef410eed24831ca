//! Why blocks of threads cannot reduce together: data with names. Only the command line renders it.

use ir::{Name, ThreadAxis};

use crate::{Blame, error_table::error_table};

error_table! {
    /// Why blocks of threads cannot reduce over a loop together.
    pub enum CrossBlockError {
        1401 NotReduced { name: Name }
            ("no block reduces over loop `{name}`")
            names [name]
            help "bind it: this is for loops whose iterations add to the same elements";
        1402 Axis { name: Name, axis: ThreadAxis }
            ("blocks of threads reduce over loop `{name}`, and `{}` is an axis of the threads of one", axis.as_str())
            names [name]
            help "bind it to blockIdx.x, blockIdx.y or blockIdx.z";
        1403 Scope { name: Name, block: Name, buffer: Name }
            ("block `{block}` reduces over loop `{name}` into `{buffer}`, which is not in global memory")
            names [name, block, buffer]
            help "let each block have its own partial results by rfactor, and add those in global memory";
        1404 NotAtomic { block: Name, buffer: Name }
            ("block `{block}` does not only add to `{buffer}` in a way that memory can do in one step")
            names [block, buffer]
            at [Blame::Field("loop")]
            help "use the mechanism `semaphore`, or a sum of f32, f64, i32 or u32";
    }
}
