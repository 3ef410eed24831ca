//! What has no counterpart on the other side, and why.

use schedule::Step;

/// Why an instruction of TVM's has no step, and what to do instead.
pub(super) fn of_instruction(kind: &str) -> (&'static str, &'static str) {
    match kind {
        "Tensorize" => (
            "intrinsics are described differently",
            "`tensorize` by hand: `tilewright explain` lists intrinsics",
        ),
        "TransformLayout" | "TransformBlockLayout" => (
            "its map is a function of TVM's",
            "write it as an expression: `tilewright explain transform_layout`",
        ),
        "ReorderBlockIterVar" => ("iterators of a block have no order here", "leave the instruction out"),
        "RollingBuffer" => {
            ("there are no rolling buffers", "a pipeline keeps what its iterations share in slots")
        }
        "LoopPartition" => ("lowering partitions loops by itself", "leave the instruction out"),
        "Unannotate" => ("what is asked is not taken back", "leave out the `Annotate` before it"),
        "UnsafeSetDType" => ("types are what the program says", "change the program"),
        "ReindexCacheRead" | "ReindexCacheWrite" | "CacheIndex" | "CacheInplace" => {
            ("there is no such copy", "`cache_read`, `cache_write` and `reindex` make copies")
        }
        "AnnotateBufferAccess" => ("regions are derived, and not told", "leave the instruction out"),
        "ReadAt" | "WriteAt" => ("it is several steps here", "`cache_read`, then `compute_at`"),
        "FuseReductionEpilogue" => {
            ("there is no such step", "`reverse_compute_at` puts the epilogue behind the sum")
        }
        "UnsafeHideBufferAccess" => ("no access is hidden here", "leave the instruction out"),
        _ => ("there is no step for it", "write what it does as steps: `tilewright explain` lists them"),
    }
}

/// Why a step has no instruction of TVM's, and what to do.
pub(super) fn of_step(step: &Step) -> (&'static str, &'static str) {
    match step {
        Step::Tensorize(_) => {
            ("TVM describes its intrinsics itself", "export the program: `show --emit tvmscript`")
        }
        Step::TransformLayout(_) | Step::TransformBlockLayout(_) => {
            ("in TVM its map is a function of Python's", "export the program: `show --emit tvmscript`")
        }
        Step::PadEinsum(_) => ("TVM's pads with zeros, in copies of its own", "leave out `edge` and `reuse`"),
        _ => ("TVM has no such primitive", "export the program: `show --emit tvmscript`"),
    }
}
