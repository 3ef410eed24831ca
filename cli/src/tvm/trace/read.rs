//! From instructions to steps, on the program itself: variables stand for its blocks and loops.

use std::collections::HashMap;

use ir::{Func, Name, Target};
use schedule::{Session, Step};
use serde_json::{Value, json};

use super::{
    TraceError, no_record,
    reason::of_instruction,
    record::Trace,
    value::{Instruction, Thing, whole},
};

/// What came of a trace.
#[derive(Debug)]
pub(crate) struct Replayed {
    /// The steps.
    pub(crate) steps: Vec<Step>,
    /// What was left out, since it changes nothing here.
    pub(crate) notes: Vec<String>,
}

/// The steps that a trace stands for on a program.
pub(crate) fn steps(trace: &Trace, func: Func, target: Target) -> Result<Replayed, TraceError> {
    let mut it = Reader {
        session: Session::new(func, Some(target)),
        things: HashMap::new(),
        aliases: HashMap::new(),
        replayed: Replayed { steps: vec![], notes: vec![] },
    };
    for (at, value) in trace.instructions.iter().enumerate() {
        let decision = trace.decisions.iter().find(|it| it.0 == at).map(|it| &it.1);
        it.instruction(&Instruction::of(value, at, decision)?)?;
    }
    Ok(it.replayed)
}

/// The annotations that mean here what they mean in TVM.
const KNOWN_KEYS: [&str; 4] = [
    "software_pipeline_stage",
    "software_pipeline_order",
    "software_pipeline_async_stages",
    "double_buffer_scope",
];

pub(super) struct Reader {
    session: Session,
    things: HashMap<String, Thing>,
    /// Blocks that TVM calls otherwise.
    pub(super) aliases: HashMap<String, Name>,
    replayed: Replayed,
}

impl Reader {
    fn instruction(&mut self, it: &Instruction<'_>) -> Result<(), TraceError> {
        match it.kind {
            "GetSBlock" | "GetBlock" | "GetLoops" | "GetChildBlocks" | "GetProducers" | "GetConsumers" => {
                self.query(it)
            }
            kind if kind.starts_with("Sample") => self.chosen(it),
            "EnterPostproc" => Ok(()),
            "Split" | "Fuse" | "Merge" | "AddUnitLoop" | "Blockize" => self.makes_loops(it),
            "Reorder" | "Parallel" | "Vectorize" | "Unroll" | "Bind" => self.marks_loops(it),
            "Annotate" => self.annotate(it),
            "CacheRead" | "CacheWrite" | "ReIndex" | "SetScope" | "StorageAlign" => self.of_buffers(it),
            _ => self.of_blocks(it),
        }
    }

    pub(super) fn func(&self) -> &Func {
        self.session.func()
    }

    /// Applies a step, and says which blocks it made.
    fn apply(&mut self, it: &Instruction<'_>, step: Value) -> Result<Vec<Name>, TraceError> {
        let step: Step =
            serde_json::from_value(step).map_err(|err| no_record(format!("{}: {err}", it.label())))?;
        let names = |func: &Func| func.body.blocks().iter().map(|it| it.name.clone()).collect::<Vec<_>>();
        let before = names(self.func());
        self.session.apply(&step).map_err(|err| TraceError::Refused {
            instruction: it.label(),
            before: self.func().clone().into(),
            err: err.into(),
        })?;
        self.replayed.steps.push(step);
        Ok(names(self.func()).into_iter().filter(|it| !before.contains(it)).collect())
    }

    pub(super) fn give(&mut self, it: &Instruction<'_>, things: impl IntoIterator<Item = Thing>) {
        for (output, thing) in it.outputs.iter().zip(things) {
            self.things.insert((*output).to_owned(), thing);
        }
    }

    pub(super) fn thing(&self, it: &Instruction<'_>, value: Option<&Value>) -> Result<Thing, TraceError> {
        value
            .and_then(Value::as_str)
            .and_then(|it| self.things.get(it))
            .cloned()
            .ok_or_else(|| it.odd("a variable"))
    }

