//! The workloads, ladders and spaces that ship with tilewright.
//!
//! They are data: `<name>/<name>.ron` in this folder is a workload, `<name>/ladders/<ladder>/NN_name.ron` a rung of a
//! ladder, a schedule with an `about` text, and `<name>/spaces/<space>.ron` a schedule with knobs for the tuner.
//! `<name>/exercises/<course>/course.ron` says what the exercises `NN_name.ron` beside it teach. `std/<name>.ron` is a library of
//! procedures, which scripts use by the name `std/<name>`. The build lists them; adding one is adding a file.
//!
//! A file of an exercise is a schedule and its solution in one, told apart by how a line begins: `//+` stands before a
//! line of the solution alone, `//-` before one of the exercise alone, and `// ???` before what is asked for. So the two
//! cannot drift apart.

include!(concat!(env!("OUT_DIR"), "/table.rs"));

/// A file that ships with tilewright.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shipped {
    /// Its name without folder and extension.
    pub name: &'static str,
    /// What it says.
    pub text: &'static str,
}

/// A tutorial: schedules of one workload, each a step beyond the one before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ladder {
    /// Its name.
    pub name: &'static str,
    /// The workload in whose folder it lies.
    pub workload: &'static str,
    /// Its rungs in order; names start with their number.
    pub rungs: &'static [Shipped],
}

/// A schedule of a workload with knobs and constraints, of which the tuner looks for the best point.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Space {
    /// Its name.
    pub name: &'static str,
    /// The workload in whose folder it lies.
    pub workload: &'static str,
    /// What it says.
    pub text: &'static str,
}

/// A course: exercises of schedules with holes, in the order in which they are learnt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Course {
    /// Its name.
    pub name: &'static str,
    /// What its `course.ron` says: titles, hints and goals.
    pub text: &'static str,
    /// Its exercises in order; names start with their number.
    pub exercises: &'static [Shipped],
}

/// The text of the workload of a name.
pub fn find(name: &str) -> Option<&'static str> {
    WORKLOADS.iter().find(|it| it.name == name).map(|it| it.text)
}

/// Every workload, in the order of names.
pub fn all() -> &'static [Shipped] {
    WORKLOADS
}

/// Every ladder, in the order of workloads and names.
pub fn ladders() -> &'static [Ladder] {
    LADDERS
}

/// The ladder of a name.
pub fn find_ladder(name: &str) -> Option<&'static Ladder> {
    LADDERS.iter().find(|it| it.name == name)
}

/// Every space, in the order of workloads and names.
pub fn spaces() -> &'static [Space] {
    SPACES
}

/// The space of a name.
pub fn find_space(name: &str) -> Option<&'static Space> {
    SPACES.iter().find(|it| it.name == name)
}

/// Every library of procedures, in the order of names.
pub fn libraries() -> &'static [Shipped] {
    LIBRARIES
}

/// The library of a name, such as `std/copy`.
pub fn find_library(name: &str) -> Option<&'static Shipped> {
    LIBRARIES.iter().find(|it| it.name == name)
}

/// Every course, in the order of workloads and names.
pub fn courses() -> &'static [Course] {
    COURSES
}
