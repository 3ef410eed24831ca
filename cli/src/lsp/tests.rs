//! What is offered, held against all scripts that ship: what somebody wrote there is among it.

use std::path::Path;

use schedule::fields::Takes;

use super::{completion::complete, script::Script, slot::Place};
use crate::text_file::Unsaved;

/// The scripts of all ladders and spaces, with their names.
fn scripts() -> Vec<(String, &'static str)> {
    let rungs = workloads::ladders().iter().flat_map(|ladder| {
        ladder.rungs.iter().map(move |it| (format!("{}/{}", ladder.name, it.name), it.text))
    });
    rungs.chain(workloads::spaces().iter().map(|it| (it.name.to_owned(), it.text))).collect()
}

#[test]
fn what_scripts_say_is_offered_where_they_say_it() {
    let unsaved = Unsaved::default();
    let mut count = 0;
    for (name, text) in scripts() {
        let path = Path::new("script.ron");
        let script = Script::read(path, &text.into(), &unsaved, None);
        assert!(script.wrong.is_empty(), "{name}");
        for node in &script.outline.nodes {
            let offset = node.word.start + 1;
            let word = script.text[node.word.clone()].trim_matches('"');
            let Some(place) = Place::of(&script.text, &script.outline, offset) else { continue };
            let is_name = matches!(place.takes(), Some(Takes::Thing(_)))
                && place.text[node.word.clone()].starts_with('"');
            // Names in alternatives that are not taken, and such as are put together, are there or not.
            let is_applied = script.states.iter().any(|it| {
                it.span.start <= offset && offset < it.span.end && {
                    let step = script.outline.step_at(&script.text, offset);
                    step.is_some_and(|step| script.outline.nodes[step].span == it.span)
                }
            });
            if !is_name || !is_applied || word.contains('{') {
                continue;
            }
            let offered = complete(&script, path, offset, &unsaved);
            let words: Vec<_> = offered.iter().map(|it| it.label.as_str()).collect();
            let step = script
                .outline
                .step_at(&script.text, offset)
                .map(|it| &script.text[script.outline.nodes[it].span.clone()]);
            assert!(words.contains(&word), "{name}: `{word}` in {step:?} is not among {words:?}");
            count += 1;
        }
    }
    assert!(count > 3000, "{count}");
}
