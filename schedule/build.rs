//! Makes the typed builders of all primitives from their declarations in `src/primitive`: constructors and setters of the structs,
//! the methods of sessions and schedules, and for the tests a function that takes any step through them. A new primitive has its
//! builder by being declared; one with a field of a new type does not compile before `IntoField` knows the type.

#[path = "src/declared.rs"]
mod declared;
#[path = "builders/text.rs"]
mod text;

use std::{env, fs, path::Path};

use text::Builder;

fn main() {
    println!("cargo::rerun-if-changed=builders");
    println!("cargo::rerun-if-changed=src/declared.rs");
    println!("cargo::rerun-if-changed=src/primitive");
    let folder = Path::new(&env::var("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("src/primitive");
    let read = |path: &Path| fs::read_to_string(path).expect("the source of the package can be read");
    let list = read(&folder.join("mod.rs"));
    let files =
        list.lines().filter_map(|it| it.trim().split_once(", include_str!(\"")?.1.strip_suffix("\")),"));
    // What is no primitive of its own, such as `choose`, stands in other folders.
    let files = files.filter(|it| !it.starts_with(".."));
    let sources: Vec<_> = files.map(|it| (it.trim_end_matches(".rs"), read(&folder.join(it)))).collect();
    let builders: Vec<_> = sources.iter().flat_map(|(name, source)| Builder::all(name, source)).collect();

    let out = env::var("OUT_DIR").expect("cargo sets it");
    let write = |name: &str, text: String| {
        fs::write(Path::new(&out).join(name), text).expect("cargo's folder can be written");
    };
    write("builders.rs", text::structs(&builders));
    write("step_methods.rs", text::methods(&builders));
    write("through_builders.rs", text::tests(&builders));
}
