//! Embeds the pages about codes, `docs/src/errors/TW1001.md`, for `tilewright explain`. The link `errors` in this folder
//! leads to them; the package has them in its place.

use std::{env, fmt::Write, fs, path::Path};

fn main() {
    let folder = Path::new(&env::var("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("errors");
    let folder = folder.canonicalize().expect("the pages are in the repository and in the package");
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut pages: Vec<_> = fs::read_dir(&folder)
        .expect("the pages can be listed")
        .map(|it| it.expect("a folder can be read to its end").path())
        .filter(|it| it.extension().is_some_and(|it| it == "md"))
        .collect();
    pages.sort();
    let mut text = "&[\n".to_owned();
    for page in pages {
        let name = page.file_stem().expect("a page has a name").to_string_lossy().into_owned();
        if name.starts_with("TW") {
            println!("cargo::rerun-if-changed={}", page.display());
            let _ = writeln!(text, "    ({name:?}, include_str!({:?})),", page.display());
        }
    }
    text += "]\n";
    let out = Path::new(&env::var("OUT_DIR").expect("cargo sets it")).join("pages.rs");
    fs::write(out, text).expect("cargo's folder can be written");
}
