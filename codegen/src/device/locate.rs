//! Where CUDA's libraries may lie: the linker seldom knows, and they are never linked, only loaded.

#![expect(unsafe_code, reason = "libraries are loaded and called")]

use std::{
    env,
    ffi::{CStr, OsStr},
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use libloading::Library;

use super::DeviceError;

/// A library to look for.
pub(super) struct Wanted {
    /// In words, for messages.
    pub(super) what: &'static str,
    /// How to get it.
    pub(super) help: &'static str,
    /// The variable that names its folder; when set, nowhere else is looked.
    pub(super) env: &'static str,
    /// Its file name up to the version: `libnvrtc.so`.
    pub(super) file: &'static str,
    /// What it loads by bare name, which only works when it is loaded before; up to the version.
    pub(super) needs: &'static [&'static str],
    /// Its folders below a Python `site-packages`.
    pub(super) wheels: &'static [&'static str],
    /// Its names where the linker knows it, best first.
    pub(super) sonames: &'static [&'static str],
}

impl Wanted {
    /// The error when it is nowhere.
    pub(super) fn missing(&self) -> DeviceError {
        DeviceError::Missing { what: self.what.into(), help: self.help.into() }
    }

    /// Loads the first that can be loaded, and says from where. It stays loaded for the life of the process:
    /// these libraries start threads and register exit handlers, and do not survive being unloaded.
    pub(super) fn load(&self) -> Result<(PathBuf, &'static Library), DeviceError> {
        if let Some(dir) = env::var_os(self.env).filter(|it| !it.is_empty()) {
            let dir = PathBuf::from(dir);
            return self.load_from(&dir).ok_or_else(|| DeviceError::Missing {
                what: format!("{} in the folder that {} names ({})", self.what, self.env, dir.display()),
                help: format!("unset {}, or let it name the folder of {}", self.env, self.file),
            });
        }
        let wheels = |sites: Vec<PathBuf>| {
            let dirs = sites.into_iter().flat_map(|it| self.wheels.iter().map(move |wheel| it.join(wheel)));
            dirs.collect::<Vec<_>>()
        };
        let dirs = linker_dirs().into_iter().chain(toolkit_dirs()).chain(wheels(virtual_env_sites()));
        // Python is asked last, and only if need be: starting it takes longer than all the rest.
        let mut dirs = dirs.chain(std::iter::once_with(python_sites).flat_map(wheels));
        let found = dirs.find_map(|it| self.load_from(&it));
        found.or_else(|| self.load_by_name()).ok_or_else(|| self.missing())
    }

    /// Loads the newest in a folder, after what it needs.
    fn load_from(&self, dir: &Path) -> Option<(PathBuf, &'static Library)> {
        for (version, path) in versions(dir, self.file) {
            for needed in self.needs {
                let fits = |it: &[u32]| version.is_empty() || it.first() == version.first();
                let beside = versions(dir, needed).into_iter().filter(|(it, _)| it.is_empty() || fits(it));
                // A failure here shows in loading the library itself, or in its first call.
                for (_, path) in beside {
                    open(path.as_os_str());
                }
            }
            if let Some(library) = open(path.as_os_str()) {
                return Some((path, library));
            }
        }
        None
    }

    fn load_by_name(&self) -> Option<(PathBuf, &'static Library)> {
        self.sonames.iter().find_map(|it| Some((PathBuf::from(it), open(OsStr::new(it))?)))
    }
}

/// Looks a function up.
///
/// # Safety
/// `F` must be the type of the function's pointer.
pub(super) unsafe fn symbol<F: Copy>(library: &'static Library, name: &CStr) -> Result<F, DeviceError> {
    // SAFETY: the caller vouches for the type, and the library is never unloaded.
    let found = unsafe { library.get::<F>(name.to_bytes_with_nul()) };
    found.map(|it| *it).map_err(|err| DeviceError::Call {
        call: name.to_string_lossy().into_owned(),
        reason: format!("the library is too old or too new: {err}"),
    })
}

fn open(path: &OsStr) -> Option<&'static Library> {
    // SAFETY: these are NVIDIA's libraries by their names, whose initialisers have no preconditions.
    let library = unsafe { Library::new(path) }.ok()?;
    Some(Box::leak(Box::new(library)))
}

