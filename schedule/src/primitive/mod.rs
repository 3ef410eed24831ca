//! The primitives, one a file: a serde struct whose `apply` first refuses and then rewrites.

mod add_unit_loop;
pub(crate) mod annotate;
mod bind;
mod blockize;
mod builders;
mod cache_read;
mod cache_write;
mod cluster_launch_control;
mod compute_at;
mod compute_inline;
mod cross_block_reduction;
mod decompose_padding;
mod decompose_reduction;
mod decompose_scan;
mod double_buffer_scope;
mod fuse;
mod mark;
mod merge;
mod pad_einsum;
mod parallel;
mod persistent;
mod ping_pong;
mod rasterize;
mod reindex;
mod remove_no_op;
mod reorder;
mod reverse;
mod reverse_compute_at;
mod reverse_compute_inline;
mod rfactor;
mod rolling_scan;
mod rolling_update;
mod set_scope;
mod software_pipeline;
mod software_pipeline_across;
mod software_pipeline_async_stages;
mod software_pipeline_order;
mod software_pipeline_stage;
mod split;
mod storage_align;
mod swizzle;
mod tensorize;
mod transform_block_layout;
mod transform_layout;
mod unroll;
mod vectorize;
mod warp_specialize;

pub use add_unit_loop::AddUnitLoop;
pub use annotate::{Annotate, AnnotationValue};
pub use bind::Bind;
pub use blockize::Blockize;
pub use builders::IntoField;
pub use cache_read::CacheRead;
pub use cache_write::CacheWrite;
pub use cluster_launch_control::ClusterLaunchControl;
pub use compute_at::ComputeAt;
pub use compute_inline::ComputeInline;
pub use cross_block_reduction::CrossBlockReduction;
pub use decompose_padding::DecomposePadding;
pub use decompose_reduction::DecomposeReduction;
pub use decompose_scan::DecomposeScan;
pub use double_buffer_scope::DoubleBufferScope;
pub use fuse::Fuse;
pub use merge::Merge;
pub use pad_einsum::{PadEinsum, Padding};
pub use parallel::Parallel;
pub use persistent::Persistent;
pub use ping_pong::PingPong;
pub use rasterize::Rasterize;
pub use reindex::Reindex;
pub use remove_no_op::RemoveNoOp;
pub use reorder::Reorder;
pub use reverse::Reverse;
pub use reverse_compute_at::ReverseComputeAt;
pub use reverse_compute_inline::ReverseComputeInline;
pub use rfactor::Rfactor;
pub use rolling_scan::RollingScan;
pub use rolling_update::RollingUpdate;
pub use set_scope::SetScope;
pub use software_pipeline::SoftwarePipeline;
pub use software_pipeline_across::SoftwarePipelineAcross;
pub use software_pipeline_async_stages::{Forced, SoftwarePipelineAsyncStages};
pub use software_pipeline_order::{Order, SoftwarePipelineOrder};
pub use software_pipeline_stage::{SoftwarePipelineStage, Stages};
pub use split::Split;
pub use storage_align::StorageAlign;
pub use swizzle::Swizzle;
pub use tensorize::Tensorize;
pub use transform_block_layout::TransformBlockLayout;
pub use transform_layout::TransformLayout;
pub use unroll::Unroll;
pub use vectorize::Vectorize;
pub use warp_specialize::WarpSpecialize;

use serde::{Deserialize, Serialize};

use crate::{Number, ScheduleError, ScheduleState};
use mark::{annotate_block, annotate_loop, mark};

/// The word that takes one of several lists of steps: [`Choose`](crate::Choose).
pub(crate) const CHOOSE: &str = "choose";

/// The word that repeats steps, of [`procedure`](crate::procedure).
pub(crate) const FOR_EACH: &str = "for_each";

/// The word that takes steps under a condition: [`When`](crate::When).
pub(crate) const WHEN: &str = "when";

/// A checked rewrite.
pub trait Primitive {
    /// Rewrites the program, or refuses. What it leaves behind on refusal is thrown away by the session.
    fn apply(&self, state: &mut ScheduleState) -> Result<(), ScheduleError>;

    /// Whether an iteration of some loop may do other work afterwards, or keep its data elsewhere: then loops that
    /// run in parallel are checked again. Steps that only mark, cut or reorder loops say no.
    fn moves_work(&self) -> bool {
        true
    }

    /// The places where an expression may stand, so that a script can put its value there.
    fn numbers(&mut self) -> Vec<&mut Number> {
        vec![]
    }
}

