//! Links between pages, and the paths that they name.

use std::{collections::BTreeSet, fs};

use super::{pages, repository};

/// The places that the links of a page lead to, without those on the web and within the page. What a fenced block shows
/// is no link.
fn links(text: &str) -> Vec<&str> {
    let prose = text.split("\n```").step_by(2);
    let ends = prose.flat_map(|it| it.split("](").skip(1)).filter_map(|it| it.split_once(')'));
    let places = ends.filter_map(|it| it.0.split('#').next());
    places.filter(|it| !it.is_empty() && !it.contains("://")).collect()
}

#[test]
fn links_lead_to_files() {
    let mut all = pages(&repository().join("docs/src"));
    let root = [
        "README.md",
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
        "bench/README.md",
        "editors/README.md",
    ];
    all.extend(root.map(|it| repository().join(it)));
    let (mut wrong, mut count) = (vec![], 0);
    for page in &all {
        let text = fs::read_to_string(page).unwrap();
        for place in links(&text) {
            count += 1;
            if !page.parent().unwrap().join(place).exists() {
                wrong.push(format!("{}: {place}", page.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 400, "{count}");
}

/// mdBook makes pages of what the summary names, and of nothing else.
#[test]
fn the_summary_names_every_page_once() {
    let source = repository().join("docs/src");
    let text = fs::read_to_string(source.join("SUMMARY.md")).unwrap();
    let named = links(&text);
    let once: BTreeSet<_> = named.iter().map(|it| source.join(it)).collect();
    assert_eq!(once.len(), named.len(), "a page is there twice");
    let summary = source.join("SUMMARY.md");
    let there: BTreeSet<_> = pages(&source).into_iter().filter(|it| *it != summary).collect();
    assert_eq!(once, there);
}

/// The recipes of CONTRIBUTING.md are about files that there are.
#[test]
fn paths_named_to_contributors_exist() {
    let text = fs::read_to_string(repository().join("CONTRIBUTING.md")).unwrap();
    let spans = text.split('`').skip(1).step_by(2);
    let paths = spans.filter_map(|it| it.split_whitespace().next()).filter(|it| it.contains('/'));
    let paths: Vec<_> = paths.collect();
    let gone: Vec<_> = paths.iter().filter(|it| !repository().join(it).exists()).collect();
    assert!(gone.is_empty(), "{gone:?}");
    assert!(paths.len() > 25, "{paths:?}");
}
