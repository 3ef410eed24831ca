//! Which types the lines of each command are of.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use tuner::{Record, log::Entry};

use crate::{
    command::{
        auto, calibrate, check, compare, completions, doctor, explain, export, fmt, import, learn, log, man,
        report, run, show, studio, top, tune, tutorial,
    },
    diagnostic::ErrorReport,
    ladder, replaying, timeline, virtual_gpu,
};

/// A document: what the lines of a command are of.
pub(super) struct Document {
    /// The command, or what else is described.
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) about: &'static str,
    /// The types, one for each sort of line; a command may also print an error.
    pub(super) types: Vec<fn(&mut SchemaGenerator) -> Schema>,
}

impl Document {
    /// Whether a line may be an error.
    pub(super) fn is_command(&self) -> bool {
        self.title.starts_with("tilewright ")
    }
}

fn of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

macro_rules! documents {
    ($($name:literal, $title:literal, $about:literal: $($type:ty),+;)*) => {
        vec![$(Document { name: $name, title: $title, about: $about, types: vec![$(of::<$type>),+] }),*]
    };
}

/// All documents. A definition that several need stands in the first of them.
pub(super) fn documents() -> Vec<Document> {
    documents! {
        "error", "An error", "The last line of any command with --json that does not do what it was asked for.": ErrorReport;
        "record", "A record", "What was measured of one program: a line of the files that `run --log` and `tutorial` write.": Record;
        "log", "tilewright log", "`log cat` prints entries of the log as they stand there, `log verify` a line for each that is damaged or for \
            a segment that is not read, and a last line, `log merge` and `log pack` a line for each segment, `log export --out` where it wrote to.":
            Entry, log::verify::DamagedLine, log::verify::Verified<'static>, log::segments::MergedSegment, log::segments::PackedSegment, log::Exported<'static>;
        "run", "tilewright run", "What was measured; one line for each combination of dimensions where there are several.":
            run::RunReport<'static>, run::sweep::AtValues<'static>, virtual_gpu::VirtualRun<'static>;
        "auto", "tilewright auto", "The schedule and why it is so.": auto::FirstSchedule<'static>;
        "calibrate", "tilewright calibrate", "What was measured of the GPU; with `--check` the cycles of scripts.":
            calibrate::Calibrated, calibrate::check::CycleCheck;
        "check", "tilewright check", "Whether every step is legal and the result can be lowered.": check::Checked<'static>;
        "compare", "tilewright compare", "The comparison on one line; if a verdict is not wanted, an error after it.":
            compare::data::Compared<'static>, compare::counted::CountersCompared<'static>;
        "completions", "tilewright completions", "The script for a shell.": completions::Script;
        "doctor", "tilewright doctor", "All checks on one line.": doctor::Checks;
        "explain", "tilewright explain", "The page of a code, the manual of a primitive, a procedure, a library or an intrinsic, or what there is.":
            explain::code::Page, explain::PrimitiveManual<'static>, explain::procedure::ProcedureManual, explain::procedure::LibraryManual,
            explain::intrinsic::Manual, explain::All, explain::AllCodes;
        "export", "tilewright export", "What is in the bundle.": export::Bundle<'static>;
        "fmt", "tilewright fmt", "What became of each file; if `--check` finds something, an error after it.": fmt::Formatted;
        "import", "tilewright import", "The program or the script that was read.": import::ImportedText<'static>;
        "learn", "tilewright learn", "A line for each exercise that was looked at, and a last one.":
            learn::report::Checked<'static>, learn::report::Listed<'static>, learn::report::AsHandedOut<'static>,
            learn::report::Speed<'static>, learn::report::Standing<'static>, learn::report::HintsSoFar<'static>,
            learn::report::OwnDiff<'static>, learn::report::OurSolution<'static>, learn::report::Reset<'static>,
            learn::report::Init<'static>;
        "lsp", "tilewright lsp", "Nothing but an error: what an editor is told is said by the Language Server Protocol.": ErrorReport;
        "man", "tilewright man", "A page, or which pages were written.": man::OnePage, man::WrittenPages<'static>;
        "replay", "tilewright replay", "A line for each run of the log.": replaying::Replayed;
        "report", "tilewright report", "Where the page is.": report::Written;
        "resume", "tilewright resume", "As `tune`: each entry that is added, then what came out.": Entry, tune::show::Outcome<'static>;
        "schema", "tilewright schema", "One schema, or all by their names.": super::One<'static>, super::All;
        "show", "tilewright show", "One line, with `--emit diff` one for each step.":
            show::form::Form<'static>, show::steps::StepDiff<'static>, show::deps::DepsReport<'static>, show::html::Written<'static>,
            timeline::show::Timelines<'static>, show::resources::ResourcesReport, show::space::SpaceReport;
        "studio", "tilewright studio", "Where the page is, once it can be asked for.": studio::Serving<'static>;
        "top", "tilewright top", "A line for each workload and machine.": top::Group<'static>;
        "tune", "tilewright tune", "Each entry of the log once it is on the disk, then what came out.": Entry, tune::show::Outcome<'static>;
        "tutorial", "tilewright tutorial", "A line for each rung at each size, then a last one for all; with `list` a line for each ladder, with \
            `--ablate` one for each step.":
            tutorial::lines::RungLine<'static>, ladder::report::LadderSummary<'static>, tutorial::lines::ShownOnVirtualGpu<'static>,
            tutorial::list::ShippedLadder, tutorial::list::LadderCount, tutorial::ablate::LeftOut<'static>,
            tutorial::ablate::Ablated<'static>, virtual_gpu::VirtualRun<'static>;
    }
}
