//! The panels that take a while: what compilers say of a program, and what the virtual GPU finds in it.

use codegen::device::Launch;
use ir::{Arch, Target};
use tuner::worker::leave;

use super::{
    panels::{Program, missing, notes, printed, refusal, refused},
    told::{Panel, Told},
    work::{Tell, rendered},
};
use crate::{
    build::{Built, build, expect_gpu, sketch},
    command::show::{
        html::result::table,
        resources::{HEADS, needs, remarks},
    },
    diagnostic::Diagnostic,
    plan::Plan,
    term::shell::{Aside, Shell},
    virtual_gpu,
};

/// Tells what the kernels need, and the timelines with what their slots cost.
pub(super) fn tell(
    plan: &Plan,
    program: &Program<'_>,
    target: &Target,
    tell: Tell<'_>,
) -> Result<(), Diagnostic> {
    let panel = Panel::Resources;
    let arch = match expect_gpu(target).and_then(|arch| plan.expect_dims().map(|()| arch)) {
        Ok(it) => it,
        Err(err) => {
            return tell(&Told::Panel { panel, html: missing(&err), text: err.message().to_owned() });
        }
    };
    tell(&Told::Progress { panel, words: "compiling".to_owned() })?;
    let told = match build(program.func, target, &plan.dims) {
        Ok(built) => compiled(&built, arch),
        // Without a compiler there still are launches.
        Err(err) => match sketch(program.func, target, &plan.dims) {
            Ok(built) => {
                let html = launches(&built) + &refused(&rendered(&err));
                Told::Panel { panel, html, text: launch_words(&built).collect::<Vec<_>>().join("\n") }
            }
            Err(err) => refusal(panel, &err),
        },
    };
    tell(&told)?;
    program.tell_timeline(true, tell)
}

/// What the compiler says, and how kernels are launched. As text it is a figure a line, so that a difference names what differs.
fn compiled(built: &Built, arch: &Arch) -> Told {
    let rows: Vec<_> = needs(built, arch).into_iter().map(|it| it.cells).collect();
    let remarks = remarks(built);
    let mut text = vec![];
    for row in &rows {
        let figures = HEADS.iter().zip(row).skip(1);
        text.extend(figures.map(|(head, cell)| format!("{} {head}: {cell}", row[0])));
    }
    text.extend(launch_words(built));
    text.extend(remarks.iter().cloned());
    let html = table(HEADS, &rows) + &launches(built) + &notes(&remarks);
    Told::Panel { panel: Panel::Resources, html, text: text.join("\n") }
}

/// How kernels are launched, as a table.
fn launches(built: &Built) -> String {
    let row = |it: &Launch| [it.kernel.clone(), axes(it.grid), axes(it.block), it.shared_bytes.to_string()];
    let rows: Vec<_> = built.program().launches.iter().map(row).collect();
    table(["kernel", "grid", "block", "dynamic shared bytes"], &rows)
}

/// The same, a figure a line.
fn launch_words(built: &Built) -> impl Iterator<Item = String> {
    built.program().launches.iter().flat_map(|it| {
        [
            format!("{} grid: {}", it.kernel, axes(it.grid)),
            format!("{} block: {}", it.kernel, axes(it.block)),
            format!("{} dynamic shared bytes: {}", it.kernel, it.shared_bytes),
        ]
    })
}

fn axes(it: [u32; 3]) -> String {
    it.map(|it| it.to_string()).join(" × ")
}

/// Runs a script on the virtual GPU, and tells what `run --target vgpu` prints.
pub(super) fn run_virtually(plan: &Plan, target: &Target, tell: Tell<'_>) -> Result<(), Diagnostic> {
    let panel = Panel::VirtualGpu;
    let arch = match target {
        Target::Cuda(arch) => Some(arch),
        Target::Cpu => None,
    };
    tell(&Told::Progress { panel, words: "lowering".to_owned() })?;
    let (mut out, mut said) = (vec![], vec![]);
    let name = plan.path.display().to_string();
    let found = {
        let mut ear = |it: Aside<'_>| match it {
            Aside::Note(it) => said.push(it.to_owned()),
            Aside::Progress(it) => {
                // Where nobody listens any more, nobody waits for the end either.
                if tell(&Told::Progress { panel, words: it.to_owned() }).is_err() {
                    leave();
                }
            }
        };
        virtual_gpu::script(plan, &name, arch, virtual_gpu::SEED, &mut Shell::heard(&mut out, &mut ear))
    };
    let text = String::from_utf8_lossy(&out).into_owned();
    let wrong = found.err().map(|it| rendered(&it)).unwrap_or_default();
    let mut html = if wrong.is_empty() { String::new() } else { refused(&wrong) };
    if !text.is_empty() {
        html += &printed(&text);
    }
    html += &notes(&said);
    tell(&Told::Panel { panel, html, text: wrong + &text })
}
