//! What is asked of loops and blocks, and what lowering finds out about them.
//!
//! In texts these are the entries of `#{…}`. Here alone is told which key is which attribute and what value it takes; an entry
//! with any other key is a note of somebody else's, which no pass reads.

use indexmap::IndexMap;

use crate::{
    Annotation, Annotations, CROSS_BLOCK, CrossBlock, Mechanism, Name, Origin, PingPong, Raster, ThreadAxis,
    annotation::{Entries, names, names_in, number, text, word},
    intrin::{self, Intrinsic, TENSORIZE},
    pipeline::{ACROSS, ASYNC, ASYNC_BLOCKS, BENIGN, DOUBLE, MECHANISM, ORDER, SLOTS, STAGE, STYLE, Style},
};

/// The key of [`LoopAttrs::serpentine`].
pub const SERPENTINE: &str = "serpentine";
/// The key of [`LoopAttrs::raster`].
pub const RASTERIZE: &str = "rasterize";
/// The key of [`LoopAttrs::is_reversed`].
pub const REVERSE: &str = "reverse";
/// The key of [`LoopAttrs::blocks_per_sm`].
pub const BLOCKS_PER_SM: &str = "blocks_per_sm";
/// The key of [`LoopAttrs::programmatic_launch`].
pub const PROGRAMMATIC_LAUNCH: &str = "programmatic_launch";
/// The key of [`LoopAttrs::persistent`].
pub const PERSISTENT: &str = "persistent";
/// The key of [`LoopAttrs::claims`].
pub const CLUSTER_LAUNCH_CONTROL: &str = "cluster_launch_control";
/// The key of [`LoopAttrs::ping_pong`].
pub const PING_PONG: &str = "ping_pong";
/// The key of [`LoopAttrs::is_independent`].
const INDEPENDENT: &str = "independent";
/// The key of [`LoopAttrs::roles`].
pub const WARP_ROLES: &str = "warp_roles";
/// The key of [`BlockAttrs::role`].
pub const ROLE: &str = "role";
/// The key of [`LoopAttrs::exchanged`].
const EXCHANGED: &str = "cross_block_buffers";
/// The key of [`BlockAttrs::mechanism`].
const ASYNCHRONOUS: &str = "asynchronous";
/// The key of [`BlockAttrs::multicast`].
const MULTICAST: &str = "multicast";
/// The key of [`BlockAttrs::origin`].
const ORIGIN: &str = "origin";

/// What is asked of a loop, and what lowering finds out about it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a request, or a finding, of its own")]
pub struct LoopAttrs {
    /// How its iterations overlap, if something is asked about that.
    pub pipeline: Option<Box<PipelineSpec>>,
    /// The loop runs backwards in odd iterations of the loop that is so many loops further out. A number and not a name,
    /// because passes that copy loops rename them.
    pub serpentine: Option<i64>,
    /// The order of its iterations, if they are tiles that run in groups of rows. An order changes no result, so a loop that it does
    /// not fit, or that is a pipeline, runs as it counts.
    pub raster: Option<Raster>,
    /// Whether blocks of threads take its iterations from the last to the first.
    pub is_reversed: bool,
    /// How its iterations, each run by a block of threads of its own, reduce together.
    pub cross_block: Option<CrossBlock>,
    /// The buffers in which those blocks of threads meet: `check_races` finds them.
    pub exchanged: Vec<Name>,
    /// The intrinsic whose lane map the loop follows.
    pub tensorize: Option<&'static Intrinsic>,
    /// How many blocks of its kernel a multiprocessor shall be able to hold at once.
    pub blocks_per_sm: Option<i64>,
    /// Whether its kernel starts before the one ahead of it in the stream has ended, where the GPU can do that.
    pub programmatic_launch: bool,
    /// How many blocks of threads its iterations are dealt to.
    pub persistent: Option<i64>,
    /// Whether a block of threads that has done its iteration takes over that of one which has not begun.
    pub claims: bool,
    /// How the warpgroups of a role share its iterations, if each of them takes some.
    pub ping_pong: Option<PingPong>,
    /// Whether its iterations do not meet in global memory, as was proved when they were still blocks of a grid: `deal_iterations`
    /// says so.
    pub is_independent: bool,
    /// The roles that warps have in it, each with the registers of its threads; 0 where nothing is said about those.
    pub roles: IndexMap<Name, i64>,
    /// What users note.
    pub notes: Annotations,
}

