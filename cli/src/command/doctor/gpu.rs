//! The driver, and the GPUs with their state. None of it is needed: without, everything but measuring on a GPU works.

use codegen::device::MachineInfo;
use ir::DType;

use super::{
    check::{Check, State},
    environment::HostEnvironment,
    probe::{Nvrtc, Probe, Probed},
    smi::{Card, Mute, cards, slowdowns},
};

/// The most GPUs that are looked at.
const MAX_GPUS: usize = 16;

/// Memory that is in use on a card at rest, in MiB; more of it belongs to somebody.
const RESTING_MIB: u64 = 1024;

/// The driver first, then two lines for each GPU.
pub(super) fn checks(environment: &dyn HostEnvironment) -> Vec<Check> {
    let cards = cards(environment);
    let first = environment.probe(Probe::Gpu(0));
    let mut out = vec![driver(environment, &first)];
    if out[0].state == State::Warn && matches!(first, Probed::Refused { .. }) && cards.is_err() {
        out.push(Check::skip("gpu0", "there is no driver to ask for GPUs"));
        return out;
    }
    let count = cards.as_ref().map_or(1, Vec::len).clamp(1, MAX_GPUS);
    let known = cards.as_ref().ok();
    for n in 0..count {
        let probed = if n == 0 {
            first.clone()
        } else {
            // One that hangs is enough: others would take as long.
            environment.probe(Probe::Gpu(u32::try_from(n).expect("at most `MAX_GPUS`")))
        };
        let hung = matches!(probed, Probed::Hung(_));
        out.push(device(n, probed));
        let name = format!("gpu{n}-state");
        out.push(match (&cards, known.and_then(|it| it.get(n))) {
            (_, Some(card)) => state(n, card),
            (Err(Mute::Broken(words)), None) => {
                let fix =
                    "sudo dmesg | grep -i nvrm  (has the reason; after an update of the driver restart)";
                Check::warn(name, format!("nvidia-smi: {words}"), fix)
            }
            (Err(Mute::Missing), None) => {
                Check::skip(name, "clocks and processes: there is no nvidia-smi to ask")
            }
            (Ok(_), None) => Check::skip(name, "nvidia-smi does not list it"),
        });
        if hung {
            break;
        }
    }
    out
}

/// Whether there is a driver, and whether it takes what NVRTC makes.
fn driver(environment: &dyn HostEnvironment, first: &Probed) -> Check {
    let name = "driver";
    match first {
        Probed::Found(it) => {
            let info: Option<MachineInfo> = serde_json::from_value(it.clone()).ok();
            let version = info.and_then(|it| it.versions.into_iter().find(|it| it.0 == "CUDA driver"));
            let version = version.map(|it| it.1).unwrap_or_default();
            let nvrtc = environment.probe(Probe::Nvrtc).facts::<Nvrtc>().ok();
            let major = version.split('.').next().and_then(|it| it.parse::<u32>().ok());
            match nvrtc.zip(major) {
                Some((it, major)) if it.version.0 > major => {
                    let (theirs, minor) = it.version;
                    let found = format!(
                        "CUDA {version}, older than NVRTC {theirs}.{minor}: it may refuse what that makes"
                    );
                    let fix = format!("pip install nvidia-cuda-nvrtc-cu{major}  (or a newer driver)");
                    Check::warn(name, found, fix)
                }
                _ => Check::ok(name, format!("CUDA {version}")),
            }
        }
        Probed::Hung(_) => {
            let fix =
                "sudo nvidia-smi --gpu-reset -i 0  (or restart the machine); CUDA_VISIBLE_DEVICES= hides it";
            Check::fail(name, format!("the driver hangs: {first}"), fix)
        }
        Probed::Refused { error, help } => {
            let fix = help.clone().unwrap_or_else(|| "nvidia-smi  (has the driver's own words)".to_owned());
            Check::warn(name, error.clone(), fix)
        }
        Probed::Died(_) => {
            Check::warn(name, first.to_string(), "nvidia-smi  (if it fails, too, install the driver anew)")
        }
    }
}

fn device(n: usize, probed: Probed) -> Check {
    let name = format!("gpu{n}");
    let hung = matches!(probed, Probed::Hung(_));
    match probed.facts::<MachineInfo>() {
        Ok(it) => Check::ok(name, words(&it)),
        Err((error, _)) if hung => Check::skip(name, format!("{error}; see `driver`")),
        Err((error, help)) => {
            let fix = help.unwrap_or_else(|| {
                "nvidia-smi -L  (lists the GPUs; CUDA_VISIBLE_DEVICES hides some)".to_owned()
            });
            Check::warn(name, error, fix)
        }
    }
}

