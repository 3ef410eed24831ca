//! Lowering: from a scheduled [`Func`] to a [`Module`] ready to print.
//!
//! The passes are one table, [`PASSES`], run in order. Those before `lower_blocks` map programs of blocks
//! to programs of blocks; those after it map kernels to kernels. A pass takes its input by value, gives its output
//! by value, and may refuse with a [`LowerError`].
//!
//! Between `lower_blocks` and `flatten` subscripts are still one a dimension, because proofs about who touches
//! which element are much easier there; arguments and allocations have their shapes and layouts until then.

pub(crate) mod analysis;
mod context;
mod error;
mod marks;
pub(crate) mod passes;
mod report;

use ir::{Func, Module, Target, pipeline::split_lifetimes};

pub use context::Lowered;
pub(crate) use context::{Context, MechanismChoice};
pub use error::LowerError;
pub use marks::without_findings;
pub use passes::check_phases::error::{Outside, PhaseError};
pub(crate) use passes::merge_shared::repacked;
pub use passes::vectorize::{VECTOR_BYTES, set_vector_bytes, vector_bytes};
pub use report::{ComponentReport, PipelineReport, SlotReport, no_effect};

/// A step of the lowering.
pub struct Pass {
    /// Its name, as texts and messages spell it.
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

/// The passes in the order they run.
pub const PASSES: &[Pass] = &[
    Pass {
        name: "split_lifetimes",
        doc: "Gives each pipeline its own of the temporaries that it shares with others in name only.",
        run: Run::Func(|func, _| Ok(split_lifetimes(func))),
    },
    Pass {
        name: "pad_registers",
        doc: "On a GPU, lets threads compute what registers have room for beyond the end of a ragged dimension.",
        run: Run::Func(|func, context| Ok(passes::pad_registers::pad_registers(func, &context.target))),
    },
    Pass {
        name: "factor_reductions",
        doc: "Lets each thread reduce its own part before the threads of a block reduce together.",
        run: Run::Func(|func, context| passes::factor_reductions::factor_reductions(func, &context.target)),
    },
    Pass {
        name: "choose_mechanisms",
        doc: "Finds how each asynchronous stage of a pipeline copies: TMA, cp.async, through registers, or in its place.",
        run: Run::Func(passes::choose_mechanisms::choose_mechanisms),
    },
    Pass {
        name: "place_allocs",
        doc: "Finds the allocation scope of each temporary: the innermost loop whose iterations do not share its value.",
        run: Run::Func(|func, context| Ok(passes::place_allocs::place_allocs(func, &context.target))),
    },
    Pass {
        name: "check_races",
        doc: "Refuses programs whose threads or blocks meet where no barrier can order them.",
        run: Run::Func(|func, context| passes::check_races::check_races(func, &context.target)),
    },
    Pass {
        name: "compact_buffers",
        doc: "Shrinks each temporary to the part that one iteration of its allocation scope touches.",
        run: Run::Func(|func, context| Ok(passes::compact_buffers::compact_buffers(func, &context.target))),
    },
    Pass {
        name: "settle_swizzles",
        doc: "Chooses the swizzles left open by the rows of their buffers, and refuses those that rows cannot hold.",
        run: Run::Func(|func, context| passes::settle_swizzles::settle_swizzles(func, &context.target)),
    },
    Pass {
        name: "rasterize",
        doc: "Lets loops over tiles run in groups of rows, where asked to.",
        run: Run::Func(|func, _| Ok(passes::rasterize::rasterize(func))),
    },
    Pass {
        name: "reverse",
        doc: "Lets blocks take the iterations of a loop from the last to the first, where asked to.",
        run: Run::Func(|func, _| Ok(passes::reverse::reverse(func))),
    },
    Pass {
        name: "deal_iterations",
        doc: "Lets each block of a persistent grid run several iterations of a loop over blocks, one after the other.",
        run: Run::Func(|func, context| passes::deal_iterations::deal_iterations(func, &context.target)),
    },
    Pass {
        name: "join_iterations",
        doc: "Joins the runs of a pipeline in consecutive iterations of the loop around it, where asked to.",
        run: Run::Func(|func, _| passes::join_iterations::join_iterations(func)),
    },
    Pass {
        name: "exchange_accumulators",
        doc: "Hands sums in tensor memory over from the role that multiplies to the one that reads them.",
        run: Run::Func(|func, context| {
            Ok(passes::exchange_accumulators::exchange_accumulators(func, &context.target))
        }),
    },
    Pass {
        name: "software_pipeline",
        doc: "Overlaps the iterations of loops annotated with stages, giving their buffers slots.",
        run: Run::Func(|func, context| passes::software_pipeline::software_pipeline(&func, context)),
    },
    Pass {
        name: "serpentine",
        doc: "Lets unrolled loops run backwards in odd iterations of a loop around them, where asked to.",
        run: Run::Func(|func, _| Ok(passes::serpentine::serpentine(func))),
    },
    Pass {
        name: "lower_tensors",
        doc: "Puts instructions in the place of tensorised blocks, and fragments into the registers of lanes.",
        run: Run::Func(|func, context| passes::lower_tensors::lower_tensors(func, &context.target)),
    },
    Pass {
        name: "lower_blocks",
        doc: "Substitutes iterators, turns guards and inits into conditions, bound loops into launch axes.",
        run: Run::FuncToKernel(|func, context| passes::lower_blocks::lower_blocks(func, &context.target)),
    },
    Pass {
        name: "merge_shared",
        doc: "Lets shared buffers that are never in use at the same time share bytes.",
        run: Run::Module(|module, _| Ok(passes::merge_shared::merge_shared(module))),
    },
    Pass {
        name: "insert_barriers",
        doc: "Puts barriers where threads of a block exchange data through shared or global memory.",
        run: Run::Module(|module, _| passes::insert_barriers::insert_barriers(module)),
    },
    Pass {
        name: "check_phases",
        doc: "Refuses kernels whose mbarriers, groups in flight and fences are not proved to order what they are there for.",
        run: Run::Module(|module, _| passes::check_phases::check_phases(module)),
    },
    Pass {
        name: "flatten",
        doc: "Turns subscripts into one element offset, with the strides of storage_align, and swizzles it.",
        run: Run::Module(passes::flatten::flatten),
    },
    Pass {
        name: "check_limits",
        doc: "Refuses kernels with more threads, blocks or shared memory than the target has.",
        run: Run::Module(|module, context| passes::check_limits::check_limits(module, &context.target)),
    },
    Pass {
        name: "collapse_unit_loops",
        doc: "Removes loops of one iteration.",
        run: Run::Module(|module, context| {
            Ok(passes::collapse_unit_loops::collapse_unit_loops(module, &context.target))
        }),
    },
    Pass {
        name: "partition_loops",
        doc: "On a GPU, splits loops where a mask or a ragged end begins to matter.",
        run: Run::Module(|module, context| {
            Ok(passes::partition_loops::partition_loops(module, &context.target))
        }),
    },
    Pass {
        name: "vectorize",
        doc: "Turns vectorised loops into accesses of several lanes, or says in a comment why not.",
        run: Run::Module(|module, context| Ok(passes::vectorize::vectorize(module, &context.target))),
    },
    Pass {
        name: "select_copies",
        doc: "Makes stores of the asynchronous copies that cp.async cannot do, and says why in a comment.",
        run: Run::Module(passes::select_copies::select_copies),
    },
    Pass {
        name: "unroll",
        doc: "On a CPU, writes out the loops that index local arrays.",
        run: Run::Module(|module, context| Ok(passes::unroll::unroll(module, &context.target))),
    },
    Pass {
        name: "simplify_indices",
        doc: "Brings each index to its cheapest form and drops conditions that always hold.",
        run: Run::Module(|module, context| {
            Ok(passes::simplify_indices::simplify_indices(module, &context.target))
        }),
    },
    Pass {
        name: "scalarize",
        doc: "On a CPU, splits local arrays with constant subscripts into variables.",
        run: Run::Module(|module, context| Ok(passes::scalarize::scalarize(module, &context.target))),
    },
    Pass {
        name: "index_width",
        doc: "On a GPU, finds the kernels whose indices do not fit 32 bits.",
        run: Run::Module(|module, context| Ok(passes::index_width::index_width(module, &context.target))),
    },
    Pass {
        name: "ring_counters",
        doc: "On a GPU, lets variables go round with loops in the place of remainders.",
        run: Run::Module(|module, context| Ok(passes::ring_counters::ring_counters(module, &context.target))),
    },
    Pass {
        name: "mark_unrolls",
        doc: "On a GPU, marks the loops that the compiler has to write out to keep arrays in registers.",
        run: Run::Module(|module, context| Ok(passes::mark_unrolls::mark_unrolls(module, &context.target))),
    },
    Pass {
        name: "promote_registers",
        doc: "Makes variables of local memory that needs no address.",
        run: Run::Module(|module, context| {
            Ok(passes::promote_registers::promote_registers(module, &context.target))
        }),
    },
];

/// Lowers a verified program; `observe` sees the program after each pass.
pub fn lower(
    func: &Func,
    target: &Target,
    observe: &mut dyn FnMut(&Pass, &State),
) -> Result<Module, LowerError> {
    run(func, Context::new(target), observe).map(|it| it.module)
}

/// Lowers a verified program, and tells what there is to tell about it.
pub fn lower_explained(func: &Func, target: &Target) -> Result<Lowered, LowerError> {
    run(func, Context::new(target), &mut |_, _| {})
}

fn run(
    func: &Func,
    mut context: Context,
    observe: &mut dyn FnMut(&Pass, &State),
) -> Result<Lowered, LowerError> {
    let state = PASSES.iter().try_fold(State::Func(func.clone()), |state, pass| {
        let state = pass.run.apply(state, &mut context)?;
        if cfg!(debug_assertions) {
            state.expect_verified(pass);
        }
        observe(pass, &state);
        Ok::<_, LowerError>(state)
    })?;
    let Context { pipelines, swizzles, .. } = context;
    match state {
        State::Module(module) => Ok(Lowered { module, pipelines, swizzles }),
        State::Func(_) => unreachable!("the table has `lower_blocks`"),
    }
}

impl State {
    /// Stops where a pass has left a kernel that breaks an invariant, which is a bug in it.
    fn expect_verified(&self, pass: &Pass) {
        if let State::Module(module) = self
            && let Err(errors) = ir::verify_module(module)
        {
            let errors: Vec<_> = errors.iter().map(ToString::to_string).collect();
            panic!("a bug in `{}`: it breaks the kernel form: {}\n{module}", pass.name, errors.join("; "));
        }
    }
}

impl Pass {
    /// The pass of a name.
    pub fn find(name: &str) -> Option<&'static Pass> {
        PASSES.iter().find(|it| it.name == name)
    }

    /// What it makes of the program that the pass before it leaves, such as one that was read from a text. What earlier
    /// passes had to tell about it, and their refusals for that, are missing then.
    ///
    /// # Errors
    /// Why it refuses the program.
    ///
    /// # Panics
    /// On a program of the other side of `lower_blocks`.
    pub fn run(&self, state: State, target: &Target) -> Result<State, LowerError> {
        self.run.apply(state, &mut Context::new(target))
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
