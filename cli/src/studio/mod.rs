//! `tilewright studio`: a page beside the editor that shows what a script makes of a program, anew on every save.
//!
//! Two processes. One serves: it watches the files, keeps what the page shows (`board`) and answers the browser (`server`). For
//! each save it starts another (`workbench`), which is the same command once more, does the work (`work`, `panels`, `machine`,
//! `script_lines`) and tells what it finds line by line (`told`). A newer save ends that process, whatever it is at, and what a
//! kernel or a compiler breaks is not the page. All that is told comes from what `check`, `show` and `run` ask, too.

mod board;
mod host;
mod known;
mod machine;
mod panels;
mod script_lines;
mod server;
mod session;
mod step_page;
mod told;
mod work;
mod workbench;

use std::path::PathBuf;

use ir::Name;
use schedule::{script::ScriptTarget, workload::Param};

pub(crate) use host::{Address, port_taken};
pub(crate) use session::serve;
pub(crate) use work::{asked_part, work};

/// What the page is about.
#[derive(Clone, Debug)]
pub(crate) struct Subject {
    /// The script.
    pub(crate) script: PathBuf,
    /// The target, instead of the script's.
    pub(crate) target: Option<ScriptTarget>,
    /// Parameters and knobs, instead of the script's.
    pub(crate) params: Vec<(String, Param)>,
    /// The values of symbolic dimensions.
    pub(crate) dims: Vec<(Name, i64)>,
}
