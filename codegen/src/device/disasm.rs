//! NVIDIA's disassemblers: the machine code of a kernel as text, which is called SASS.
//!
//! `nvdisasm` tells which source line each instruction came from; `cuobjdump` will do where there is no other. They are
//! found in this order: the program that `TILEWRIGHT_NVDISASM` names (then nowhere else), the `PATH`, the folder `bin` beside
//! that of the NVRTC in use, a CUDA toolkit (`CUDA_HOME`, `CUDA_PATH`, `/usr/local/cuda*`), the wheels
//! `nvidia-cuda-nvdisasm` and `nvidia-cuda-cuobjdump` of the active virtual environment or of the `python3` on the path.
//!
//! The program is started without a shell on a file in a private temporary folder, and is killed when it takes too long.

use std::{
    env, fs,
    io::{self, Read},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{OnceLock, mpsc},
    thread,
    time::Duration,
};

use super::{
    DeviceError,
    locate::{python_sites, toolkit_roots, virtual_env_sites},
    nvrtc,
};

/// A disassembler that was found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Disassembler {
    /// The program.
    pub path: PathBuf,
    /// Which one it is.
    pub tool: Tool,
}

/// The disassemblers there are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tool {
    /// Tells source lines.
    Nvdisasm,
    /// Tells encodings besides.
    Cuobjdump,
}

impl Tool {
    /// The name of the program.
    pub const fn as_str(self) -> &'static str {
        match self {
            Tool::Nvdisasm => "nvdisasm",
            Tool::Cuobjdump => "cuobjdump",
        }
    }
}

const ENV: &str = "TILEWRIGHT_NVDISASM";
/// How long a disassembler may take. They take a second for the longest kernels.
const LIMIT: Duration = Duration::from_mins(1);
/// How much of its output is read.
const MAX_OUTPUT_BYTES: u64 = 256 << 20;
/// The folders of programs below a Python `site-packages`.
const WHEELS: [&str; 4] =
    ["nvidia/cu13/bin", "nvidia/cuda_nvdisasm/bin", "nvidia/cuda_cuobjdump/bin", "nvidia/cuda_nvcc/bin"];

/// Finds a disassembler, once in a process.
///
/// # Errors
/// [`DeviceError::Missing`] with what to install.
pub fn find() -> Result<Disassembler, DeviceError> {
    static FOUND: OnceLock<Result<Disassembler, DeviceError>> = OnceLock::new();
    FOUND.get_or_init(|| choose(env::var_os(ENV).filter(|it| !it.is_empty()).map(PathBuf::from))).clone()
}

fn choose(named: Option<PathBuf>) -> Result<Disassembler, DeviceError> {
    if let Some(path) = named {
        let stem = path.file_stem().and_then(|it| it.to_str()).unwrap_or_default();
        let tool = if stem.contains(Tool::Cuobjdump.as_str()) { Tool::Cuobjdump } else { Tool::Nvdisasm };
        if path.is_file() {
            return Ok(Disassembler { path, tool });
        }
        return Err(DeviceError::Missing {
            what: format!("the disassembler that {ENV} names ({})", path.display()),
            help: format!("unset {ENV}, or let it name the program nvdisasm or cuobjdump"),
        });
    }
    let path = env::var_os("PATH").unwrap_or_default();
    let path: Vec<_> = env::split_paths(&path).filter(|it| it.is_absolute()).collect();
    let nvrtc = nvrtc::find().ok().and_then(|it| Some(it.path.parent()?.parent()?.join("bin")));
    let toolkits = toolkit_roots().into_iter().map(|it| it.join("bin"));
    let wheels = |sites: Vec<PathBuf>| {
        let dirs = sites.into_iter().flat_map(|it| WHEELS.map(|wheel| it.join(wheel)));
        dirs.collect::<Vec<_>>()
    };
    let dirs = path.into_iter().chain(nvrtc).chain(toolkits).chain(wheels(virtual_env_sites()));
    let dirs: Vec<_> = dirs.collect();
    // Python is asked last, and only if need be: starting it takes longer than all the rest.
    let found = best(&dirs).or_else(|| best(&wheels(python_sites())));
    found.ok_or_else(|| DeviceError::Missing {
        what: "a disassembler for GPUs (nvdisasm or cuobjdump)".into(),
        help: format!(
            "`pip install nvidia-cuda-nvdisasm` in an active virtual environment, or install a CUDA toolkit, or let \
             {ENV} name the program"
        ),
    })
}

/// The first `nvdisasm` in these folders, else the first `cuobjdump`.
fn best(dirs: &[PathBuf]) -> Option<Disassembler> {
    let first = |tool: Tool| {
        let mut paths = dirs.iter().map(|it| it.join(tool.as_str()));
        paths.find(|it| it.is_file()).map(|path| Disassembler { path, tool })
    };
    first(Tool::Nvdisasm).or_else(|| first(Tool::Cuobjdump))
}

