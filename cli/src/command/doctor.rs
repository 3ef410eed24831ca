//! `tilewright doctor`.

use codegen::device::{CpuMachine, CudaMachine, DeviceError, Machine, MachineInfo, cc, cublas, nvrtc};
use ir::DType;
use serde_json::{Value, json};

use crate::{diagnostic::Diagnostic, term::shell::Shell};

/// Tell what this machine has: processor, C compiler, GPU, NVRTC, cuBLAS
#[derive(Debug, clap::Args)]
pub(crate) struct Doctor {}

/// One thing to look for.
struct Finding {
    what: &'static str,
    /// Whether nothing works without it.
    needed: bool,
    found: Result<String, DeviceError>,
}

impl Doctor {
    pub(crate) fn run(&self, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
        let Doctor {} = self;
        let findings = [
            Finding { what: "processor", needed: true, found: machine(CpuMachine::open()) },
            Finding { what: "C compiler", needed: true, found: cc::find().map(|it| it.version) },
            Finding { what: "GPU", needed: false, found: machine(CudaMachine::open(0)) },
            Finding { what: "NVRTC", needed: false, found: nvrtc::find().map(|it| nvrtc_words(&it)) },
            Finding {
                what: "cuBLAS",
                needed: false,
                found: cublas::find().map(|it| it.display().to_string()),
            },
        ];
        for it in &findings {
            it.print(shell)?;
        }
        match findings.iter().find(|it| it.needed && it.found.is_err()) {
            Some(Finding { found: Err(err), .. }) => Err(Diagnostic::device(err)),
            Some(Finding { found: Ok(_), .. }) | None => Ok(()),
        }
    }
}

fn machine<M: Machine>(machine: Result<M, DeviceError>) -> Result<String, DeviceError> {
    Ok(machine_words(machine?.info()))
}

fn machine_words(it: &MachineInfo) -> String {
    let units = if it.arch == "cpu" { "cores" } else { "multiprocessors" };
    let peak = it.peak_f32_gflops.map(|it| format!("peak {it:.0} GFLOPS in f32"));
    let products = [DType::F16, DType::Bf16, DType::Tf32, DType::I8].map(|dtype| {
        let peak = it.peak_product_gflops(dtype)?;
        Some(format!("{peak:.0} in products of {dtype}"))
    });
    let memory = it.peak_gb_per_s.map(|it| format!("{it:.0} GB/s"));
    let cache = format!("last cache {:.1} MiB", it.cache_bytes as f64 / f64::from(1 << 20));
    let facts: Vec<_> = [it.arch.clone(), format!("{} {units}", it.units)]
        .into_iter()
        .chain(peak)
        .chain(products.into_iter().flatten())
        .chain(memory)
        .chain([cache])
        .collect();
    let versions = it.versions.iter().map(|(name, version)| format!("; {name} {version}"));
    format!("{} ({}){}", it.name, facts.join(", "), versions.collect::<String>())
}

fn nvrtc_words(it: &nvrtc::NvrtcInfo) -> String {
    let archs: Vec<_> = it.archs.iter().map(|it| format!("sm_{it}")).collect();
    let (major, minor) = it.version;
    format!("{major}.{minor} at {}, for {}", it.path.display(), archs.join(" "))
}

impl Finding {
    fn print(&self, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
        let level = match (&self.found, self.needed) {
            (Ok(_), _) => "ok",
            (Err(_), true) => "fail",
            (Err(_), false) => "warn",
        };
        if shell.json {
            let value: Value = match &self.found {
                Ok(words) => json!({"what": self.what, "level": level, "found": words}),
                Err(err) => {
                    json!({"what": self.what, "level": level, "error": err.to_string(), "help": err.help()})
                }
            };
            return shell.json(&value);
        }
        match &self.found {
            Ok(words) => writeln!(shell.out, "{level:<5} {:<11} {words}", self.what)?,
            Err(err) => {
                writeln!(shell.out, "{level:<5} {:<11} {err}", self.what)?;
                if let Some(help) = err.help() {
                    writeln!(shell.out, "{:17} help: {help}", "")?;
                }
            }
        }
        Ok(())
    }
}
