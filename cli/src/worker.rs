//! The process that compiles or measures for [`Tuner`](crate::Tuner): this program itself, started as a worker.

use std::{
    env,
    ffi::OsString,
    io::{self, Write},
    process,
};

use tuner::worker::{Device, DeviceHandler, WorkerLimits, claim_output, prepare, serve};

use crate::{diagnostic::Diagnostic, usage_error::UsageError};

/// What a worker does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Job {
    /// Compiles, within limits on memory and processor time, and measures nothing.
    Compile,
    /// Measures on a device.
    Measure(Device),
}

impl Job {
    /// From the arguments behind `worker`, as [`Workers`](crate::Workers) has them.
    fn parse(arguments: &[OsString]) -> Option<Job> {
        let words: Option<Vec<&str>> = arguments.iter().map(|it| it.to_str()).collect();
        match words?.as_slice() {
            [] => Some(Job::Measure(Device::parse("0")?)),
            ["--compile-only"] => Some(Job::Compile),
            ["--device", device] => Some(Job::Measure(Device::parse(device)?)),
            _ => None,
        }
    }

    /// Does jobs that come as lines of JSON on standard input, until it ends.
    pub(crate) fn serve(self) -> Result<(), Diagnostic> {
        let (device, limits) = match self {
            Job::Compile => (Device::None, WorkerLimits::Compile),
            Job::Measure(device) => (device, WorkerLimits::Measure),
        };
        prepare(limits);
        let mut output = claim_output()?;
        serve(io::stdin(), &mut output, &mut DeviceHandler::new(device))
            .map_err(|err| Diagnostic::failed(UsageError::Process, err.to_string()))
    }
}

/// Serves as a worker and ends the process, if it was started as one (`PROGRAM worker …`); else does nothing.
///
/// [`Tuner`](crate::Tuner) compiles and measures in processes that may crash. It starts them from the program that it runs in, so
/// that program's `main` begins with this. Exit code: 0 if standard input ended, 1 if a job could not be done, 2 if the arguments behind
/// `worker` are wrong.
pub fn serve_if_worker() {
    let mut arguments = env::args_os().skip(1);
    if arguments.next().is_none_or(|it| it != "worker") {
        return;
    }
    process::exit(serve_worker(&arguments.collect::<Vec<_>>()));
}

/// Serves as a worker with the arguments behind `worker`, for programs that are started as one in another way, as
/// [`Workers::own`](crate::Workers) says. Returns the exit code of [`serve_if_worker`].
pub fn serve_worker(arguments: &[OsString]) -> i32 {
    let Some(job) = Job::parse(arguments) else {
        let _ = writeln!(io::stderr(), "usage: worker [--compile-only | --device N|cpu]");
        return 2;
    };
    let result = job.serve();
    if let Err(err) = &result {
        let _ = writeln!(io::stderr(), "{err}");
    }
    i32::from(result.is_err())
}

#[cfg(test)]
mod tests {
    use super::{Device, Job};

    #[test]
    fn the_arguments_of_workers() {
        let parse = |words: &[&str]| Job::parse(&words.iter().map(Into::into).collect::<Vec<_>>());
        assert_eq!(parse(&["--compile-only"]), Some(Job::Compile));
        assert_eq!(parse(&["--device", "cpu"]), Device::parse("cpu").map(Job::Measure));
        assert_eq!(parse(&[]), parse(&["--device", "0"]));
        for wrong in [&["--device"][..], &["--device", "x"], &["--compile-only", "--device", "0"]] {
            assert_eq!(parse(wrong), None);
        }
    }
}