/// What is asked of a software pipeline: see [`crate::pipeline`].
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PipelineSpec {
    /// The stage of each component.
    pub stages: Option<Numbers>,
    /// The place of each component in a step.
    pub orders: Option<Numbers>,
    /// The stages whose components copy asynchronously.
    pub async_stages: Option<Vec<i64>>,
    /// Further components that do, each by the name of one of its blocks.
    pub async_blocks: Option<Vec<Name>>,
    /// The mechanisms by which they shall, where a script says so.
    pub mechanism: Option<ForcedMechanism>,
    /// The loop around, through whose iterations the pipeline goes on.
    pub across: Option<Name>,
    /// How prologue and epilogue are emitted.
    pub style: Option<Style>,
    /// The blocks whose stores only the last iteration decides.
    pub benign: Option<Vec<Name>>,
}

impl PipelineSpec {
    /// Calls a block by another name.
    pub fn rename_block(&mut self, from: &Name, to: &Name) {
        fn in_keys<T: Clone>(map: &mut IndexMap<Name, T>, from: &Name, to: &Name) {
            if map.contains_key(from) {
                let renamed = |name: Name| if name == *from { to.clone() } else { name };
                *map = std::mem::take(map).into_iter().map(|(name, it)| (renamed(name), it)).collect();
            }
        }
        for it in [&mut self.stages, &mut self.orders].into_iter().flatten() {
            if let Numbers::Map(map) = it {
                in_keys(map, from, to);
            }
        }
        if let Some(ForcedMechanism::Each(map)) = &mut self.mechanism {
            in_keys(map, from, to);
        }
        let lists = [&mut self.async_blocks, &mut self.benign].into_iter().flatten();
        lists.flatten().filter(|it| *it == from).for_each(|it| *it = to.clone());
    }
}

/// A number for each component.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Numbers {
    /// By the name of one of its blocks.
    Map(IndexMap<Name, i64>),
    /// By its place, as TVM has them.
    List(Vec<i64>),
}

/// The mechanisms that a script insists on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ForcedMechanism {
    /// One for all asynchronous components.
    All(Mechanism),
    /// One for each that is named by one of its blocks; the others are free.
    Each(IndexMap<Name, Mechanism>),
}

/// What is asked of a block, and what lowering finds out about it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct BlockAttrs {
    /// Whether the temporaries that it fills shall have two slots at least.
    pub double_buffer: bool,
    /// How many slots they shall have at least.
    pub slots: Option<i64>,
    /// The intrinsic that computes it.
    pub tensorize: Option<&'static Intrinsic>,
    /// The role of the warps that run it; none where all run it, or those of the role `compute`.
    pub role: Option<Name>,
    /// By which mechanism what it does happens later, if it does: `choose_mechanisms` decides it.
    pub mechanism: Option<Mechanism>,
    /// The axis of the cluster along which each block of threads copies a part of its box for all: `choose_mechanisms` decides it.
    pub multicast: Option<ThreadAxis>,
    /// Where what it becomes in a kernel comes from: unknown where that is the block itself. Passes that make other blocks of it
    /// say it.
    pub origin: Origin,
    /// What users note.
    pub notes: Annotations,
}

impl ForcedMechanism {
    /// The mechanism of a component that has blocks of these names, if one is forced.
    pub fn of(&self, names: &[Name]) -> Option<Mechanism> {
        match self {
            ForcedMechanism::All(it) => Some(*it),
            ForcedMechanism::Each(map) => names.iter().find_map(|name| map.get(name).copied()),
        }
    }
}

impl LoopAttrs {
    /// Whether nothing is asked.
    pub fn is_empty(&self) -> bool {
        *self == LoopAttrs::default()
    }

    /// Whether a block of threads may run several of its iterations, one after the other, although it is bound to an axis of the grid.
    pub const fn repeats_in_block(&self) -> bool {
        self.persistent.is_some() || self.claims
    }

    /// What is asked of its pipeline, made if it is the first request.
    pub fn pipeline_mut(&mut self) -> &mut PipelineSpec {
        self.pipeline.get_or_insert_default()
    }

