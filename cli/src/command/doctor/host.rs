//! The C compiler, the processor and the memory.

use codegen::device::MachineInfo;

use super::{
    check::Check,
    environment::HostEnvironment,
    probe::{Compiler, Probe, Probed},
};

/// Extensions that the emitted C gets faster by, as Linux names them; of each architecture the widest counts.
const EXTENSIONS: [&str; 8] = ["avx512f", "avx2", "avx", "fma", "f16c", "asimd", "sve", "sse2"];

/// Load above this part of the cores disturbs figures.
const BUSY: f64 = 0.25;

/// The least memory that problems of a usual size take, in MiB.
const LEAST_MIB: u64 = 1024;

pub(super) fn compiler(environment: &dyn HostEnvironment) -> Check {
    let name = "c-compiler";
    let probed = environment.probe(Probe::Compiler);
    if let Probed::Hung(_) = probed {
        let fix = "cc --version  (if that hangs, too, install another: apt-get install gcc)";
        return Check::fail(name, probed.to_string(), fix);
    }
    match probed.facts::<Compiler>() {
        Ok(it) => {
            let words =
                format!("{}; a program was compiled, loaded and run ({})", it.version, it.command.join(" "));
            Check::ok(name, words)
        }
        Err((error, Some(help))) => Check::fail(name, error, help),
        Err((error, None)) if error.contains("dlopen") => {
            Check::fail(name, error, "export TMPDIR=$HOME/tmp  (a folder from which programs may run)")
        }
        Err((error, None)) => {
            Check::fail(name, error, "apt-get install gcc libc6-dev  (Fedora: dnf install gcc glibc-devel)")
        }
    }
}

pub(super) fn processor(environment: &dyn HostEnvironment) -> Check {
    let name = "cpu";
    let info = environment.read("/proc/cpuinfo").unwrap_or_default();
    let flags = info.lines().find(|it| it.starts_with("flags") || it.starts_with("Features"));
    let flags: Vec<&str> = flags.map(|it| it.split_whitespace().collect()).unwrap_or_default();
    let has: Vec<&str> = EXTENSIONS.into_iter().filter(|it| flags.contains(it)).collect();
    match environment.probe(Probe::Processor).facts::<MachineInfo>() {
        Ok(it) => {
            let peak = it.peak_f32_gflops.map(|it| format!("peak {it:.0} GFLOPS in f32"));
            let memory = it.peak_gb_per_s.map(|it| format!("{it:.0} GB/s"));
            let cache = format!("last cache {:.1} MiB", it.cache_bytes as f64 / f64::from(1 << 20));
            let facts: Vec<String> = [format!("{} cores", it.units)]
                .into_iter()
                .chain((!has.is_empty()).then(|| has.join(" ")))
                .chain(peak)
                .chain(memory)
                .chain([cache])
                .collect();
            Check::ok(name, format!("{} ({})", it.name, facts.join(", ")))
        }
        Err((error, help)) => {
            let fix = help.unwrap_or_else(|| "ulimit -u  (how many threads this user may start)".to_owned());
            Check::fail(name, error, fix)
        }
    }
}

pub(super) fn governor(environment: &dyn HostEnvironment) -> Check {
    let name = "cpu-governor";
    let folder = "/sys/devices/system/cpu/cpu0/cpufreq";
    let Some(governor) = environment.read(&format!("{folder}/scaling_governor")) else {
        return Check::skip(name, "the system does not tell (as in most containers and virtual machines)");
    };
    let governor = governor.trim();
    let driver = environment.read(&format!("{folder}/scaling_driver")).unwrap_or_default();
    // With these drivers `powersave` leaves the clock to the processor, which raises it under load.
    let hardware = ["intel_pstate", "amd-pstate-epp"].contains(&driver.trim());
    match governor {
        "performance" | "schedutil" | "ondemand" => Check::ok(name, governor),
        "powersave" if hardware => Check::ok(name, format!("powersave, by {}", driver.trim())),
        other => Check::warn(
            name,
            format!("{other}: the clock stays low, and figures with it"),
            "sudo cpupower frequency-set -g performance",
        ),
    }
}

pub(super) fn load(environment: &dyn HostEnvironment) -> Check {
    let name = "load";
    let text = environment.read("/proc/loadavg");
    let load = text.as_deref().and_then(|it| it.split_whitespace().next()?.parse::<f64>().ok());
    let Some(load) = load else { return Check::skip(name, "the system does not tell") };
    let cores = environment.cores();
    let words = format!("{load:.2} over the last minute on {cores} cores");
    if load <= BUSY * cores as f64 {
        return Check::ok(name, words);
    }
    let fix = "top -o %CPU  (shows who it is; measure when the machine is idle)";
    Check::warn(name, format!("{words}: others disturb what is measured"), fix)
}

pub(super) fn memory(environment: &dyn HostEnvironment) -> Check {
    let name = "memory";
    let text = environment.read("/proc/meminfo").unwrap_or_default();
    let field = |key: &str| {
        let line = text.lines().find(|it| it.strip_prefix(key).is_some_and(|it| it.starts_with(':')))?;
        let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
        Some(kib / 1024)
    };
    let Some((total, free)) = field("MemTotal").zip(field("MemAvailable")) else {
        return Check::skip(name, "the system does not tell");
    };
    let number = |path: &str| environment.read(path)?.trim().parse::<u64>().ok().map(|it| it >> 20);
    let used = number("/sys/fs/cgroup/memory.current");
    let limit = number("/sys/fs/cgroup/memory.max").filter(|it| *it < total);
    // What a container may take besides counts where it is less than what the machine has.
    let free = limit.map_or(free, |limit| free.min(limit.saturating_sub(used.unwrap_or(0))));
    let limit = limit.map(|it| format!(", of which this container may take {it} MiB")).unwrap_or_default();
    let words = format!("{free} MiB free of {total} MiB{limit}");
    if free >= LEAST_MIB {
        return Check::ok(name, words);
    }
    let fix = "tilewright tutorial --size 256  (smaller problems take less)";
    Check::warn(name, format!("{words}: large problems will not fit"), fix)
}