    pub(super) fn block(&self, it: &Instruction<'_>, at: usize) -> Result<Name, TraceError> {
        match self.thing(it, it.inputs.get(at))? {
            Thing::Block(name) => Ok(name),
            Thing::Root => Err(it.unknown("the root block is none here", "name a block of the program")),
            Thing::Loop(_) | Thing::Number(_) => Err(it.odd("a block")),
        }
    }

    fn loop_of(&self, it: &Instruction<'_>, value: Option<&Value>) -> Result<Name, TraceError> {
        match self.thing(it, value)? {
            Thing::Loop(name) => Ok(name),
            Thing::Root | Thing::Block(_) | Thing::Number(_) => Err(it.odd("a loop")),
        }
    }

    fn loops(&self, it: &Instruction<'_>) -> Result<Vec<Name>, TraceError> {
        it.inputs.iter().map(|value| self.loop_of(it, Some(value))).collect()
    }

    /// A number that is given, or was chosen; none for one that is to be found.
    fn factor(&self, it: &Instruction<'_>, value: &Value) -> Result<Option<i64>, TraceError> {
        if value.is_null() || value.as_str() == Some("None") {
            return Ok(None);
        }
        match whole(value) {
            Some(it) => Ok(Some(it)),
            None => match self.thing(it, Some(value))? {
                Thing::Number(it) => Ok(Some(it)),
                Thing::Root | Thing::Block(_) | Thing::Loop(_) => Err(it.odd("a factor")),
            },
        }
    }

    fn fresh(&self, stem: &str, others: &[Name]) -> Name {
        let stem: String = stem.chars().take(56).collect();
        Name::fresh(&stem, |it| self.func().is_taken(it) || others.contains(it) || it.is_reserved())
    }

    /// What a record chose.
    fn chosen(&mut self, it: &Instruction<'_>) -> Result<(), TraceError> {
        let decision = it.decision.ok_or_else(|| it.odd("its decision"))?;
        let numbers: Vec<i64> = match it.kind {
            "SampleCategorical" => {
                let at = whole(decision).and_then(|it| usize::try_from(it).ok());
                let candidates = it.attrs.first().and_then(Value::as_array);
                let chosen = at.zip(candidates).and_then(|(at, all)| all.get(at)).and_then(whole);
                vec![chosen.ok_or_else(|| it.odd("the candidate that was chosen"))?]
            }
            "SamplePerfectTile" | "SamplePartitionedTile" => {
                let all = decision.as_array().map(|it| it.iter().map(whole).collect::<Option<Vec<_>>>());
                all.flatten().ok_or_else(|| it.odd("the tile that was chosen"))?
            }
            _ => {
                return Err(
                    it.unknown("what it chooses is a place", "record a schedule that names its loops")
                );
            }
        };
        self.give(it, numbers.into_iter().map(Thing::Number));
        Ok(())
    }