    /// As entries of `#{…}`, always in the same order.
    pub fn entries(&self) -> Annotations {
        let mut out = Entries::default();
        if let Some(it) = &self.pipeline {
            out.add(STAGE, it.stages.as_ref().map(Numbers::annotation));
            out.add(ORDER, it.orders.as_ref().map(Numbers::annotation));
            out.add(ASYNC, it.async_stages.clone().map(Annotation::List));
            out.add(ASYNC_BLOCKS, it.async_blocks.as_deref().map(names));
            out.add(MECHANISM, it.mechanism.as_ref().map(ForcedMechanism::annotation));
            out.add(ACROSS, it.across.as_ref().map(|it| text(it.as_str())));
            out.add(STYLE, it.style.map(|it| text(it.as_str())));
            out.add(BENIGN, it.benign.as_deref().map(names));
        }
        out.add(SERPENTINE, self.serpentine.map(Annotation::Int));
        out.add(RASTERIZE, self.raster.map(Raster::annotation));
        out.add(REVERSE, self.is_reversed.then_some(Annotation::Int(1)));
        out.add(CROSS_BLOCK, self.cross_block.map(|it| text(it.as_str())));
        out.add(EXCHANGED, Some(&*self.exchanged).filter(|it| !it.is_empty()).map(names));
        out.add(TENSORIZE, self.tensorize.map(|it| text(it.name)));
        out.add(BLOCKS_PER_SM, self.blocks_per_sm.map(Annotation::Int));
        out.add(PROGRAMMATIC_LAUNCH, self.programmatic_launch.then_some(Annotation::Int(1)));
        out.add(PERSISTENT, self.persistent.map(Annotation::Int));
        out.add(CLUSTER_LAUNCH_CONTROL, self.claims.then_some(Annotation::Int(1)));
        out.add(PING_PONG, self.ping_pong.as_ref().map(PingPong::annotation));
        out.add(INDEPENDENT, self.is_independent.then_some(Annotation::Int(1)));
        out.add(WARP_ROLES, (!self.roles.is_empty()).then(|| Annotation::Map(self.roles.clone())));
        out.0.extend(self.notes.clone());
        out.0
    }

    /// Sets the attribute of a key.
    ///
    /// # Errors
    /// What the key takes, if that is not this.
    pub fn set(&mut self, key: &str, value: Annotation) -> Result<(), String> {
        match key {
            STAGE => self.pipeline_mut().stages = Some(Numbers::parse(value)?),
            ORDER => self.pipeline_mut().orders = Some(Numbers::parse(value)?),
            ASYNC => match value {
                Annotation::List(list) => self.pipeline_mut().async_stages = Some(list),
                _ => return Err("a list of stages".to_owned()),
            },
            ASYNC_BLOCKS => self.pipeline_mut().async_blocks = Some(names_in(value)?),
            MECHANISM => self.pipeline_mut().mechanism = Some(ForcedMechanism::parse(value)?),
            ACROSS => {
                let name = word(&value, |it| Some(Name::new(it)), "the name of a loop")?;
                self.pipeline_mut().across = Some(name);
            }
            STYLE => {
                self.pipeline_mut().style =
                    Some(word(&value, Style::parse, "`peel`, `peel_prologue` or `predicate`")?);
            }
            BENIGN => self.pipeline_mut().benign = Some(names_in(value)?),
            SERPENTINE => self.serpentine = Some(number(&value)?),
            RASTERIZE => self.raster = Some(Raster::parse(&value)?),
            REVERSE if value == Annotation::Int(1) => self.is_reversed = true,
            CROSS_BLOCK => {
                self.cross_block = Some(word(&value, CrossBlock::parse, "`atomic` or `semaphore`")?);
            }
            EXCHANGED => self.exchanged = names_in(value)?,
            TENSORIZE => self.tensorize = Some(word(&value, intrin::find, INTRINSIC)?),
            BLOCKS_PER_SM => self.blocks_per_sm = Some(number(&value)?),
            PROGRAMMATIC_LAUNCH if value == Annotation::Int(1) => self.programmatic_launch = true,
            PERSISTENT => self.persistent = Some(number(&value)?),
            CLUSTER_LAUNCH_CONTROL if value == Annotation::Int(1) => self.claims = true,
            PING_PONG => self.ping_pong = Some(PingPong::parse(&value)?),
            INDEPENDENT if value == Annotation::Int(1) => self.is_independent = true,
            WARP_ROLES => match value {
                Annotation::Map(map) => self.roles = map,
                _ => return Err("a number of registers for each role".to_owned()),
            },
            _ => {
                self.notes.insert(key.to_owned(), value);
            }
        }
        Ok(())
    }
}

