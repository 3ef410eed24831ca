//! What the files of a crate import from each other, read from their texts: no circle of imports goes through two
//! folders, so that folders can be read in an order.
//!
//! A re-export is followed to the file that has the item, so a `lib.rs` or `mod.rs` that only names what is below it
//! stands in no circle. Methods and traits that no file has to import are not seen.

#![expect(clippy::unwrap_used, reason = "a test may stop")]

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fs,
    path::Path,
};

use crate::{
    tidy::{CRATES, files, root},
    tokens::{is_word, tokens, without_tests},
};

/// One name that a `use` brings into a module.
#[derive(Debug)]
struct Import {
    name: String,
    path: Vec<String>,
    is_exported: bool,
}

/// What a file says about others.
#[derive(Debug, Default)]
struct Source {
    file: String,
    imports: Vec<Import>,
    /// Paths of two words or more that stand in its code.
    paths: BTreeSet<Vec<String>>,
    /// All words of its code.
    words: BTreeSet<String>,
}

/// Reads a file. Visibilities are dropped: `pub(in crate::x)` imports nothing.
fn source(file: &str, text: &str) -> Source {
    let tokens = without_tests(&tokens(text));
    let mut out = Source { file: file.to_owned(), ..Source::default() };
    let (mut at, mut is_exported) = (0, false);
    while at < tokens.len() {
        match &*tokens[at] {
            "pub" => {
                is_exported = true;
                at += 1;
                if tokens[at] == "(" {
                    at += 1 + tokens[at..].iter().position(|it| it == ")").unwrap();
                }
                continue;
            }
            "mod" => at += 1,
            "use" if tokens[at + 1] != "<" => {
                at += 1;
                imports(&tokens, &mut at, &[], is_exported, &mut out.imports);
            }
            word if is_word(word) => {
                let mut path = vec![word.to_owned()];
                while tokens.get(at + 1).is_some_and(|it| it == "::")
                    && tokens.get(at + 2).is_some_and(|it| is_word(it))
                {
                    path.push(tokens[at + 2].clone());
                    at += 2;
                }
                out.words.insert(path[0].clone());
                if path.len() > 1 {
                    out.paths.insert(path);
                }
            }
            _ => {}
        }
        is_exported = false;
        at += 1;
    }
    out
}

/// Reads a tree of a `use`; `at` is then at what ends it.
fn imports(tokens: &[String], at: &mut usize, prefix: &[String], is_exported: bool, out: &mut Vec<Import>) {
    let mut path = prefix.to_vec();
    let mut name = None;
    loop {
        match &*tokens[*at] {
            "{" => {
                while tokens[*at] != "}" {
                    *at += 1;
                    imports(tokens, at, &path, is_exported, out);
                }
                *at += 1;
                return;
            }
            "," | "}" | ";" => break,
            "as" => {
                *at += 1;
                name = Some(tokens[*at].clone());
            }
            "::" => {}
            "self" if !path.is_empty() => {}
            word => path.push(word.to_owned()),
        }
        *at += 1;
    }
    if path.len() > prefix.len() || tokens[*at - 1] == "self" {
        let name = name.unwrap_or_else(|| path.last().unwrap().clone());
        out.push(Import { name, path, is_exported });
    }
}

/// The modules of a crate by their paths.
struct Crate(BTreeMap<Vec<String>, Source>);

impl Crate {
    /// Reads the files of a crate, each with its path below `src` and its text.
    fn read(files: &BTreeMap<String, String>) -> Self {
        let module = |file: &str| {
            let mut path: Vec<_> = file.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
            let is_folder = path.last().is_some_and(|it| it == "mod" || it == "lib");
            path.truncate(path.len() - usize::from(is_folder));
            path
        };
        let modules = files.iter().map(|(file, text)| (module(file), source(file, text)));
        Self(modules.filter(|(it, _)| !it.contains(&"tests".to_owned())).collect())
    }

    fn child(&self, module: &[String], name: &str) -> Option<Vec<String>> {
        let child = [module, &[name.to_owned()]].concat();
        self.0.contains_key(&child).then_some(child)
    }

    /// What a `use` in a module calls by this name, from the root of the crate.
    fn imported(&self, module: &[String], name: &str) -> Option<Vec<String>> {
        let import = self.0.get(module)?.imports.iter().find(|it| it.name == name && it.path != [name])?;
        self.absolute(module, &import.path)
    }

    /// A path that stands in a module, from the root of the crate; nothing if it leads out of the crate.
    fn absolute(&self, module: &[String], path: &[String]) -> Option<Vec<String>> {
        let (first, rest) = path.split_first()?;
        let start = match &**first {
            "crate" => vec![],
            "self" => module.to_vec(),
            "super" if rest.first().is_some_and(|it| it == "super") => {
                return self.absolute(module.split_last()?.1, rest);
            }
            "super" => module.split_last()?.1.to_vec(),
            name => self.child(module, name).or_else(|| self.imported(module, name))?,
        };
        Some([&*start, rest].concat())
    }

