//! `tilewright worker`.

use tuner::worker::Device;

use crate::{diagnostic::Diagnostic, worker::Job};

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
        if self.compile_only { Job::Compile } else { Job::Measure(self.device) }.serve()
    }
}
