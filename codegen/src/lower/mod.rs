//! Lowering: from a scheduled [`Func`] to a [`Module`] ready to print.
//!
//! The passes are one table, [`PASSES`], run in order. Those before `lower_blocks` map programs of blocks
//! to programs of blocks; those after it map kernels to kernels. A pass takes its input by value, gives its output
//! by value, and may refuse with a [`LowerError`].
//!
//! Between `lower_blocks` and `flatten` subscripts are still one a dimension, because proofs about who touches
//! which element are much easier there; the shapes travel in the `Context`.

pub(crate) mod analysis;
mod error;
mod marks;
pub(crate) mod passes;
mod report;

use indexmap::IndexMap;
use ir::{Buffer, Func, Mechanism, Module, Name, Target, pipeline::split_lifetimes};

pub use error::LowerError;
pub use marks::without_marks;
pub use passes::collapse_unit_loops::collapse_unit_loops;
pub(crate) use passes::merge_shared::repacked;
pub use passes::scalarize::scalarize;
pub use passes::settle_copies::settle_copies;
pub use passes::simplify_indices::simplify_indices;
pub use passes::unroll::unroll;
pub use passes::vectorize::{vector_bytes, vectorize};
pub use report::{ComponentReport, PipelineReport, SlotReport, no_effect};

/// A step of the lowering.
pub struct Pass {
    /// Its name, as `--emit` and messages spell it.
    pub name: &'static str,
    /// What it does, in one sentence.
    pub doc: &'static str,
    run: Run,
}

/// The shapes of passes.
enum Run {
    Func(fn(Func, &mut Context) -> Result<Func, LowerError>),
    FuncToKernel(fn(Func, &mut Context) -> Result<Module, LowerError>),
    Module(fn(Module, &mut Context) -> Result<Module, LowerError>),
}

/// A program between two passes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum State {
    /// Before `lower_blocks`.
    Func(Func),
    /// After it.
    Module(Module),
}

/// Where each temporary lives: the innermost loop whose every iteration has its own, or none for the program.
pub(crate) type AllocScopes = IndexMap<Name, Option<Name>>;

/// For a pipelined loop and a component of its asynchronous stages: how it copies, and a sentence that says why.
pub(crate) type Mechanisms = IndexMap<(Name, Name), (Mechanism, String)>;

/// What passes hand to later ones beside the program.
pub(crate) struct Context {
    /// The machine.
    pub(crate) target: Target,
    /// Set by `choose_mechanisms`.
    pub(crate) mechanisms: Mechanisms,
    /// The buffers that `choose_mechanisms` wants copied by `cp.async`.
    pub(crate) copies: passes::choose_mechanisms::Copies,
    /// Set by `check_races`.
    pub(crate) conflicts: analysis::cross_block::CrossBlockConflicts,
    /// Set by `place_allocs`.
    pub(crate) alloc_scopes: AllocScopes,
    /// Set by `lower_blocks`: for shared buffers, the innermost loop of the kernel whose every iteration fills what
    /// it reads.
    pub(crate) shared_alloc_scopes: AllocScopes,
    /// The buffers of the `Func` that `lower_blocks` finds.
    pub(crate) buffers: IndexMap<Name, Buffer>,
    /// Set by `settle_swizzles`: for each buffer with a swizzle, a sentence that tells it.
    pub(crate) swizzles: IndexMap<Name, String>,
    /// What became of each pipeline, inner ones first.
    pub(crate) pipelines: Vec<PipelineReport>,
    /// Whether pipelines are lowered with an [`Instr::Mark`](ir::Instr) before each of their statements.
    pub(crate) notes: bool,
}

impl Context {
    /// Before the first pass.
    pub(crate) fn new(target: &Target) -> Context {
        Context {
            target: target.clone(),
            mechanisms: Mechanisms::new(),
            copies: passes::choose_mechanisms::Copies::new(),
            conflicts: analysis::cross_block::CrossBlockConflicts::new(),
            alloc_scopes: AllocScopes::new(),
            shared_alloc_scopes: AllocScopes::new(),
            buffers: IndexMap::new(),
            swizzles: IndexMap::new(),
            pipelines: Vec::new(),
            notes: false,
        }
    }
}

