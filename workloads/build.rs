//! Lists the data of this folder, so that adding a workload or a rung is adding a file.
//!
//! `<name>/<name>.ron` is a workload, `<name>/ladders/<ladder>/NN_name.ron` a rung, `<name>/spaces/<space>.ron` a space
//! for the tuner, `<name>/exercises/<course>/NN_name.ron` an exercise and `course.ron` beside it what they teach.
//! `std/<name>.ron` is a library of procedures.

use std::{
    env,
    error::Error,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

fn main() -> Result<(), Box<dyn Error>> {
    let here = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let mut workloads = String::new();
    let mut ladders = String::new();
    let mut spaces = String::new();
    let mut courses = String::new();
    let mut libraries = String::new();
    for library in sorted(&here.join("std"))? {
        if let Some(name) = file_name(&library)?.strip_suffix(".ron") {
            writeln!(libraries, "    {},", shipped(&format!("std/{name}"), &library))?;
        }
    }
    for folder in sorted(&here)? {
        let name = file_name(&folder)?;
        let workload = folder.join(format!("{name}.ron"));
        if !workload.is_file() {
            continue;
        }
        println!("cargo::rerun-if-changed={}", folder.display());
        writeln!(workloads, "    {},", shipped(&name, &workload))?;
        for space in sorted(&folder.join("spaces"))? {
            if let Some(space_name) = file_name(&space)?.strip_suffix(".ron") {
                let path = space.display().to_string();
                writeln!(
                    spaces,
                    "    Space {{ name: {space_name:?}, workload: {name:?}, text: include_str!({path:?}) }},"
                )?;
            }
        }
        for ladder in sorted(&folder.join("ladders"))? {
            println!("cargo::rerun-if-changed={}", ladder.display());
            let rungs = scripts(&ladder)?;
            let ladder = file_name(&ladder)?;
            writeln!(ladders, "    Ladder {{ name: {ladder:?}, workload: {name:?}, rungs: &[{rungs}] }},")?;
        }
        for course in sorted(&folder.join("exercises"))? {
            println!("cargo::rerun-if-changed={}", course.display());
            let text = course.join("course.ron").display().to_string();
            let (exercises, course) = (scripts(&course)?, file_name(&course)?);
            writeln!(
                courses,
                "    Course {{ name: {course:?}, text: include_str!({text:?}), exercises: &[{exercises}] }},"
            )?;
        }
    }
    println!("cargo::rerun-if-changed={}", here.display());
    let table = format!(
        "static WORKLOADS: &[Shipped] = &[\n{workloads}];\n\nstatic LADDERS: &[Ladder] = &[\n{ladders}];\n\n\
         static SPACES: &[Space] = &[\n{spaces}];\n\nstatic COURSES: &[Course] = &[\n{courses}];\n\n\
         static LIBRARIES: &[Shipped] = &[\n{libraries}];\n"
    );
    fs::write(Path::new(&env::var("OUT_DIR")?).join("table.rs"), table)?;
    Ok(())
}

/// The entries of the scripts in a folder: files whose names start with a number.
fn scripts(folder: &Path) -> Result<String, Box<dyn Error>> {
    let mut out = String::new();
    for path in sorted(folder)? {
        let name = file_name(&path)?;
        if let Some(name) =
            name.strip_suffix(".ron").filter(|it| it.starts_with(|it: char| it.is_ascii_digit()))
        {
            write!(out, "{}, ", shipped(name, &path))?;
        }
    }
    Ok(out)
}

/// The entry of a file.
fn shipped(name: &str, path: &Path) -> String {
    let path = path.display().to_string();
    format!("Shipped {{ name: {name:?}, text: include_str!({path:?}) }}")
}

/// What a folder holds, in the order of names; nothing if there is no such folder.
fn sorted(folder: &Path) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    if !folder.is_dir() {
        return Ok(vec![]);
    }
    let mut out: Vec<_> = fs::read_dir(folder)?.map(|it| it.map(|it| it.path())).collect::<Result<_, _>>()?;
    out.sort();
    Ok(out)
}

fn file_name(path: &Path) -> Result<String, Box<dyn Error>> {
    let name = path.file_name().and_then(|it| it.to_str());
    Ok(name.ok_or_else(|| format!("{} has no readable name", path.display()))?.to_owned())
}