fn words(it: &MachineInfo) -> String {
    let peak = it.peak_f32_gflops.map(|it| format!("peak {it:.0} GFLOPS in f32"));
    let products = [DType::F16, DType::Tf32, DType::I8].into_iter().filter_map(|dtype| {
        let peak = it.peak_product_gflops(dtype)?;
        Some(format!("{peak:.0} in products of {dtype}"))
    });
    let memory = it.peak_gb_per_s.map(|it| format!("{it:.0} GB/s"));
    let cache = format!("L2 {:.0} MiB", it.cache_bytes as f64 / f64::from(1 << 20));
    let facts: Vec<String> = [it.arch.clone(), format!("{} multiprocessors", it.units)]
        .into_iter()
        .chain(peak)
        .chain(products)
        .chain(memory)
        .chain([cache])
        .collect();
    format!("{} ({})", it.name, facts.join(", "))
}

/// Whether a GPU is as fast as it could be, and alone. Of several problems the fix of the first is shown.
fn state(n: usize, it: &Card) -> Check {
    let name = format!("gpu{n}-state");
    let mut facts = vec![];
    facts.extend(it.memory_used.zip(it.memory).map(|(used, all)| format!("{used} of {all} MiB in use")));
    let clocks = it.clock.zip(it.clock_most);
    facts.extend(clocks.map(|(now, most)| format!("{now} of {most} MHz")));
    facts.extend(it.power_limit.map(|it| format!("power limit {it:.0} W")));
    facts.extend(it.temperature.map(|it| format!("{it} °C")));
    facts.extend(it.ecc_errors.map(|it| format!("{it} ECC errors")));
    let facts = format!("{}: {}", it.name, facts.join(", "));
    match problems(n, it).into_iter().next() {
        None => Check::ok(name, facts),
        Some((_, fix)) => {
            let all: Vec<String> = problems(n, it).into_iter().map(|it| it.0).collect();
            Check::warn(name, format!("{facts}; {}", all.join("; ")), fix)
        }
    }
}

/// What is wrong with a card, the worst first, each with what to do.
fn problems(n: usize, it: &Card) -> Vec<(String, String)> {
    let mut out = vec![];
    let mut add = |what: String, fix: String| out.push((what, fix));
    if it.ecc_errors.is_some_and(|it| it > 0) {
        let what = "its memory had errors that could not be corrected".to_owned();
        add(what, format!("nvidia-smi -i {n} -q -d ECC,ROW_REMAPPER  (it may be broken)"));
    }
    if it.compute_mode.as_deref().is_some_and(|it| it.eq_ignore_ascii_case("prohibited")) {
        add("nobody may compute on it".to_owned(), format!("sudo nvidia-smi -i {n} -c DEFAULT"));
    }
    if !it.users.is_empty() {
        let who = it.users.join(", ");
        add(
            format!("others compute on it: {who}"),
            "nvidia-smi  (lists them; measure when they are gone)".to_owned(),
        );
    } else if it.memory_used.is_some_and(|it| it > RESTING_MIB) {
        let what = "somebody holds its memory, perhaps from another container".to_owned();
        add(what, format!("sudo fuser -v /dev/nvidia{n}  (on the host; measure when they are gone)"));
    }
    let slow = slowdowns(it.reasons.unwrap_or(0));
    if !slow.is_empty() {
        let fix = format!("nvidia-smi -i {n} -q -d PERFORMANCE  (has the details; let it cool down)");
        add(format!("its clock is held down by {}", slow.join(" and ")), fix);
    }
    if let Some((limit, usual)) = it.power_limit.zip(it.power_default).filter(|it| it.0 + 1.0 < it.1) {
        let what = format!("its power limit is {limit:.0} W where {usual:.0} W is usual");
        add(what, format!("sudo nvidia-smi -i {n} -pl {usual:.0}"));
    }
    if it.mig.as_deref().is_some_and(|it| it.eq_ignore_ascii_case("enabled")) {
        add("MIG cuts it into parts".to_owned(), format!("sudo nvidia-smi -i {n} -mig 0"));
    }
    out
}