    /// The module that defines what stands at a path from the root; nothing for a module itself.
    fn home(&self, path: &[String]) -> Option<&Source> {
        let mut module = vec![];
        for (at, name) in path.iter().enumerate() {
            let rest = &path[at + 1..];
            let imported = || self.imported(&module, name);
            module = match self.child(&module, name) {
                Some(child) if !rest.is_empty() => child,
                child => match imported() {
                    Some(start) => return self.home(&[&*start, rest].concat()),
                    None if child.is_some() => return None,
                    None => return self.0.get(&module),
                },
            };
        }
        None
    }

    /// Which files each file imports from.
    fn edges(&self) -> BTreeMap<&str, BTreeSet<&str>> {
        let mut out: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (module, source) in &self.0 {
            let used = source.imports.iter().filter(|it| !it.is_exported || source.words.contains(&it.name));
            for path in used.map(|it| &it.path).chain(&source.paths) {
                let Some(path) = self.absolute(module, path) else { continue };
                let glob = path.last().is_some_and(|it| it == "*");
                assert!(!glob, "{}: say what it imports instead of `*`", source.file);
                let home = self.home(&path).map(|it| &*it.file);
                out.entry(&source.file).or_default().extend(home.filter(|it| *it != source.file));
            }
        }
        out
    }

    /// The folder of a file; that of `x.rs` is `x` if there is such a folder.
    fn folder<'a>(&self, file: &'a str) -> &'a str {
        let module = file.trim_end_matches(".rs");
        let is_inside = |it: &Source| it.file.strip_prefix(module).is_some_and(|it| it.starts_with('/'));
        let parent = file.rsplit_once('/').map_or("", |it| it.0);
        if self.0.values().any(is_inside) { module } else { parent }
    }

    /// Circles of imports that go through two folders, as their files: short ones, and no import in two of them.
    fn circles(&self) -> Vec<String> {
        let mut edges = self.edges();
        let mut out = vec![];
        loop {
            let all = edges.iter().flat_map(|(from, all)| all.iter().map(move |to| (*from, *to)));
            let crossing = all.filter(|(from, to)| self.folder(from) != self.folder(to));
            let circles = crossing.filter_map(|(from, to)| shortest(&edges, to, from));
            let Some(mut circle) = circles.min_by_key(Vec::len) else { return out };
            circle.push(circle[0]);
            out.push(circle.join(" → "));
            for pair in circle.windows(2) {
                edges.get_mut(pair[0]).unwrap().remove(pair[1]);
            }
        }
    }
}

/// The files on a shortest way along imports, both ends included.
fn shortest<'a>(
    edges: &BTreeMap<&'a str, BTreeSet<&'a str>>,
    from: &'a str,
    to: &'a str,
) -> Option<Vec<&'a str>> {
    let mut before = BTreeMap::from([(from, from)]);
    let mut queue = VecDeque::from([from]);
    while let Some(file) = queue.pop_front() {
        for next in edges.get(file).into_iter().flatten() {
            if !before.contains_key(next) {
                before.insert(next, file);
                queue.push_back(next);
            }
        }
    }
    let mut path = vec![to];
    while *path.last()? != from {
        path.push(before.get(path.last()?)?);
    }
    path.reverse();
    Some(path)
}

#[test]
fn no_circle_of_imports_goes_through_two_folders() {
    let mut circles = vec![];
    for krate in CRATES {
        let src = root().join(krate).join("src");
        let name = |it: &Path| it.strip_prefix(&src).unwrap().to_str().unwrap().to_owned();
        let files = files(&src, "rs").into_iter().filter(|it| !it.ends_with("src/main.rs"));
        let files = files.map(|it| (name(&it), fs::read_to_string(it).unwrap())).collect();
        circles.extend(Crate::read(&files).circles().iter().map(|it| format!("{krate}/src: {it}")));
    }
    assert!(circles.is_empty(), "move what is misplaced\n{}", circles.join("\n"));
}

/// The circles of a crate of these files.
fn circles_of(files: &[(&str, &str)]) -> Vec<String> {
    let files = files.iter().map(|(file, text)| ((*file).to_owned(), (*text).to_owned())).collect();
    Crate::read(&files).circles()
}

#[test]
fn circles_are_found_through_facades_names_and_paths() {
    let lib = ("lib.rs", "mod a; mod b; pub use a::{one::One, Two as Deux};");
    let two = ("a/mod.rs", "pub mod one; pub struct Two; // crate::b::f");
    // A facade leads to the file that has the item.
    let one = (
        "a/one.rs",
        "use std::fmt; use crate::b; pub struct One; fn f<'a>(c: char) { c == '\"'; b::f(\"\\\"\") }",
    );
    let back = ("b.rs", "use crate::{Deux, One}; pub fn f(_: &str) {}");
    assert_eq!(circles_of(&[lib, two, one, back]), ["b.rs → a/one.rs → b.rs"]);
    // What is in one folder may go around.
    let inside = ("a.rs", "pub mod one; use one::One; pub struct Two;");
    let around = ("a/one.rs", "use super::Two; pub struct One;");
    assert!(circles_of(&[lib, inside, around, ("b.rs", "")]).is_empty());
    // Nor do tests and texts count.
    let tests = (
        "a/one.rs",
        "pub struct One; const S: &str = r#\"crate::b::f\"#; #[cfg(test)] mod tests { use crate::b; fn g() { b::f() } }",
    );
    assert!(circles_of(&[lib, two, tests, back]).is_empty());
}