/// The files `stem`, `stem.13`, `stem.13.0` of a folder with their versions, newest first. The one without a version
/// is a link to one of the others where there are others, so it comes last.
fn versions(dir: &Path, stem: &str) -> Vec<(Vec<u32>, PathBuf)> {
    let parse = |name: &str| -> Option<Vec<u32>> {
        let rest = name.strip_prefix(stem)?;
        if rest.is_empty() {
            return Some(vec![]);
        }
        rest.strip_prefix('.')?.split('.').map(|it| it.parse().ok()).collect()
    };
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut out: Vec<_> =
        entries.filter_map(|it| Some((parse(it.file_name().to_str()?)?, it.path()))).collect();
    out.sort_by(|a, b| b.cmp(a));
    out
}

fn linker_dirs() -> Vec<PathBuf> {
    let list = env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    env::split_paths(&list).filter(|it| it.is_absolute()).collect()
}

fn toolkit_dirs() -> Vec<PathBuf> {
    let roots = toolkit_roots().into_iter();
    roots.flat_map(|it| ["lib64", "lib", "targets/x86_64-linux/lib"].map(|lib| it.join(lib))).collect()
}

/// Where CUDA toolkits are installed: those that the environment names, then all others, newest first.
pub(super) fn toolkit_roots() -> Vec<PathBuf> {
    let set = ["CUDA_HOME", "CUDA_PATH", "CUDA_ROOT"].into_iter().filter_map(env::var_os).map(PathBuf::from);
    let entries = fs::read_dir("/usr/local").into_iter().flatten().flatten().map(|it| it.path());
    let version = |path: &Path| -> Option<Vec<u32>> {
        match path.file_name()?.to_str()?.strip_prefix("cuda")? {
            // The administrator's choice comes before all numbered ones.
            "" => Some(vec![u32::MAX]),
            rest => rest.strip_prefix('-')?.split('.').map(|it| it.parse().ok()).collect(),
        }
    };
    let mut installed: Vec<_> = entries.filter_map(|it| Some((version(&it)?, it))).collect();
    installed.sort_by(|a, b| b.cmp(a));
    let installed = installed.into_iter().map(|it| it.1);
    set.filter(|it| it.is_absolute()).chain(installed).collect()
}

/// The `site-packages` of the active virtual environment.
pub(super) fn virtual_env_sites() -> Vec<PathBuf> {
    let Some(root) = env::var_os("VIRTUAL_ENV").map(PathBuf::from).filter(|it| it.is_absolute()) else {
        return vec![];
    };
    let entries = fs::read_dir(root.join("lib")).into_iter().flatten().flatten();
    let mut sites: Vec<_> = entries.map(|it| it.path().join("site-packages")).collect();
    sites.sort();
    sites
}

/// What `python3` imports from. Empty where there is no Python.
pub(super) fn python_sites() -> Vec<PathBuf> {
    let asked = Command::new("python3")
        .args(["-c", "import sys; print('\\n'.join(sys.path))"])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output();
    let answer = asked.map(|it| String::from_utf8_lossy(&it.stdout).into_owned()).unwrap_or_default();
    answer.lines().map(PathBuf::from).filter(|it| it.is_absolute()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newest_first_and_no_look_alikes() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["libx.so", "libx.so.12", "libx.so.13", "libx.so.13.0", "libx.alt.so.13", "libx.so.old"] {
            fs::write(dir.path().join(name), "").unwrap();
        }
        let names: Vec<_> = versions(dir.path(), "libx.so")
            .into_iter()
            .map(|(_, path)| path.file_name().unwrap().to_string_lossy().into_owned())
            .collect();
        assert_eq!(names, ["libx.so.13.0", "libx.so.13", "libx.so.12", "libx.so"]);
    }

    #[test]
    fn nothing_is_missing_and_no_panic() {
        let wanted = Wanted {
            what: "libnothing",
            help: "there is no help",
            env: "TILEWRIGHT_NOTHING_DIR",
            file: "libtilewright_nothing.so",
            needs: &[],
            wheels: &["nothing"],
            sonames: &["libtilewright_nothing.so.1"],
        };
        let err = wanted.load().unwrap_err();
        assert_eq!(err, wanted.missing());
        assert_eq!(err.help().as_deref(), Some("there is no help"));
    }
}