impl BlockAttrs {
    /// As entries of `#{…}`, always in the same order.
    pub fn entries(&self) -> Annotations {
        let mut out = Entries::default();
        out.add(DOUBLE, self.double_buffer.then_some(Annotation::Int(0)));
        out.add(SLOTS, self.slots.map(Annotation::Int));
        out.add(TENSORIZE, self.tensorize.map(|it| text(it.name)));
        out.add(ROLE, self.role.as_ref().map(|it| text(it.as_str())));
        out.add(ASYNCHRONOUS, self.mechanism.map(|it| text(it.as_str())));
        out.add(MULTICAST, self.multicast.map(|it| text(it.as_str())));
        out.add(ORIGIN, (!self.origin.is_unknown()).then(|| text(&self.origin.to_string())));
        out.0.extend(self.notes.clone());
        out.0
    }

    /// Sets the attribute of a key.
    ///
    /// # Errors
    /// What the key takes, if that is not this.
    pub fn set(&mut self, key: &str, value: Annotation) -> Result<(), String> {
        match key {
            DOUBLE if value == Annotation::Int(0) => self.double_buffer = true,
            DOUBLE => return Err("0, the one buffer that the block writes".to_owned()),
            SLOTS => self.slots = Some(number(&value)?),
            TENSORIZE => self.tensorize = Some(word(&value, intrin::find, INTRINSIC)?),
            ROLE => self.role = Some(word(&value, |it| Some(Name::new(it)), "the name of a role")?),
            ASYNCHRONOUS => {
                self.mechanism = Some(word(&value, Mechanism::of_word, "the name of a mechanism")?);
            }
            MULTICAST => {
                let parse = |it: &str| ThreadAxis::parse(it).filter(|it| it.is_cluster());
                self.multicast = Some(word(&value, parse, "an axis of the cluster")?);
            }
            ORIGIN => {
                let text = word(&value, |it| Some(it.to_owned()), "an origin in quotes")?;
                self.origin = Origin::parse(&text)?;
            }
            _ => {
                self.notes.insert(key.to_owned(), value);
            }
        }
        Ok(())
    }
}

impl Numbers {
    fn annotation(&self) -> Annotation {
        match self {
            Numbers::Map(map) => Annotation::Map(map.clone()),
            Numbers::List(list) => Annotation::List(list.clone()),
        }
    }

    fn parse(value: Annotation) -> Result<Numbers, String> {
        match value {
            Annotation::Map(map) => Ok(Numbers::Map(map)),
            Annotation::List(list) => Ok(Numbers::List(list)),
            Annotation::Int(_) | Annotation::Text(_) | Annotation::Words(_) => {
                Err("a number for each block, or a list of numbers".to_owned())
            }
        }
    }
}

impl ForcedMechanism {
    fn annotation(&self) -> Annotation {
        match self {
            ForcedMechanism::All(it) => text(it.as_str()),
            ForcedMechanism::Each(map) => {
                Annotation::Words(map.iter().map(|(name, it)| (name.clone(), it.to_string())).collect())
            }
        }
    }

    fn parse(value: Annotation) -> Result<ForcedMechanism, String> {
        let wanted = || {
            let known: Vec<_> = Mechanism::ASKABLE.iter().map(|it| format!("`{it}`")).collect();
            format!("one of {}, or one for each block", known.join(", "))
        };
        match value {
            Annotation::Text(it) => Mechanism::parse(&it).map(ForcedMechanism::All),
            Annotation::Words(map) => {
                let each = map.into_iter().map(|(name, it)| Some((name, Mechanism::parse(&it)?)));
                each.collect::<Option<_>>().map(ForcedMechanism::Each)
            }
            Annotation::Int(_) | Annotation::List(_) | Annotation::Map(_) => None,
        }
        .ok_or_else(wanted)
    }
}

/// What [`TENSORIZE`] takes.
const INTRINSIC: &str = "the name of a tensor intrinsic";
