//! Usage errors: what can be wrong with a request itself, rather than with a script or a program.

/// The kinds of errors of the command line and of this library. Their messages are written where they are raised.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UsageError {
    /// A file cannot be read or written.
    File,
    /// Standard output cannot be written.
    Output,
    /// A file would be overwritten, or its name is none.
    Target,
    /// There is no such ladder.
    Ladder,
    /// A folder has no rungs, or a ladder not the one asked for.
    Rungs,
    /// A size has another number of extents than the workload.
    Size,
    /// There is no such workload.
    Workload,
    /// A symbolic dimension has no value, or none of that name is there.
    Dimension,
    /// More combinations of dimensions than a run takes.
    Combinations,
    /// What was given for a knob is no choice.
    KnobValue,
    /// There is nothing of that name to explain.
    Topic,
    /// Options that do not go together.
    Options,
    /// No loop is pipelined, and a timeline is of pipelines.
    NoPipeline,
    /// A program in the text form has no parameters.
    TextParams,
    /// A buffer is larger than can be allocated.
    Huge,
    /// Lines of a log are damaged.
    Damage,
    /// A log has no such run or trial.
    NoRun,
    /// A log says something else than what came out now.
    Differs,
    /// No candidate gave a result.
    NoCandidate,
    /// A rung or a size has no result.
    NoResult,
    /// A run was made on another machine.
    Machine,
    /// A schedule to compare with is of another workload.
    Incumbent,
    /// The process cannot be set up: signals, or the path of the program itself.
    Process,
    /// The arguments cannot be read: no such command, option or value.
    Arguments,
    /// This machine lacks what is needed to measure at all.
    Unfit,
    /// A comparison came out as `--fail-on` does not want it.
    FailOn,
    /// A comparison leaves open what `--fail-on` asks.
    CannotTell,
    /// The finals of a run could not be held.
    Finals,
    /// There is no such exercise.
    Exercise,
    /// A folder has no exercises.
    NoExercises,
    /// What remembers how far somebody is was written by a newer program.
    Progress,
    /// Something is for a terminal only.
    Terminal,
    /// An exercise is not solved.
    Unsolved,
    /// An exercise was made into another program.
    Altered,
    /// A kernel and what it is verified against do not fit together.
    Reference,
    /// A compiler does not end.
    Compiler,
    /// The process that compiles and runs kernels was killed.
    Crash,
    /// An exported bundle does not build, or its own program finds its numbers wrong.
    BundleWrong,
    /// An exported bundle was built and could not be run, for want of a device.
    BundleNotRun,
    /// A bundle is to have a name that cannot name functions and files.
    BundleName,
    /// A file is not laid out as `fmt` would.
    Unformatted,
    /// A port of this machine cannot be listened on.
    Port,
    /// A cluster cannot be reached from here.
    Cluster,
}

ir::codes!(UsageError {
    File = 5001,
    Output = 5002,
    Target = 5003,
    Ladder = 5004,
    Rungs = 5005,
    Size = 5006,
    Workload = 5007,
    Dimension = 5008,
    Combinations = 5009,
    KnobValue = 5010,
    Topic = 5011,
    Options = 5012,
    NoPipeline = 5013,
    TextParams = 5014,
    Huge = 5015,
    Damage = 5016,
    NoRun = 5017,
    Differs = 5018,
    NoCandidate = 5019,
    NoResult = 5020,
    Machine = 5021,
    Incumbent = 5022,
    Process = 5023,
    Arguments = 5024,
    Unfit = 5025,
    FailOn = 5026,
    CannotTell = 5027,
    Finals = 5028,
    Exercise = 5031,
    NoExercises = 5032,
    Progress = 5033,
    Terminal = 5034,
    Unsolved = 5035,
    Altered = 5036,
    Reference = 5041,
    Compiler = 5029,
    Crash = 5030,
    BundleWrong = 5051,
    BundleNotRun = 5052,
    BundleName = 5053,
    Unformatted = 5061,
    Port = 5062,
    Cluster = 5063,
    // 5054 refused bundles of kernels with tensor maps, and means nothing else.
});
