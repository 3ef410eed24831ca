//! What to try instead of what cannot be lowered.

use ir::ThreadAxis;

use super::LowerError;

/// What helps where a loop is too long, or as long as nobody knows, for an axis of threads.
const SPLIT: &str = "split the loop by a constant and bind the inner part";

impl LowerError {
    /// What to try instead, if there is one thing to say.
    pub fn help(&self) -> Option<String> {
        let help = match self {
            LowerError::Unbound { .. } => "split a loop and bind its parts to blockIdx.x and threadIdx.x",
            LowerError::BoundOnCpu { .. } => "use `parallel` on the cpu, or lower for the target `cuda`",
            LowerError::AxisTwice { .. } => "bind the inner loop to another axis",
            LowerError::ThreadExtent { .. } => SPLIT,
            LowerError::GridExtent { .. } => "bind a loop whose extent depends on dimensions only",
            LowerError::ReservedName { .. } => "give it another name",
            LowerError::SpansKernels { .. } => {
                "set its scope to global, or compute it at its consumer's loop"
            }
            LowerError::NotConstant { .. } => "split the loops it is computed for by constants",
            LowerError::SwizzleChunk { .. } => "swizzle it with a mode, or with `base: 4`",
            LowerError::SwizzleRows { .. } => {
                "swizzle it with the mode `auto`, or make its rows longer with storage_align"
            }
            LowerError::TooManyRegisters { .. } => {
                "give the roles fewer `registers`: what one takes more of, the others have to leave"
            }
            LowerError::ClusterTooLarge { .. }
            | LowerError::NoClusters { .. }
            | LowerError::ClusterParts { .. }
            | LowerError::ClusterMeets { .. } => return self.help_on_clusters().map(str::to_owned),
            LowerError::TooManyThreads { .. } => "bind loops of smaller extents to threadIdx axes",
            LowerError::AxisTooLong { axis: ThreadAxis::BlockX, .. } => {
                "split the loop, and bind a part of it to blockIdx.y"
            }
            LowerError::AxisTooLong { axis, .. } if axis.is_thread() => SPLIT,
            LowerError::AxisTooLong { .. } => "bind the longest loop to blockIdx.x",
            LowerError::SharedTooLarge { .. } => "use smaller tiles or fewer pipeline stages",
            LowerError::Exchange { axis, scope, .. } => exchange_help(*axis, scope),
            LowerError::Race { .. } => "bind only loops over which each iteration writes its own elements",
            LowerError::ThreadReduction { .. } => "let `rfactor` make partial results, and bind their loop",
            LowerError::TurnsRepeat { .. } => {
                "put the loop around it inside; where it is no reduction, bind it to a blockIdx axis instead"
            }
            LowerError::NotInTurn { .. } => "apply `ping_pong` last, and to products by `wgmma`",
            LowerError::NotClaimed { help, .. } => help,
            LowerError::GridShared { .. } => "let each of them have a kernel of its own",
            LowerError::ParallelRace { .. } => {
                "compute the buffer inside the parallel loop, in a constant size or each iteration in elements of its own"
            }
            LowerError::DivergentLoop { .. } => "give the loop an extent that is the same for all threads",
            LowerError::Fragment(err) => return err.help().map(str::to_owned),
            LowerError::IntrinsicArch { .. } => "choose such a target by `--target`",
            LowerError::LaneLoop { .. }
            | LowerError::LaneCount { .. }
            | LowerError::RowAlignment { .. }
            | LowerError::OperandLayout { .. }
            | LowerError::MatrixLoad { .. }
            | LowerError::TileAlignment { .. }
            | LowerError::OtherLane { .. }
            | LowerError::TensorMemoryTouched { .. }
            | LowerError::TensorMemoryTile { .. }
            | LowerError::TensorMemoryFull { .. }
            | LowerError::Pair { .. } => return self.help_on_tensors().map(str::to_owned),
            LowerError::Pipeline(err) => return err.help(),
            LowerError::Phase(err) => return Some(err.help().to_owned()),
        };
        Some(help.to_owned())
    }

    /// The same of clusters.
    const fn help_on_clusters(&self) -> Option<&'static str> {
        Some(match self {
            LowerError::ClusterTooLarge { .. } => "bind loops of smaller extents to the axes of the cluster",
            LowerError::NoClusters { .. } => {
                "bind the loop to a blockIdx axis, or choose a later target by `--target`"
            }
            LowerError::ClusterParts { .. } => {
                "each block has the elements of one subscript: bind the loop over the first dimension, and no other, to an axis of the cluster"
            }
            LowerError::ClusterMeets { .. } => {
                "give each tile a cluster of its own, without `persistent`, or all warps the same to do, without `warp_specialize`"
            }
            _ => return None,
        })
    }

    /// The same of tensor intrinsics and their memory.
    fn help_on_tensors(&self) -> Option<&'static str> {
        Some(match self {
            LowerError::LaneLoop { .. } => "number the warps by threadIdx.y and threadIdx.z",
            LowerError::LaneCount { .. } => {
                "bind loops of extent 32 to threadIdx.x, and number the warps by threadIdx.y and threadIdx.z"
            }
            LowerError::RowAlignment { .. } => {
                "let the last dimension of the shared buffer be the one that is loaded in rows, and pad by multiples of 16 bytes"
            }
            LowerError::OperandLayout { help, .. } | LowerError::Pair { help, .. } => help,
            LowerError::MatrixLoad { error, .. } => error.help(),
            LowerError::TileAlignment { .. } => "split the loops of the tile by multiples of its size",
            LowerError::OtherLane { .. } => {
                "tensorize its loops over a tile with `lanes_m16n8`, or whichever `lanes_` intrinsic has the fragment's map"
            }
            LowerError::TensorMemoryTouched { .. } => {
                "cache_read it with the scope `fragment`, and tensorize that copy by `tcgen05_ld`"
            }
            LowerError::TensorMemoryTile { .. } => {
                "let the last two dimensions of the buffer be the rows and columns of its tiles"
            }
            LowerError::TensorMemoryFull { .. } => {
                "use tiles of fewer columns, or fewer slots: each takes a column for every 128 elements"
            }
            _ => return None,
        })
    }
}

/// What to try instead of data that threads or blocks cannot exchange.
fn exchange_help(axis: ThreadAxis, scope: &str) -> &'static str {
    match scope {
        _ if axis.is_thread() => "set the scope of the buffer to shared",
        "global" => {
            "compute the producer in a nest of its own, or set the scope of a temporary to shared: each block then has its own"
        }
        _ => "compute the producer at the same blockIdx loop, or in its own nest",
    }
}
