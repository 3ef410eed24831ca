//! `README.md` of a bundle.

use ir::Target;
use tuner::build::target_word;

use super::{
    common::{TOOL, c_args, signature_words},
    expr::fill,
    maps,
    spec::Spec,
};

/// The page. `left_out` says what the bundle has not, and why.
pub(super) fn readme(spec: &Spec<'_>, left_out: &[String]) -> String {
    let subject = spec.subject;
    let args = c_args(spec);
    let left_out: Vec<_> = left_out.iter().map(|it| format!("* {it}\n")).collect();
    let dims = subject.dims.iter().next().map(|(name, value)| format!(" {name}={value}"));
    let template = match subject.target {
        Target::Cpu => include_str!("templates/README.cpu.md"),
        Target::Cuda(_) => include_str!("templates/README.cuda.md"),
    };
    fill(
        template,
        &[
            ("FUNC", subject.module.name.to_string()),
            ("TARGET", target_word(&subject.target)),
            ("TOOL", TOOL.to_owned()),
            ("ORIGIN", subject.origin.clone()),
            ("NAME", spec.name.to_owned()),
            ("SYMBOL", spec.unique.clone()),
            ("ARGS", args),
            ("SIGNATURE", signature_words(spec).replace("\n   ", "\n* ")),
            ("MAPS", maps::readme(spec)),
            ("DIM", dims.unwrap_or_default()),
            ("LEFT_OUT", left_out.concat()),
        ],
    )
}
