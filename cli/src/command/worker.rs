//! `tilewright worker`.

use std::io;

use tuner::worker::{Device, DeviceHandler, WorkerLimits, claim_output, prepare, serve};

use crate::{diagnostic::Diagnostic, usage_error::UsageError};

/// Do jobs that come as lines of JSON on standard input: what `tune` starts
#[derive(Debug, clap::Args)]
pub(crate) struct Worker {
    /// What to measure on: the number of a GPU, or cpu
    #[arg(long, default_value = "0", value_name = "N|cpu", value_parser = parse_device)]
    device: Device,
    /// Measure nothing, only compile, within limits on memory and processor time
    #[arg(long, conflicts_with = "device")]
    compile_only: bool,
}

fn parse_device(word: &str) -> Result<Device, String> {
    Device::parse(word).ok_or_else(|| "a number, or cpu".to_owned())
}

impl Worker {
    pub(crate) fn run(&self) -> Result<(), Diagnostic> {
        let (device, limits) = if self.compile_only {
            (Device::None, WorkerLimits::Compile)
        } else {
            (self.device, WorkerLimits::Measure)
        };
        prepare(limits);
        let mut output = claim_output()?;
        serve(io::stdin(), &mut output, &mut DeviceHandler::new(device))
            .map_err(|err| Diagnostic::failed(UsageError::Process, err.to_string()))
    }
}
