//! What a script says besides its steps.

use std::{fs, path::Path};

use schedule::{Document, workload};

use super::{
    script::Script,
    slot::{Part, Place},
};
use crate::{
    source::find_workload,
    text_file::{self, Unsaved, is_workload},
};

/// The fields of a script: name, what it is, and what is written for it.
pub(super) const TOP: [(&str, &str, &str); 10] = [
    ("about", "What the script shows.", "\"${1}\""),
    ("use", "Libraries whose procedures it calls.", "[\"${1}\"]"),
    ("define", "Procedures of its own.", "{\n    \"${1}\": procedure(params: [], steps: [${2}]),\n}"),
    ("workload", "What is computed: a name, or the path of a file.", "\"${1}\""),
    ("target", "What it is scheduled for.", "\"${1}\""),
    ("params", "The parameters of the workload.", "{\"${1}\": ${2}}"),
    ("knobs", "What may be chosen.", "{\"${1}\": [${2}]}"),
    ("values", "Names for expressions.", "{\"${1}\": \"${2}\"}"),
    ("constraints", "What choices have to fulfil together.", "[\"${1}\"]"),
    ("steps", "The steps.", "[\n    ${1}\n]"),
];

/// Those that a library has, too.
pub(super) const OF_LIBRARIES: [&str; 3] = ["about", "use", "define"];

/// Targets that scripts name.
const TARGETS: [&str; 8] =
    ["cpu", "cuda", "cuda:sm_80", "cuda:sm_86", "cuda:sm_89", "cuda:sm_90a", "cuda:sm_100a", "cuda:sm_120a"];

/// The most files of a folder that are looked at.
const MOST_FILES: usize = 256;

/// The values of a field of a script, each with what it is.
pub(super) fn top_values(
    script: &Script,
    path: &Path,
    key: &str,
    part: Part,
    place: &Place<'_>,
    unsaved: &Unsaved,
) -> Vec<(String, String)> {
    match key {
        "workload" => {
            let about =
                |text: &str| workload::parse(text).map(|it| it.about().to_owned()).unwrap_or_default();
            let shipped = workloads::all().iter().map(|it| (it.name.to_owned(), about(it.text)));
            let files = files_beside(path, &|path, text| {
                has_extension(path, "tw") || Document::of(text) == Some(Document::Workload)
            });
            shipped.chain(files).collect()
        }
        "target" => TARGETS.map(|it| (it.to_owned(), String::new())).to_vec(),
        "use" => {
            let shipped = workloads::libraries().iter().map(|it| (it.name.to_owned(), "it ships".to_owned()));
            let files = files_beside(path, &|_, text| Document::of(text) == Some(Document::Library));
            shipped.chain(files).collect()
        }
        "params" => params(script, part, place, unsaved).unwrap_or_default(),
        _ => vec![],
    }
}

/// The parameters of the workload, or what the one before the colon may be.
fn params(
    script: &Script,
    part: Part,
    place: &Place<'_>,
    unsaved: &Unsaved,
) -> Option<Vec<(String, String)>> {
    let plan = script.plan.as_ref()?;
    let (_, text) = find_workload(&plan.text, &plan.script, unsaved).ok()?;
    let params = workload::parse(&text).ok()?.params();
    if part == Part::Key {
        return Some(params.into_iter().collect());
    }
    let key = place.text[place.entry().key.clone()?].trim_matches('"').to_owned();
    let words = params.get(&key)?.clone();
    // Sizes and numbers are described by sentences.
    let is_list = words.split(", ").all(|it| !it.contains(' '));
    Some(words.split(", ").filter(|_| is_list).map(|it| (it.to_owned(), String::new())).collect())
}

/// The files beside a script that fit, as it would name them.
fn files_beside(path: &Path, fits: &dyn Fn(&Path, &str) -> bool) -> Vec<(String, String)> {
    let entries = path.parent().and_then(|it| fs::read_dir(it).ok());
    let mut out = vec![];
    for entry in entries.into_iter().flatten().flatten().take(MOST_FILES) {
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = entry.path();
        let text = if is_workload(&path) { text_file::read(&path).ok() } else { None };
        if text.is_some_and(|it| fits(&path, &it)) {
            out.push((format!("./{name}"), "a file".to_owned()));
        }
    }
    out.sort();
    out
}

fn has_extension(path: &Path, wanted: &str) -> bool {
    path.extension().is_some_and(|it| it == wanted)
}
