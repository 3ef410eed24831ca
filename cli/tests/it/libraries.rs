//! The libraries that ship: each procedure says what it does and has an example, a script that uses the library, calls the
//! procedure and computes right numbers at its sizes.

#![expect(clippy::unwrap_used, reason = "a test may stop")]

use std::{collections::BTreeMap, fs};

use schedule::{
    ScriptError,
    procedure::{Definitions, expand},
    script::{Script, ScriptTarget},
};

use crate::common::tilewright;

fn find(name: &str, _: &str) -> Result<(String, String), String> {
    let it = workloads::find_library(name).ok_or("it does not ship")?;
    Ok((it.name.to_owned(), it.text.to_owned()))
}

fn libraries() -> impl Iterator<Item = Definitions> {
    workloads::libraries().iter().map(|it| {
        let res = Definitions::of_library(it.name, it.text, &find);
        res.unwrap_or_else(|err| panic!("{}: {err}", it.name))
    })
}

#[test]
fn procedures_that_ship_have_names_of_their_own_and_say_what_they_do() {
    let mut homes = BTreeMap::new();
    for library in libraries() {
        assert!(!library.about.is_empty(), "{} has no `about`", library.name());
        for it in library.own() {
            assert!(it.about.ends_with('.'), "{} says nothing about `{}`", library.name(), it.name);
            let other = homes.insert(it.name.to_string(), library.name().to_owned());
            assert_eq!(other, None, "`{}` of {}", it.name, library.name());
        }
    }
}

#[test]
fn examples_of_procedures_call_them_and_compute_right_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let mut wrong = vec![];
    for library in libraries() {
        for it in library.own() {
            let told = match &it.example {
                Some(example) => run(folder.path(), library.name(), &it.name, example),
                None => Err("it has no example".to_owned()),
            };
            wrong.extend(told.err().map(|err| format!("{} of {}: {err}", it.name, library.name())));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Runs an example on the CPU, or on the virtual GPU as the GPU that it is for.
fn run(folder: &std::path::Path, library: &str, name: &str, example: &str) -> Result<(), String> {
    let expanded = expand("example.ron", example, &find).map_err(|err| err.to_string())?;
    // An example is a script that can be copied and run, so it says itself what it uses.
    if !expanded.libraries().any(|it| it == library) {
        return Err("its example does not use its library".to_owned());
    }
    if !expanded.called().any(|it| it == name) {
        return Err("its example does not call it".to_owned());
    }
    let script = Script::parse(expanded.text()).map_err(|err: ScriptError| err.to_string())?;
    fs::write(folder.join("example.ron"), example).unwrap();
    let is_for_gpu = matches!(script.target.map(|it| it.value), Some(ScriptTarget::Cuda(_)));
    if !is_for_gpu && codegen::device::cc::find().is_err() {
        return Ok(());
    }
    let target: &[&str] = if is_for_gpu { &["--target", "vgpu"] } else { &[] };
    let told = tilewright(folder, &[&["run", "example.ron"], target].concat());
    let is_right = told.ends_with("exit code 0") && (!is_for_gpu || told.contains("findings   none"));
    if is_right { Ok(()) } else { Err(told) }
}