impl Disassembler {
    /// What the program prints about machine code, with source lines if the code has them.
    ///
    /// # Errors
    /// [`DeviceError::Call`] with the program's own words.
    pub fn print(&self, cubin: &[u8]) -> Result<String, DeviceError> {
        let failed = |reason: &dyn std::fmt::Display| DeviceError::Call {
            call: self.tool.as_str().into(),
            reason: reason.to_string(),
        };
        let dir = tempfile::tempdir().map_err(|err| failed(&err))?;
        fs::write(dir.path().join("kernel.cubin"), cubin).map_err(|err| failed(&err))?;
        let options: &[&str] = match self.tool {
            Tool::Nvdisasm => &["--print-code", "--print-line-info-inline"],
            Tool::Cuobjdump => &["--dump-sass"],
        };
        let out = run(&self.path, options, dir.path(), LIMIT).map_err(|err| failed(&err))?;
        if out.is_ok {
            return Ok(out.text);
        }
        let words = out.complaints.trim();
        Err(failed(if words.is_empty() { &"it gave no reason" } else { &words }))
    }
}

/// What a program printed.
struct Printed {
    is_ok: bool,
    text: String,
    complaints: String,
}

/// Runs a program on `kernel.cubin` in a folder, for no longer than that.
fn run(program: &Path, options: &[&str], dir: &Path, limit: Duration) -> io::Result<Printed> {
    let mut child = Command::new(program)
        .args(options)
        // A relative name, so that messages are the same wherever the temporary folder is.
        .arg("kernel.cubin")
        .current_dir(dir)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let res = read(&mut child, limit);
    if res.is_err() {
        let _ = child.kill();
    }
    let status = child.wait()?;
    let (text, complaints) = res?;
    Ok(Printed { is_ok: status.success(), text, complaints })
}

/// Both outputs to their ends, unless that takes too long.
fn read(child: &mut Child, limit: Duration) -> io::Result<(String, String)> {
    let all = |from: Option<Box<dyn Read + Send>>| {
        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || {
            let mut bytes = vec![];
            let res = from.map_or(Ok(0), |it| it.take(MAX_OUTPUT_BYTES).read_to_end(&mut bytes));
            // Whoever waited may have given up.
            let _ = sender.send(res.map(|_| String::from_utf8_lossy(&bytes).into_owned()));
        });
        receiver
    };
    let stdout = all(child.stdout.take().map(|it| Box::new(it) as Box<dyn Read + Send>));
    let stderr = all(child.stderr.take().map(|it| Box::new(it) as Box<dyn Read + Send>));
    let late = |_| io::Error::other(format!("it did not end within {} s", limit.as_secs_f64()));
    let text = stdout.recv_timeout(limit).map_err(late)??;
    let complaints = stderr.recv_timeout(limit).map_err(late)??;
    Ok((text, complaints))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_choice_is_missing() {
        let err = choose(Some(PathBuf::from("no-such-folder/nvdisasm"))).unwrap_err();
        let words = "the disassembler that TILEWRIGHT_NVDISASM names (no-such-folder/nvdisasm) was not found";
        assert_eq!(err.to_string(), words);
        assert!(err.help().unwrap().contains("unset TILEWRIGHT_NVDISASM"));
    }

    #[test]
    fn the_one_that_tells_lines_comes_first() {
        let dir = tempfile::tempdir().unwrap();
        let (a, b) = (dir.path().join("a"), dir.path().join("b"));
        for it in [&a, &b] {
            fs::create_dir(it).unwrap();
        }
        assert_eq!(best(&[a.clone(), b.clone()]), None);
        fs::write(a.join("cuobjdump"), "").unwrap();
        let found = best(&[a.clone(), b.clone()]).unwrap();
        assert_eq!((found.tool, found.path), (Tool::Cuobjdump, a.join("cuobjdump")));
        fs::write(b.join("nvdisasm"), "").unwrap();
        assert_eq!(best(&[a, b.clone()]).unwrap().path, b.join("nvdisasm"));
    }

    #[cfg(unix)]
    #[test]
    fn a_program_that_does_not_end_is_ended() {
        let dir = tempfile::tempdir().unwrap();
        let limit = Duration::from_millis(20);
        let err = run(Path::new("/bin/sh"), &["-c", "exec sleep 60"], dir.path(), limit);
        let err = err.err().map(|it| it.to_string());
        assert_eq!(err.as_deref(), Some("it did not end within 0.02 s"));
        let out = run(Path::new("/bin/sh"), &["-c", "echo out; echo no >&2; exit 3"], dir.path(), LIMIT);
        let out = out.unwrap();
        assert_eq!((out.is_ok, &*out.text, &*out.complaints), (false, "out\n", "no\n"));
    }
}