    fn makes_loops(&mut self, it: &Instruction<'_>) -> Result<(), TraceError> {
        let mut made: Vec<Name> = vec![];
        match it.kind {
            "Split" => {
                let target = self.loop_of(it, it.inputs.first())?;
                if it.attrs.get(1).and_then(whole) == Some(1) {
                    return Err(it.unknown("a split without guards", "split by a factor of the extent"));
                }
                let mut into = serde_json::Map::new();
                for (at, value) in it.inputs[1..].iter().enumerate() {
                    let name = self.fresh(&format!("{target}_{at}"), &made);
                    into.insert(name.to_string(), json!(self.factor(it, value)?));
                    made.push(name);
                }
                self.apply(it, json!({"split": {"loop": target, "into": into}}))?;
            }
            "AddUnitLoop" => {
                let into = self.fresh("u", &[]);
                let step = match self.thing(it, it.inputs.first())? {
                    Thing::Loop(name) => json!({"add_unit_loop": {"loop": name, "into": into}}),
                    Thing::Block(name) => json!({"add_unit_loop": {"block": name, "into": into}}),
                    Thing::Root | Thing::Number(_) => return Err(it.odd("a loop or a block")),
                };
                self.apply(it, step)?;
                made.push(into);
            }
            "Blockize" => {
                let target = self.loop_of(it, it.inputs.first())?;
                let inner = self.func().find_loop(&target).map(|it| it.body.blocks()).unwrap_or_default();
                let block = inner.first().map(|it| it.name.clone()).ok_or_else(|| it.odd("a block"))?;
                self.apply(it, json!({"blockize": {"loop": target}}))?;
                self.give(it, [Thing::Block(block)]);
                return Ok(());
            }
            kind => {
                let loops = self.loops(it)?;
                let stem: Vec<_> = loops.iter().map(Name::as_str).collect();
                let word = if kind == "Fuse" { "fused" } else { "merged" };
                let into = self.fresh(&format!("{}_{word}", stem.join("_")), &[]);
                self.apply(it, json!({kind.to_lowercase(): {"loops": loops, "into": into}}))?;
                made.push(into);
            }
        }
        self.give(it, made.into_iter().map(Thing::Loop));
        Ok(())
    }

    fn marks_loops(&mut self, it: &Instruction<'_>) -> Result<(), TraceError> {
        let step = match it.kind {
            "Reorder" => json!({"reorder": {"order": self.loops(it)?}}),
            "Bind" => {
                let (target, axis) = (self.loop_of(it, it.inputs.first())?, it.word(0)?);
                if axis.starts_with("vthread") {
                    let why = format!("`{axis}` has no threads of its own");
                    return Err(it.unknown(&why, VIRTUAL_THREADS));
                }
                json!({"bind": {"loop": target, "axis": axis.replace("clusterCtaIdx", "cluster")}})
            }
            kind => json!({kind.to_lowercase(): {"loop": self.loop_of(it, it.inputs.first())?}}),
        };
        self.apply(it, step).map(drop)
    }

    fn annotate(&mut self, it: &Instruction<'_>) -> Result<(), TraceError> {
        let (key, thing) = (it.word(0)?, self.thing(it, it.inputs.first())?);
        if !KNOWN_KEYS.contains(&key) {
            self.replayed
                .notes
                .push(format!("{} with `{key}` says something to TVM's passes alone", it.label()));
            return Ok(());
        }
        let value = it.inputs.get(1).ok_or_else(|| it.odd("a value"))?;
        let value = match self.factor(it, value) {
            Ok(Some(number)) => json!(number),
            Ok(None) | Err(_) => value.clone(),
        };
        let step = match thing {
            Thing::Loop(name) => json!({"annotate": {"loop": name, "key": key, "value": value}}),
            Thing::Block(name) => json!({"annotate": {"block": name, "key": key, "value": value}}),
            Thing::Root | Thing::Number(_) => return Err(it.odd("a loop or a block")),
        };
        self.apply(it, step).map(drop)
    }

    /// The buffer that a block reads or writes at a place in TVM's list.
    fn buffer(&self, it: &Instruction<'_>, block: &Name, at: i64, reads: bool) -> Result<Name, TraceError> {
        let block = self.func().find_block(block).ok_or_else(|| it.odd("a block"))?;
        let all = super::write::touched(block, reads);
        usize::try_from(at)
            .ok()
            .and_then(|at| all.get(at).cloned())
            .ok_or_else(|| it.odd("a buffer of that number"))
    }