/// One step of a schedule.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "each variant holds the type that documents it")]
pub enum Step {
    AddUnitLoop(AddUnitLoop),
    Annotate(Annotate),
    Bind(Bind),
    Blockize(Blockize),
    CacheRead(CacheRead),
    CacheWrite(CacheWrite),
    ClusterLaunchControl(ClusterLaunchControl),
    ComputeAt(ComputeAt),
    ComputeInline(ComputeInline),
    CrossBlockReduction(CrossBlockReduction),
    DecomposePadding(DecomposePadding),
    DecomposeReduction(DecomposeReduction),
    DecomposeScan(DecomposeScan),
    DoubleBufferScope(DoubleBufferScope),
    Fuse(Fuse),
    Merge(Merge),
    PadEinsum(PadEinsum),
    Parallel(Parallel),
    Persistent(Persistent),
    PingPong(PingPong),
    Rasterize(Rasterize),
    Reindex(Reindex),
    RemoveNoOp(RemoveNoOp),
    Reorder(Reorder),
    Reverse(Reverse),
    ReverseComputeAt(ReverseComputeAt),
    ReverseComputeInline(ReverseComputeInline),
    Rfactor(Rfactor),
    RollingScan(RollingScan),
    RollingUpdate(RollingUpdate),
    SetScope(SetScope),
    SoftwarePipeline(SoftwarePipeline),
    SoftwarePipelineAcross(SoftwarePipelineAcross),
    SoftwarePipelineAsyncStages(SoftwarePipelineAsyncStages),
    SoftwarePipelineOrder(SoftwarePipelineOrder),
    SoftwarePipelineStage(SoftwarePipelineStage),
    Split(Split),
    StorageAlign(StorageAlign),
    Swizzle(Swizzle),
    Tensorize(Tensorize),
    TransformBlockLayout(TransformBlockLayout),
    TransformLayout(TransformLayout),
    Unroll(Unroll),
    Vectorize(Vectorize),
    WarpSpecialize(WarpSpecialize),
}

/// The source of each primitive, whose first doc comment is its manual; in alphabetical order. The build script makes of it what each
/// has in common: its builder, its arms.
pub(crate) const SOURCES: &[(&str, &str)] = &[
    ("add_unit_loop", include_str!("add_unit_loop.rs")),
    ("annotate", include_str!("annotate.rs")),
    ("bind", include_str!("bind.rs")),
    ("blockize", include_str!("blockize.rs")),
    ("cache_read", include_str!("cache_read.rs")),
    ("cache_write", include_str!("cache_write.rs")),
    ("cluster_launch_control", include_str!("cluster_launch_control.rs")),
    ("compute_at", include_str!("compute_at.rs")),
    ("compute_inline", include_str!("compute_inline.rs")),
    ("cross_block_reduction", include_str!("cross_block_reduction.rs")),
    ("decompose_padding", include_str!("decompose_padding.rs")),
    ("decompose_reduction", include_str!("decompose_reduction.rs")),
    ("decompose_scan", include_str!("decompose_scan.rs")),
    ("double_buffer_scope", include_str!("double_buffer_scope.rs")),
    ("fuse", include_str!("fuse.rs")),
    ("merge", include_str!("merge.rs")),
    ("pad_einsum", include_str!("pad_einsum.rs")),
    ("parallel", include_str!("parallel.rs")),
    ("persistent", include_str!("persistent.rs")),
    ("ping_pong", include_str!("ping_pong.rs")),
    ("rasterize", include_str!("rasterize.rs")),
    ("reindex", include_str!("reindex.rs")),
    ("remove_no_op", include_str!("remove_no_op.rs")),
    ("reorder", include_str!("reorder.rs")),
    ("reverse", include_str!("reverse.rs")),
    ("reverse_compute_at", include_str!("reverse_compute_at.rs")),
    ("reverse_compute_inline", include_str!("reverse_compute_inline.rs")),
    ("rfactor", include_str!("rfactor.rs")),
    ("rolling_scan", include_str!("rolling_scan.rs")),
    ("rolling_update", include_str!("rolling_update.rs")),
    ("set_scope", include_str!("set_scope.rs")),
    ("software_pipeline", include_str!("software_pipeline.rs")),
    ("software_pipeline_across", include_str!("software_pipeline_across.rs")),
    ("software_pipeline_async_stages", include_str!("software_pipeline_async_stages.rs")),
    ("software_pipeline_order", include_str!("software_pipeline_order.rs")),
    ("software_pipeline_stage", include_str!("software_pipeline_stage.rs")),
    ("split", include_str!("split.rs")),
    ("storage_align", include_str!("storage_align.rs")),
    ("swizzle", include_str!("swizzle.rs")),
    ("tensorize", include_str!("tensorize.rs")),
    ("transform_block_layout", include_str!("transform_block_layout.rs")),
    ("transform_layout", include_str!("transform_layout.rs")),
    ("unroll", include_str!("unroll.rs")),
    ("vectorize", include_str!("vectorize.rs")),
    ("warp_specialize", include_str!("warp_specialize.rs")),
];

/// The names of all primitives, in alphabetical order.
pub fn names() -> impl Iterator<Item = &'static str> {
    SOURCES.iter().map(|(name, _)| *name)
}

/// The sources of what stands among steps and is none, in alphabetical order.
const FORMS: &[(&str, &str)] = &[
    (CHOOSE, include_str!("../space/item.rs")),
    (FOR_EACH, include_str!("../procedure/for_each.rs")),
    (WHEN, include_str!("../space/when.rs")),
];

/// The words that stand among steps and hold lists of steps. In alphabetical order.
pub fn forms() -> impl Iterator<Item = &'static str> {
    FORMS.iter().map(|(name, _)| *name)
}

/// The manual of a primitive or of one of the [`forms`]: the doc comment of its type, as Markdown. Its first ```` ```text ````
/// block is the rewrite rule.
pub fn explain(name: &str) -> Option<String> {
    let (_, source) = SOURCES.iter().chain(FORMS).find(|(it, _)| *it == name)?;
    let lines = source.lines().skip_while(|it| !it.starts_with("///"));
    let doc = lines.map_while(|it| it.strip_prefix("///")).map(|it| it.strip_prefix(' ').unwrap_or(it));
    Some(doc.collect::<Vec<_>>().join("\n"))
}
