//! Both engines on the same programs.

use std::{collections::BTreeSet, path::Path};

use super::*;

/// The programs of `tests/vgpu` with the values of their dimensions.
fn corpus() -> Vec<(String, Module, IndexMap<Name, i64>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vgpu");
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|it| it.unwrap().path()).collect();
    paths.sort();
    let read = |path: &std::path::PathBuf| {
        let text = std::fs::read_to_string(path).unwrap();
        let line = text.lines().find_map(|it| it.strip_prefix("// dims: ")).unwrap_or_default();
        let pairs = line.split_whitespace().map(|it| it.split_once('=').unwrap());
        let dims = pairs.map(|(name, value)| (Name::new(name), value.parse().unwrap())).collect();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        (name, ir::text::parse_module(&text).unwrap(), dims)
    };
    paths.iter().map(read).collect()
}

#[test]
fn both_engines_have_the_same_verdicts() {
    let mut compared = 0;
    for (name, module, dims) in corpus() {
        let is_new =
            |it: &ir::Kernel| !it.maps.is_empty() || !it.mbarriers.is_empty() || !it.roles.is_empty();
        if module.kernels.iter().any(is_new) {
            continue;
        }
        compared += 1;
        for settings in Settings::hostile(1) {
            let run = |all_resume: bool| {
                let mut memory = IndexMap::new();
                for (name, arg) in module.args.iter().filter(|it| it.1.role == Role::Input) {
                    let len = arg.elements().eval(&|it| dims.get(it).copied()).unwrap();
                    memory.insert(name.clone(), (1..=len).map(|it| it as f64).collect());
                }
                let report = run_on(&module, &dims, &mut memory, &settings, &mut |_| {}, all_resume).unwrap();
                let titles: BTreeSet<_> = report.findings.iter().map(|it| it.finding.title()).collect();
                // Where lanes are split, what a race leads to differs: only one engine splits them.
                let titles = if settings.lockstep { titles } else { titles.into_iter().take(1).collect() };
                (titles, report.stopped)
            };
            assert_eq!(run(true), run(false), "{name} {}", settings.words());
        }
    }
    assert!(compared > 50, "{compared}");
}
