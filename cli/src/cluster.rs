//! Workers in a Ray cluster: the package for Python hands jobs to them, and to a pool it is one worker that takes many.

use std::{ffi::OsStr, time::Duration};

use ir::Target;
use tuner::pool::{Role, WorkerSpec, once};

use crate::{diagnostic::Diagnostic, usage_error::UsageError};

/// A Ray cluster whose processes compile and measure.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cluster {
    /// `ray://HOST:PORT` of its client server, `ray://auto` for the one that this machine belongs to, or `ray://local` for
    /// one that is started for the run, on this machine alone.
    pub address: String,
    /// The kind of GPU to measure on, as Ray names it: `H100`.
    pub gpu: Option<String>,
    /// The Python that has Ray and this package; by default `python3`.
    pub python: Option<String>,
}

/// How many processes there are to be in a cluster, and what they run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seats<'a> {
    /// Those that compile, by default one for each processor that is left.
    pub(crate) compilers: Option<usize>,
    /// Those that measure, by default one for each GPU, or for each host where the target is the CPU.
    pub(crate) measurers: Option<usize>,
    /// The command of a process of a role, in place of the package's own worker.
    pub(crate) command: Option<&'a str>,
}

/// How the address of a cluster begins.
const SCHEME: &str = "ray://";

/// The names of the cluster's two workers in messages and logs.
const MEASURE: &str = "ray-m";
const COMPILE: &str = "ray-c";

/// How long Python may take to say what it has.
const PROBING: Duration = Duration::from_secs(30);

/// Prints which of the packages it lacks. A folder that only has the name of one is none.
const PROBE: &str = "\
from importlib.util import find_spec
specs = {it: find_spec(it) for it in ('tilewright', 'ray')}
print(*[it for it, spec in specs.items() if spec is None or spec.origin is None])
";

impl Cluster {
    /// The worker that hands jobs of a role to the cluster.
    pub(crate) fn spec(&self, role: Role, target: &Target, seats: Seats<'_>) -> WorkerSpec {
        let (name, word) = match role {
            Role::Measure => (MEASURE, "measure"),
            Role::Compile => (COMPILE, "compile"),
        };
        let target = if *target == Target::Cpu { "cpu" } else { "cuda" };
        let tool = concat!("tilewright ", env!("CARGO_PKG_VERSION"));
        let mut argv = vec![self.python(), "-m", "tilewright.ray", "--address", self.ray_address()];
        argv.extend(["--role", word, "--target", target, "--tool", tool]);
        let counts = [("--compilers", seats.compilers), ("--measurers", seats.measurers)];
        let counts = counts.map(|(option, it)| it.map(|it| (option, it.to_string())));
        for (option, count) in counts.iter().flatten() {
            argv.extend([*option, count.as_str()]);
        }
        let words = [("--gpu", self.gpu.as_deref()), ("--worker", seats.command)];
        for (option, word) in words.into_iter().filter_map(|(option, it)| Some((option, it?))) {
            argv.extend([option, word]);
        }
        WorkerSpec { name: name.to_owned(), argv: argv.into_iter().map(str::to_owned).collect(), role }
    }

    /// Whether it is this machine alone, and goes with the process that started it.
    pub(crate) fn is_local(&self) -> bool {
        self.address == "ray://local"
    }

    /// Refuses an address that is none, and a Python that cannot reach a cluster.
    pub(crate) fn expect_usable(&self) -> Result<(), Diagnostic> {
        if self.address.strip_prefix(SCHEME).is_none_or(str::is_empty) {
            let title = format!("`{}` is no address of a Ray cluster", self.address);
            return Err(refusal(title, "it is ray://HOST:PORT, ray://auto or ray://local"));
        }
        let python = self.python();
        let install =
            "pip install 'tilewright[ray]' for the `python3` of this shell, or for that of TILEWRIGHT_PYTHON";
        let probed = once(OsStr::new(python), &[OsStr::new("-c"), OsStr::new(PROBE)], PROBING);
        let probed =
            probed.map_err(|err| refusal(format!("`{python}` cannot be asked for Ray: {err}"), install))?;
        let said = if probed.success { probed.stdout.trim() } else { probed.stderr.trim() };
        match (probed.success, said) {
            (true, "") => Ok(()),
            (true, lacks) => {
                let lacks = lacks.split(' ').map(|it| format!("`{it}`")).collect::<Vec<_>>().join(" and ");
                Err(refusal(format!("`{python}` lacks {lacks}, through which a cluster is reached"), install))
            }
            (false, said) => {
                let last = said.lines().next_back().unwrap_or("it says nothing");
                Err(refusal(
                    format!("`{python}` cannot be asked for Ray ({}): {last}", probed.status),
                    install,
                ))
            }
        }
    }

    fn python(&self) -> &str {
        self.python.as_deref().unwrap_or("python3")
    }

    /// The address in Ray's own words: `auto` and `local` have no scheme there.
    fn ray_address(&self) -> &str {
        match self.address.strip_prefix(SCHEME) {
            Some(word @ ("auto" | "local")) => word,
            Some(_) | None => &self.address,
        }
    }
}

fn refusal(title: String, help: &str) -> Diagnostic {
    Diagnostic::usage(UsageError::Cluster, title).help(help.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cluster(address: &str) -> Cluster {
        Cluster { address: address.to_owned(), gpu: Some("H100".to_owned()), python: None }
    }

    #[test]
    fn the_command_of_a_cluster() {
        let seats = Seats { compilers: Some(64), measurers: None, command: Some("tilewright worker") };
        let target = Target::Cuda(ir::Arch::parse("sm_90a").unwrap());
        let spec = cluster("ray://head:10001").spec(Role::Measure, &target, seats);
        let tool = concat!("tilewright ", env!("CARGO_PKG_VERSION"));
        let words = "python3 -m tilewright.ray --address ray://head:10001 --role measure --target cuda --tool TOOL --compilers 64 --gpu H100 --worker";
        let mut wanted: Vec<&str> = words.split(' ').map(|it| if it == "TOOL" { tool } else { it }).collect();
        wanted.push("tilewright worker");
        assert_eq!(spec.argv, wanted);
        assert_eq!(cluster("ray://auto").ray_address(), "auto");
        assert!(cluster("ray://local").is_local());
    }

    #[test]
    fn what_is_no_address() {
        for wrong in ["", "ray://", "auto", "head:10001"] {
            let refused = cluster(wrong).expect_usable().unwrap_err();
            assert_eq!(refused.code(), ir::Code::new(5063));
        }
    }
}
