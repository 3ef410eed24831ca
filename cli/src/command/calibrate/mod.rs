//! `tilewright calibrate`.

pub(crate) mod check;

use std::path::PathBuf;

use ir::{Arch, Target};
use schemars::JsonSchema;
use serde::Serialize;
use tuner::calibrate::{Calibration, Row, calibrate, rows};

use crate::{
    build::open,
    clock::now,
    constant::True,
    diagnostic::Diagnostic,
    ladder::Size,
    new_file,
    term::{report::Report, shell::Shell, table::Table},
};

/// Measure latencies and rates of the GPU at hand, beside the table that pipelines are worked out from
///
/// Small kernels that the tool compiles read the clock of their multiprocessor: loads and copies by where their data are, hand-overs between
/// warps, products of tensor cores by shape and type, bytes a cycle. What the architecture lacks is left out and told.
#[derive(Debug, clap::Args)]
pub(crate) struct Calibrate {
    /// Measure only what begins so: wgmma, box_
    #[arg(long, value_name = "PREFIX", value_delimiter = ',')]
    only: Vec<String>,
    /// Measure the cycles of a script, or of the rungs of a ladder, beside those that are expected of it
    #[arg(long, value_name = "LADDER", conflicts_with_all = ["only", "out"])]
    check: Option<String>,
    /// With `--check`: at this size instead of the scripts': 512 or 512x256x128
    #[arg(long, value_name = "SIZE", requires = "check", value_parser = Size::parse)]
    size: Option<Size>,
    /// Write what was measured into this file, as JSON
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Overwrite the file of `--out`
    #[arg(long, requires = "out")]
    force: bool,
}

/// What was measured, and what the table has.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Calibrated {
    ok: True,
    /// What was measured.
    #[serde(flatten)]
    calibration: Calibration,
    #[serde(skip)]
    rows: Vec<Row>,
    /// The file that it was written to.
    file: Option<String>,
}

impl Calibrate {
    pub(crate) fn run(&self, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
        // Which architecture it is, the GPU says.
        let mut machine = open(&Target::Cuda(Arch { sm: 50, suffix: None }))?;
        if let Some(what) = &self.check {
            return check::check(what, self.size.as_ref(), &mut *machine, shell);
        }
        let calibration = calibrate(&mut *machine, &self.only, now(), &mut |name| {
            shell.progress(&format!("measuring {name}"));
        })?;
        shell.done();
        if let Some(file) = &self.out {
            let mut text = serde_json::to_string_pretty(&calibration).expect("names and numbers");
            text.push('\n');
            new_file::write(file, text.as_bytes(), self.force)?;
        }
        let arch = Arch::parse(&calibration.machine.arch);
        let rows =
            arch.map_or_else(Vec::new, |it| rows(it.caps(), &calibration.measured, calibration.clock_mhz[0]));
        let file = self.out.as_ref().map(|it| it.display().to_string());
        shell.report(&Calibrated { ok: True, calibration, rows, file })
    }
}

impl Report for Calibrated {
    fn print(&self, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
        let it = &self.calibration;
        let clock =
            it.clock_mhz.iter().flatten().map(|it| format!("{it:.0}")).collect::<Vec<_>>().join(" to ");
        let clock = if clock.is_empty() { String::new() } else { format!(", {clock} MHz") };
        shell.say(&format!(
            "{} ({}), {} multiprocessors{clock}",
            it.machine.name, it.machine.arch, it.machine.units
        ))?;
        let mut table = Table::new(["measured", "median", "quartiles", "unit"]);
        for (name, it) in &it.measured {
            let quartiles = format!("{} to {}", short(it.low), short(it.high));
            table.row([name.clone(), short(it.median), quartiles, it.unit.clone()]);
        }
        table.print(shell.out)?;
        for (name, why) in &it.left_out {
            shell.say(&format!("{name}: left out: {why}"))?;
        }
        let mut table = Table::new(["the table's", "is", "here", "ratio", "from"]);
        for it in &self.rows {
            let Some(measured) = it.measured else { continue };
            let ratio = format!("{:.2}", measured / it.committed);
            table.row([it.name.to_owned(), short(it.committed), short(measured), ratio, it.from.to_owned()]);
        }
        table.print(shell.out)?;
        if let Some(file) = &self.file {
            shell.say(&format!("{file}: written"))?;
        }
        Ok(())
    }
}

/// A number with as many digits as it deserves.
fn short(it: f64) -> String {
    if it.abs() < 100.0 { format!("{it:.1}") } else { format!("{it:.0}") }
}