    fn of_buffers(&mut self, it: &Instruction<'_>) -> Result<(), TraceError> {
        let block = self.block(it, 0)?;
        let (reads, at) = match it.kind {
            "CacheRead" => (true, it.number(0)?),
            "ReIndex" => (it.number(1)? == 0, it.number(0)?),
            _ => (false, it.number(0)?),
        };
        let buffer = self.buffer(it, &block, at, reads)?;
        let consumers: Vec<Name> = match it.inputs.get(1).and_then(Value::as_array) {
            Some(all) => {
                let names = all.iter().map(|value| match self.thing(it, Some(value))? {
                    Thing::Block(name) => Ok(name),
                    Thing::Root | Thing::Loop(_) | Thing::Number(_) => Err(it.odd("a block")),
                });
                names.collect::<Result<_, _>>()?
            }
            None => vec![],
        };
        let step = match it.kind {
            "CacheRead" if consumers.is_empty() => {
                json!({"cache_read": {"block": block, "buffer": buffer, "scope": memory(it.word(1)?)}})
            }
            "CacheRead" => json!({"cache_read":
                {"block": block, "buffer": buffer, "scope": memory(it.word(1)?), "readers": consumers}}),
            "CacheWrite" if consumers.is_empty() => {
                json!({"cache_write": {"block": block, "scope": memory(it.word(1)?)}})
            }
            "CacheWrite" => {
                return Err(it.unknown(
                    "a cache for some consumers alone",
                    "read the buffer through a copy: `cache_read` with `readers`",
                ));
            }
            "ReIndex" => json!({"reindex": {"block": block, "buffer": buffer}}),
            "SetScope" => json!({"set_scope": {"buffer": buffer, "scope": memory(it.word(1)?)}}),
            _ => json!({"storage_align":
                {"buffer": buffer, "axis": it.number(1)?, "factor": it.number(2)?, "offset": it.number(3)?}}),
        };
        let made = self.apply(it, step)?;
        self.give(it, made.into_iter().map(Thing::Block));
        Ok(())
    }

    fn of_blocks(&mut self, it: &Instruction<'_>) -> Result<(), TraceError> {
        let step = match it.kind {
            "ComputeAt" | "ReverseComputeAt" => {
                if it.attrs.get(1).and_then(whole).is_some_and(|it| it != -1) {
                    return Err(it.unknown("a place of its own among the statements", "leave `index` out"));
                }
                let word = if it.kind == "ComputeAt" { "compute_at" } else { "reverse_compute_at" };
                let (block, target) = (self.block(it, 0)?, self.thing(it, it.inputs.get(1))?);
                let Thing::Loop(target) = target else {
                    return Err(
                        it.unknown("moving to the root is moving nowhere", "leave the instruction out")
                    );
                };
                json!({word: {"block": block, "loop": target}})
            }
            "ComputeInline" => json!({"compute_inline": {"block": self.block(it, 0)?}}),
            "ReverseComputeInline" => json!({"reverse_compute_inline": {"block": self.block(it, 0)?}}),
            "DecomposeReduction" | "DecomposePadding" => {
                let word =
                    if it.kind == "DecomposePadding" { "decompose_padding" } else { "decompose_reduction" };
                let block = self.block(it, 0)?;
                // What is left of a sum that begins elsewhere has a name of its own in TVM.
                self.aliases.insert(format!("{block}_update"), block.clone());
                json!({word: {"block": block, "loop": self.loop_of(it, it.inputs.get(1))?}})
            }
            "RFactor" => {
                json!({"rfactor": {"loop": self.loop_of(it, it.inputs.first())?, "factor_axis": it.number(0)?}})
            }
            "PadEinsum" => {
                let padding = it.attrs.first().ok_or_else(|| it.odd("the padding"))?;
                json!({"pad_einsum": {"block": self.block(it, 0)?, "padding": padding}})
            }
            kind => {
                let (why, help) = of_instruction(kind);
                return Err(it.unknown(why, help));
            }
        };
        let made = self.apply(it, step)?;
        self.give(it, made.into_iter().map(Thing::Block));
        Ok(())
    }
}

const VIRTUAL_THREADS: &str = "a serial loop does the same work: leave the instruction out";

/// A memory by TVM's word.
fn memory(word: &str) -> &str {
    if word == "shared.dyn" { "shared" } else { word }
}
