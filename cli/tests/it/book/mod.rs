//! The book, executed: every console block of `docs/src` and of the README prints what it says.
//!
//! A fenced block with `file=NAME` is written to a folder of its page; a `console` block runs its `$` lines there, in order. What a
//! command prints is standard output, then standard error, then `exit code N` if that is not 0. In what is expected `[..]` stands
//! for anything within a line, and a line `...` for any lines. `INSTA_UPDATE=always cargo test --test it book::` writes down what was
//! printed instead, but for blocks with such marks.

#![expect(clippy::unwrap_used, reason = "a test may stop")]

mod generated;
mod links;
mod page;
mod pattern;
mod play;

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use play::play;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap()
}

/// All pages below a folder, in the order of their paths.
fn pages(folder: &Path) -> Vec<PathBuf> {
    let mut out = vec![];
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            out.extend(pages(&path));
        } else if path.extension().is_some_and(|it| it == "md") {
            out.push(path);
        }
    }
    out.sort();
    out
}

/// Plays pages on two threads and tells everything that is not as it says.
fn expect_true(pages: &[PathBuf]) {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut wrong = vec![];
        while let Some(page) = pages.get(next.fetch_add(1, Ordering::Relaxed)) {
            wrong.extend(play(page, &repository()).err());
        }
        wrong
    };
    let wrong: Vec<String> = thread::scope(|scope| {
        let threads = [scope.spawn(work), scope.spawn(work)];
        threads.into_iter().flat_map(|it| it.join().unwrap()).collect()
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_book_prints_what_it_says() {
    let errors = repository().join("docs/src/errors");
    let mut all = pages(&repository().join("docs/src"));
    all.retain(|it| !it.starts_with(&errors));
    all.push(repository().join("README.md"));
    expect_true(&all);
}

#[test]
fn pages_about_codes_print_what_they_say() {
    expect_true(&pages(&repository().join("docs/src/errors")));
}

/// Every code has a page, which shows how to get it; no page is about a code that does not exist.
#[test]
fn every_code_has_a_page() {
    let folder = repository().join("docs/src/errors");
    let codes: BTreeSet<String> = tilewright::codes().iter().map(ToString::to_string).collect();
    let mut found = BTreeSet::new();
    let mut silent = vec![];
    for path in pages(&folder) {
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        if !name.starts_with("TW") {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let shows =
            text.contains(&format!("error[{name}]")) || text.contains(&format!("\"code\":\"{name}\""));
        if !text.starts_with(&format!("# {name}: ")) || !shows {
            silent.push(name.clone());
        }
        found.insert(name);
    }
    assert!(silent.is_empty(), "these pages lack their heading or do not show their error: {silent:?}");
    let missing: Vec<_> = codes.difference(&found).collect();
    let odd: Vec<_> = found.difference(&codes).collect();
    assert!(missing.is_empty() && odd.is_empty(), "no page: {missing:?}; no code: {odd:?}");
}
