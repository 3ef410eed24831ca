//! All codes there are.

use std::collections::BTreeSet;

use codegen::{
    LaunchError,
    device::DeviceError,
    emit::EmitError,
    lower::{LowerError, PhaseError},
    vgpu::{Finding, VgpuError},
};
use ir::{
    Code, InterpError, VerifyErrorKind, intrin::FragmentError, pipeline::PipelineError, text::ParseErrorKind,
};
use schedule::{
    BlockError, CrossBlockError, LayoutError, RoleError, ScheduleError, ScriptProblem, TileError,
    workload::Problem,
};
use tuner::{
    CaseError, Failure,
    log::{ExportError, LogError},
    pool::PoolError,
    replay::HeadError,
    tune::TuneError,
};

use crate::{kernel::CallError, usage_error::UsageError};

/// The codes of all refusals, in order. `tilewright explain` has a page for each.
pub fn codes() -> BTreeSet<Code> {
    let tables = [
        ScriptProblem::CODES,
        Problem::CODES,
        ParseErrorKind::CODES,
        VerifyErrorKind::CODES,
        InterpError::CODES,
        FragmentError::CODES,
        ScheduleError::CODES,
        BlockError::CODES,
        LayoutError::CODES,
        TileError::CODES,
        CrossBlockError::CODES,
        RoleError::CODES,
        PipelineError::CODES,
        LowerError::CODES,
        PhaseError::CODES,
        EmitError::CODES,
        LaunchError::CODES,
        VgpuError::CODES,
        Finding::CODES,
        DeviceError::CODES,
        CaseError::CODES,
        Failure::CODES,
        LogError::CODES,
        TuneError::CODES,
        PoolError::CODES,
        HeadError::CODES,
        ExportError::CODES,
        UsageError::CODES,
        CallError::CODES,
        #[cfg(feature = "cli")]
        crate::tvm::ImportProblem::CODES,
        #[cfg(feature = "cli")]
        crate::tvm::Unwritable::CODES,
        #[cfg(feature = "cli")]
        crate::tvm::TraceError::CODES,
    ];
    tables.into_iter().flatten().copied().collect()
}
