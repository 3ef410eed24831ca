//! Pages that follow from the source: one for each primitive and each library that ships, and the lists of them and of codes.

use std::{
    collections::BTreeSet,
    env,
    fmt::Write,
    fs,
    path::{Path, PathBuf},
};

use schedule::{primitive, procedure::Definitions};

/// What stands in a page that nobody writes by hand.
const MARK: &str = "<!-- Made from the source by `INSTA_UPDATE=always cargo test --test it book::`. -->\n";

#[test]
fn generated_pages_follow_the_source() {
    let source = super::repository().join("docs/src");
    let mut wrong = vec![];
    let mut expected = BTreeSet::new();
    for name in names() {
        let path = source.join("primitives").join(format!("{name}.md"));
        let text = primitive::explain(name).unwrap();
        compare(&path, &format!("# `{name}`\n\n{MARK}\n{}\n", text.trim_end()), &mut wrong);
        expected.insert(path);
    }
    let found: BTreeSet<PathBuf> = super::pages(&source.join("primitives")).into_iter().collect();
    assert_eq!(found, expected, "a page for each primitive, and no other");
    compare(&source.join("primitives.md"), &primitives(), &mut wrong);
    let libraries = libraries();
    let written: BTreeSet<PathBuf> = libraries.iter().map(|it| library_path(&source, it)).collect();
    let _ = fs::create_dir_all(source.join("std"));
    for it in &libraries {
        compare(&library_path(&source, it), &library_page(it), &mut wrong);
    }
    let found: BTreeSet<PathBuf> = super::pages(&source.join("std")).into_iter().collect();
    assert_eq!(found, written, "a page for each library, and no other");
    compare(&source.join("errors.md"), &errors(&source), &mut wrong);
    let summary = source.join("SUMMARY.md");
    let text = fs::read_to_string(&summary).unwrap();
    let head = text.split_inclusive("(primitives.md)\n").next().unwrap();
    compare(&summary, &format!("{head}{}", lists(&source, &text)), &mut wrong);
    assert!(wrong.is_empty(), "these pages are not what the source says: {wrong:?}");
}

/// Compares a page, or writes it if that is wanted.
fn compare(path: &Path, expected: &str, wrong: &mut Vec<PathBuf>) {
    if fs::read_to_string(path).ok().as_deref() == Some(expected) {
        return;
    }
    if env::var_os("INSTA_UPDATE").is_some_and(|it| it == "always") {
        fs::write(path, expected).unwrap();
    } else {
        wrong.push(path.to_owned());
    }
}

fn names() -> impl Iterator<Item = &'static str> {
    primitive::names().chain(primitive::forms())
}

/// The libraries that ship.
fn libraries() -> Vec<Definitions> {
    let find = |name: &str, _: &str| {
        let it = workloads::find_library(name).ok_or("it does not ship")?;
        Ok((it.name.to_owned(), it.text.to_owned()))
    };
    let all = workloads::libraries().iter();
    all.map(|it| Definitions::of_library(it.name, it.text, &find).unwrap()).collect()
}

/// The page of a library: `std/mma.md` of `std/mma`.
fn library_path(source: &Path, library: &Definitions) -> PathBuf {
    source.join(format!("{}.md", library.name()))
}

fn library_page(library: &Definitions) -> String {
    let mut out = format!("# `{}`\n\n{MARK}\n{}", library.name(), library.overview());
    for it in library.own() {
        let _ = write!(out, "\n## `{}`\n\n{}", it.name, library.manual(it));
    }
    out
}

/// The first paragraph of a manual on one line.
fn summary(name: &str) -> String {
    let text = primitive::explain(name).unwrap();
    text.lines().take_while(|it| !it.trim().is_empty()).collect::<Vec<_>>().join(" ")
}

fn primitives() -> String {
    let mut out = format!("# Primitives\n\n{MARK}\n| primitive | what it does |\n| --- | --- |\n");
    for name in names() {
        let words = summary(name).replace('|', "\\|");
        let _ = writeln!(out, "| [`{name}`](primitives/{name}.md) | {words} |");
    }
    out
}

/// Each code with the heading of its page.
fn codes(source: &Path) -> Vec<(String, String)> {
    let pages = super::pages(&source.join("errors")).into_iter();
    let heading = |path: PathBuf| {
        let text = fs::read_to_string(&path).unwrap();
        let (code, words) = text.lines().next()?.strip_prefix("# ")?.split_once(": ")?;
        Some((code.to_owned(), words.to_owned()))
    };
    pages.filter_map(heading).collect()
}

fn errors(source: &Path) -> String {
    let mut out = format!(
        "# Errors\n\n{MARK}\nEvery refusal has a code. Its page says what is refused and why, with a script that is refused and \
         one that is not;\n`tilewright explain TW1002` prints it.\n\n| code | what is refused |\n| --- | --- |\n"
    );
    for (code, words) in codes(source) {
        let _ = writeln!(out, "| [{code}](errors/{code}.md) | {} |", words.replace('|', "\\|"));
    }
    out
}

/// The part of the table of contents that lists primitives, then what was written by hand behind it with the libraries in it, then
/// the codes.
fn lists(source: &Path, text: &str) -> String {
    let mut out = String::new();
    for name in names() {
        let _ = writeln!(out, "  - [{name}](primitives/{name}.md)");
    }
    let middle = text.split_once("(primitives.md)\n").unwrap().1;
    let by_hand = |it: &&str| {
        !it.starts_with("  - [")
            || !["primitives/", "errors/", "std/"].iter().any(|folder| it.contains(&format!("]({folder}")))
    };
    for line in middle.lines().filter(by_hand) {
        out.extend([line, "\n"]);
        if line.ends_with("(procedures.md)") {
            for it in libraries() {
                let _ = writeln!(out, "  - [{0}]({0}.md)", it.name());
            }
        }
    }
    for (code, words) in codes(source) {
        let _ = writeln!(out, "  - [{code}: {words}](errors/{code}.md)");
    }
    out
}
