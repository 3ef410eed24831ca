//! The flags about workers that `tune`, `resume` and `replay` share.

use std::env;

use clap::builder::{RangedU64ValueParser, TypedValueParser};

use crate::{
    cluster::Cluster,
    tuning::{MAX_COMPILERS, Workers},
};

/// The processes that compile and measure.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct WorkerArgs {
    /// How many processes compile, by default one for each core; at most 256
    #[arg(long = "workers", value_name = "NUMBER", value_parser = count())]
    compilers: Option<usize>,
    /// The GPUs to measure on
    #[arg(long, value_name = "NUMBER", default_value = "0", value_delimiter = ',', conflicts_with = "on")]
    device: Vec<u32>,
    /// A command that is started instead of the process that measures: any program that speaks the protocol of
    /// `tilewright worker`, such as `ssh host tilewright worker` or `srun -n1 --gres=gpu:1 tilewright worker`
    #[arg(long, value_name = "COMMAND")]
    worker_cmd: Vec<String>,
    /// A command that is started instead of each process that compiles, as `srun -n1 tilewright worker --compile-only`
    #[arg(long, value_name = "COMMAND")]
    compile_cmd: Option<String>,
    /// A Ray cluster whose processes compile and measure: ray://HOST:PORT, ray://auto (that of this machine), or ray://local
    /// (one for this run)
    #[arg(long, value_name = "ADDRESS")]
    on: Option<String>,
    /// The kind of GPU of a cluster to measure on, as Ray names it: H100
    #[arg(long, value_name = "KIND", requires = "on")]
    gpu: Option<String>,
    /// How many processes measure: of a cluster, by default one for each GPU (or host, for the CPU), or of each --worker-cmd
    #[arg(long, value_name = "NUMBER", value_parser = count())]
    measurers: Option<usize>,
}

impl WorkerArgs {
    /// What they ask for.
    pub(crate) fn workers(&self) -> Workers {
        let WorkerArgs { compilers, device, worker_cmd, compile_cmd, on, gpu, measurers } = self.clone();
        let python = env::var("TILEWRIGHT_PYTHON").ok();
        let on = on.map(|address| Cluster { address, gpu, python });
        Workers { compilers, measurers, device, worker_cmd, compile_cmd, on, own: vec![] }
    }
}

fn count() -> impl TypedValueParser<Value = usize> {
    RangedU64ValueParser::<usize>::new().range(1..=MAX_COMPILERS as u64)
}