/// The passes in the order they run.
pub const PASSES: &[Pass] = &[
    Pass {
        name: "split_lifetimes",
        doc: "Gives each pipeline its own of the temporaries that it shares with others in name only.",
        run: Run::Func(|func, _| Ok(split_lifetimes(func))),
    },
    Pass {
        name: "choose_mechanisms",
        doc: "Finds how each asynchronous stage of a pipeline copies: cp.async, through registers, or in its place.",
        run: Run::Func(passes::choose_mechanisms::choose_mechanisms),
    },
    Pass {
        name: "place_allocs",
        doc: "Finds the allocation scope of each temporary: the innermost loop whose iterations do not share its value.",
        run: Run::Func(|func, context| Ok(passes::place_allocs::place_allocs(func, context))),
    },
    Pass {
        name: "check_races",
        doc: "Refuses programs whose threads or blocks meet where no barrier can order them.",
        run: Run::Func(passes::check_races::check_races),
    },
    Pass {
        name: "compact_buffers",
        doc: "Shrinks each temporary to the part that one iteration of its allocation scope touches.",
        run: Run::Func(|func, context| Ok(passes::compact_buffers::compact_buffers(func, context))),
    },
    Pass {
        name: "settle_swizzles",
        doc: "Chooses the swizzles left open by the rows of their buffers, and refuses those that rows cannot hold.",
        run: Run::Func(passes::settle_swizzles::settle_swizzles),
    },
    Pass {
        name: "software_pipeline",
        doc: "Overlaps the iterations of loops annotated with stages, giving their buffers slots.",
        run: Run::Func(|func, context| passes::software_pipeline::software_pipeline(&func, context)),
    },
    Pass {
        name: "serpentine",
        doc: "Lets unrolled loops run backwards in odd iterations of a loop around them, where asked to.",
        run: Run::Func(|func, context| Ok(passes::serpentine::serpentine(func, context))),
    },
    Pass {
        name: "lower_tensors",
        doc: "Puts instructions in the place of tensorised blocks, and fragments into the registers of lanes.",
        run: Run::Func(|func, context| passes::lower_tensors::lower_tensors(func, context)),
    },
    Pass {
        name: "lower_blocks",
        doc: "Substitutes iterators, turns guards and inits into conditions, bound loops into launch axes.",
        run: Run::FuncToKernel(passes::lower_blocks::lower_blocks),
    },
    Pass {
        name: "merge_shared",
        doc: "Lets shared buffers that are never in use at the same time share bytes.",
        run: Run::Module(|module, context| Ok(passes::merge_shared::merge_shared(module, context))),
    },
    Pass {
        name: "insert_barriers",
        doc: "Puts barriers where threads of a block exchange data through shared or global memory.",
        run: Run::Module(passes::insert_barriers::insert_barriers),
    },
    Pass {
        name: "flatten",
        doc: "Turns subscripts into one element offset, with the strides of storage_align, and swizzles it.",
        run: Run::Module(|module, context| passes::flatten::flatten(module, context)),
    },
    Pass {
        name: "check_limits",
        doc: "Refuses kernels with more threads, blocks or shared memory than the target has.",
        run: Run::Module(passes::check_limits::check_limits),
    },
    Pass {
        name: "collapse_unit_loops",
        doc: "Removes loops of one iteration.",
        run: Run::Module(|module, context| Ok(collapse_unit_loops(module, &context.target))),
    },
    Pass {
        name: "vectorize",
        doc: "Turns vectorised loops into accesses of several lanes, or says in a comment why not.",
        run: Run::Module(|module, context| Ok(vectorize(module, &context.target))),
    },
    Pass {
        name: "settle_copies",
        doc: "Makes stores of the asynchronous copies that cp.async cannot do, and says why in a comment.",
        run: Run::Module(passes::settle_copies::settle),
    },
    Pass {
        name: "unroll",
        doc: "On a CPU, writes out the loops that index local arrays.",
        run: Run::Module(|module, context| Ok(unroll(module, &context.target))),
    },
    Pass {
        name: "simplify_indices",
        doc: "Brings each index to its cheapest form and drops conditions that always hold.",
        run: Run::Module(|module, context| Ok(simplify_indices(module, &context.target))),
    },
    Pass {
        name: "scalarize",
        doc: "On a CPU, splits local arrays with constant subscripts into variables.",
        run: Run::Module(|module, context| Ok(scalarize(module, &context.target))),
    },
];

/// Lowers a verified program; `observe` sees the program after each pass.
pub fn lower(
    func: &Func,
    target: &Target,
    observe: &mut dyn FnMut(&Pass, &State),
) -> Result<Module, LowerError> {
    run(func, Context::new(target), observe).map(|it| it.0)
}

/// Lowers a verified program and tells what became of its pipelines, inner ones before outer ones.
pub fn lower_explained(func: &Func, target: &Target) -> Result<(Module, Vec<PipelineReport>), LowerError> {
    run(func, Context::new(target), &mut |_, _| {}).map(explained)
}

/// How each buffer with a swizzle lies in memory, in sentences.
pub fn swizzles(func: &Func, target: &Target) -> Result<Vec<String>, LowerError> {
    let (_, context) = run(func, Context::new(target), &mut |_, _| {})?;
    Ok(context.swizzles.into_values().collect())
}

/// The same with marks that tell where the statements of pipelines are.
pub(crate) fn lower_noted(func: &Func, target: &Target) -> Result<(Module, Vec<PipelineReport>), LowerError> {
    run(func, Context { notes: true, ..Context::new(target) }, &mut |_, _| {}).map(explained)
}

fn explained((module, context): (Module, Context)) -> (Module, Vec<PipelineReport>) {
    (module, report::settled(context))
}

fn run(
    func: &Func,
    mut context: Context,
    observe: &mut dyn FnMut(&Pass, &State),
) -> Result<(Module, Context), LowerError> {
    let state = PASSES.iter().try_fold(State::Func(func.clone()), |state, pass| {
        let state = pass.run.apply(state, &mut context)?;
        observe(pass, &state);
        Ok::<_, LowerError>(state)
    })?;
    match state {
        State::Module(module) => Ok((module, context)),
        State::Func(_) => unreachable!("the table has `lower_blocks`"),
    }
}

impl Run {
    fn apply(&self, state: State, context: &mut Context) -> Result<State, LowerError> {
        match (self, state) {
            (Run::Func(run), State::Func(func)) => run(func, context).map(State::Func),
            (Run::FuncToKernel(run), State::Func(func)) => run(func, context).map(State::Module),
            (Run::Module(run), State::Module(module)) => run(module, context).map(State::Module),
            (Run::Func(_) | Run::FuncToKernel(_), State::Module(_)) | (Run::Module(_), State::Func(_)) => {
                unreachable!(
                    "one pass makes a kernel of a program, and each other pass stands on its side of it"
                )
            }
        }
    }
}
