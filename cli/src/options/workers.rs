//! The flags about workers that `tune`, `resume` and `replay` share.

use clap::builder::{RangedU64ValueParser, TypedValueParser};

use crate::tuning::{MAX_COMPILERS, Workers};

/// The processes that compile and measure.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct WorkerArgs {
    /// How many processes compile, by default one for each core; at most 256
    #[arg(long = "workers", value_name = "NUMBER", value_parser = compilers())]
    compilers: Option<usize>,
    /// The GPUs to measure on
    #[arg(long, value_name = "NUMBER", default_value = "0", value_delimiter = ',')]
    device: Vec<u32>,
    /// A command that is started instead of the process that measures: any program that speaks the protocol of
    /// `tilewright worker`, such as `ssh host tilewright worker`
    #[arg(long, value_name = "COMMAND")]
    worker_cmd: Vec<String>,
}

impl WorkerArgs {
    /// What they ask for.
    pub(crate) fn workers(&self) -> Workers {
        let WorkerArgs { compilers, device, worker_cmd } = self.clone();
        Workers { compilers, device, worker_cmd, own: vec![] }
    }
}

fn compilers() -> impl TypedValueParser<Value = usize> {
    RangedU64ValueParser::<usize>::new().range(1..=MAX_COMPILERS as u64)
}
