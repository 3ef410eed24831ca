//! What `tutorial --json` tells beside the table of all.

use schemars::JsonSchema;
use serde::Serialize;
use tuner::{Ratio, Record};

use crate::{
    constant::True,
    diagnostic::Diagnostic,
    ladder::rung_view::RungView,
    term::{report::Report, shell::Shell},
};

/// A rung at a size, measured.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "a rung")]
pub(crate) struct RungLine<'a> {
    /// Whether the numbers are right, and there is a time.
    pub(super) ok: bool,
    #[serde(flatten)]
    pub(super) view: &'a RungView,
    /// The size.
    pub(super) size: &'a str,
    /// How many times as fast as the rung below, round by round.
    pub(super) versus_below: Option<Ratio>,
    /// The line that `--log` appends.
    pub(super) record: &'a Record,
}

/// The last line of a ladder on the virtual GPU.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "the last line on the virtual GPU")]
pub(crate) struct ShownOnVirtualGpu<'a> {
    pub(super) ok: True,
    /// The ladder.
    pub(super) ladder: &'a str,
}

impl Report for ShownOnVirtualGpu<'_> {
    fn print(&self, _: &mut Shell<'_>) -> Result<(), Diagnostic> {
        Ok(())
    }
}
