//! NVIDIA's libraries and tools that need no GPU.

use std::path::Path;

use super::{
    check::Check,
    environment::HostEnvironment,
    probe::{Nvrtc, Probe, Probed},
};

/// The oldest architecture that the emitted code is for.
const OLDEST: u32 = 80;

pub(super) fn nvrtc(environment: &dyn HostEnvironment) -> Check {
    let name = "nvrtc";
    let it = match environment.probe(Probe::Nvrtc).facts::<Nvrtc>() {
        Ok(it) => it,
        Err((error, help)) => {
            return Check::warn(
                name,
                error,
                help.unwrap_or_else(|| "pip install nvidia-cuda-nvrtc".to_owned()),
            );
        }
    };
    let (major, minor) = it.version;
    let archs: Vec<String> =
        it.archs.iter().filter(|it| **it >= OLDEST).map(|it| format!("sm_{it}")).collect();
    let found = format!("{major}.{minor} at {}", it.path);
    if let Some(why) = it.broken {
        let why = if why.contains("builtins") {
            "it lacks libnvrtc-builtins, which lies beside it in a whole installation".to_owned()
        } else {
            why
        };
        let fix = "pip install --force-reinstall nvidia-cuda-nvrtc";
        return Check::warn(name, format!("{found}, but it does not compile: {why}"), fix);
    }
    if !it.archs.is_empty() && archs.is_empty() {
        let fix = "pip install nvidia-cuda-nvrtc  (a newer one)";
        return Check::warn(name, format!("{found} knows no architecture from sm_{OLDEST} on"), fix);
    }
    Check::ok(name, format!("{found}, for {}", archs.join(" ")))
}

pub(super) fn cublas(environment: &dyn HostEnvironment) -> Check {
    let name = "cublas";
    let probed = environment.probe(Probe::Cublas);
    // It is the baseline of measurements on a GPU, and nothing else.
    if let (Probed::Refused { .. }, Probed::Refused { .. }) = (&probed, environment.probe(Probe::Gpu(0))) {
        return Check::skip(name, format!("{probed}; it is the baseline of a GPU, and there is none"));
    }
    match probed.facts::<String>() {
        Ok(path) => {
            let folder = Path::new(&path).parent().filter(|it| !it.as_os_str().is_empty());
            let listed = folder.and_then(|it| Some(environment.run(&["ls", it.to_str()?]).ok()?.stdout));
            match listed {
                Some(it) if !it.contains("libcublasLt.so") => {
                    let fix = "pip install --force-reinstall nvidia-cublas";
                    Check::warn(name, format!("{path}, but cuBLASLt is not beside it"), fix)
                }
                Some(_) => Check::ok(name, format!("{path}, with cuBLASLt beside it")),
                None => Check::ok(name, path),
            }
        }
        Err((error, help)) => {
            Check::warn(name, error, help.unwrap_or_else(|| "pip install nvidia-cublas".to_owned()))
        }
    }
}

/// What prints machine code as text.
pub(super) fn disassembler(environment: &dyn HostEnvironment) -> Check {
    let name = "disassembler";
    let usual = || "pip install nvidia-cuda-nvdisasm".to_owned();
    let path = match environment.probe(Probe::Disassembler).facts::<String>() {
        Ok(path) => path,
        Err((error, help)) => {
            let found = format!("{error}: `show --emit sass` needs one");
            return Check::warn(name, found, help.unwrap_or_else(usual));
        }
    };
    match environment.run(&[&path, "--version"]) {
        Ok(said) if said.success => {
            let version = said.stdout.lines().find(|it| it.contains("release")).unwrap_or_default();
            Check::ok(name, format!("{path}, {}", version.trim()))
        }
        Ok(said) => Check::warn(name, format!("{path} does not run ({})", said.status), usual()),
        Err(err) => Check::warn(name, format!("{path}: {err}"), usual()),
    }
}
