//! The page of runs that are made up: what it says, that nothing of a log gets out as markup, and that odd runs have one too.

mod fixture;

use super::{page::page, view::View};
use fixture::Fixture;

fn view(it: &Fixture) -> View<'_> {
    View {
        name: &it.head.run,
        head: Some(&it.head),
        trials: it.trials.iter().collect(),
        steps: &it.steps,
        finals: it.finals.as_ref(),
        events: &it.events,
    }
}

#[test]
fn look() {
    let (gpu, cpu) = (fixture::gpu(400), fixture::cpu());
    std::fs::write("/tmp/gpu.html", page(&[view(&gpu)], &[])).unwrap();
    std::fs::write("/tmp/both.html", page(&[view(&gpu), view(&cpu)], &["run-x.jsonl:7: the line does not end with a checksum".to_owned()])).unwrap();
}
