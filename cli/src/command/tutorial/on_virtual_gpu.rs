//! A ladder without a GPU: what changes, what each rung needs, and what the virtual GPU counts.

use ir::{Arch, Target};
use tuner::Work;

use super::{
    BuiltRungs, RungRange, Tutorial, build_all, lines::ShownOnVirtualGpu, most_demanding, plans, size_word,
};
use crate::{
    build::sketch,
    constant::True,
    diagnostic::Diagnostic,
    ladder::{Size, report::Rungs},
    plan::Plan,
    term::shell::Shell,
    usage_error::UsageError,
    virtual_gpu,
};

/// Operations, or bytes, from which on the virtual GPU takes minutes for a ladder.
const LARGE: f64 = 4e7;

/// What it does instead, where the user gives no size: the largest of these that takes some seconds, as far as there is one.
const SMALL: [&str; 3] = ["128", "64", "32"];
const SOME_SECONDS: f64 = 1e7;

impl Tutorial {
    /// Shows the rungs without measuring.
    pub(super) fn on_virtual_gpu(
        &self,
        part: &RungRange,
        sizes: &[Option<&Size>],
        arch: Option<&Arch>,
        shell: &mut Shell<'_>,
    ) -> Result<(), Diagnostic> {
        if self.ablate {
            let title = "`--ablate` measures, and the virtual GPU has no clock";
            return Err(Diagnostic::usage(UsageError::Options, title));
        }
        let given = plans(&part.ladder, None)?;
        let target = most_demanding(&given).virtual_target(arch);
        let large = given.iter().find(|it| self.sizes.is_empty() && amount(it) > LARGE);
        if let Some(large) = large {
            let (own, small) = (size_word(&large.params), small(part)?);
            let word = &small.word;
            shell.note(&format!(
                "at {own} the virtual GPU would take long: this is at {word}; `--size {own}` insists"
            ));
            self.inspect(part, Some(&small), &target, shell)?;
        } else {
            sizes.iter().try_for_each(|it| self.inspect(part, *it, &target, shell))?;
        }
        shell.report(&ShownOnVirtualGpu { ok: True, ladder: &part.ladder.name })
    }

    /// All rungs at one size.
    fn inspect(
        &self,
        part: &RungRange,
        size: Option<&Size>,
        target: &Target,
        shell: &mut Shell<'_>,
    ) -> Result<(), Diagnostic> {
        let BuiltRungs { plans, built } = build_all(&part.ladder, size, shell, &mut |plan| {
            sketch(plan.schedule(target, None)?.func(), target, &plan.dims)
        })?;
        shell.done();
        let word = size.map_or_else(|| size_word(&plans[0].params), |it| it.word.clone());
        let rungs = Rungs { ladder: &part.ladder, plans: &plans, built: &built, target, first: part.first };
        let views = rungs.views(self.detail());
        let shown = if part.only_last { &views[views.len() - 1..] } else { &views };
        for view in shown.iter().filter(|_| !shell.json) {
            view.print(self.detail(), shell.out)?;
            writeln!(shell.out)?;
        }
        let arch = match target {
            Target::Cuda(arch) => Some(arch),
            Target::Cpu => None,
        };
        virtual_gpu::ladder(&part.ladder.name, &word, (&plans, &views), arch, &self.measure, shell)
    }
}

/// How much there is to do, in operations or bytes, whichever are more.
fn amount(plan: &Plan) -> f64 {
    // What cannot be counted has sizes that are told later.
    Work::of(&plan.func, &plan.dims).map_or(0.0, |it| it.flops.max(it.bytes))
}

fn small(part: &RungRange) -> Result<Size, Diagnostic> {
    let size = |word: &str| Size::parse(word).expect("a number is a size");
    for word in SMALL {
        let plans = plans(&part.ladder, Some(&size(word)))?;
        if plans.iter().all(|it| amount(it) <= SOME_SECONDS) {
            return Ok(size(word));
        }
    }
    Ok(size(SMALL[SMALL.len() - 1]))
}
