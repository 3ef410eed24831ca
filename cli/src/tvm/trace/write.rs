//! From steps to instructions: each step on the program before it, so that its loops can be named as TVM finds them.

use std::collections::HashMap;

use ir::{Block, Func, Name};
use schedule::{
    Session, Step,
    primitive::{AnnotationValue, Order, Padding, Stages},
};
use serde_json::{Value, json};

use super::{TraceError, reason::of_step};

/// The buffers that a block reads or writes, in the order of TVM's lists: what a sum reads of itself is not read.
pub(super) fn touched(block: &Block, reads: bool) -> Vec<Name> {
    let written: Vec<_> = block.writes().iter().map(|it| it.buffer.clone()).collect();
    let all = if reads { block.reads() } else { block.writes() };
    let mut out: Vec<Name> = vec![];
    for access in all {
        let is_own = reads && block.init.is_some() && written.contains(&access.buffer);
        if !is_own && !out.contains(&access.buffer) {
            out.push(access.buffer.clone());
        }
    }
    out
}

/// Writes a trace, step by step.
#[derive(Default)]
pub(crate) struct Writer {
    instructions: Vec<Value>,
    /// How many variables there are.
    count: usize,
    /// The variables of blocks that have some: TVM may call blocks otherwise later.
    made: HashMap<Name, String>,
}

impl Writer {
    /// The trace as TVM writes it.
    pub(crate) fn trace(&self) -> Value {
        json!([self.instructions, []])
    }

    /// Adds a step that was applied, given the program before it.
    pub(crate) fn add(&mut self, step: &Step, before: &Func, after: &Session) -> Result<(), TraceError> {
        let known: Vec<Name> = before.body.blocks().iter().map(|it| it.name.clone()).collect();
        let outputs = self.of_step(step, before)?;
        let blocks = after.func().body.blocks();
        let made: Vec<_> = blocks.iter().filter(|it| !known.contains(&it.name)).collect();
        if let Step::Blockize(it) = step {
            let inner = before.find_loop(&it.target).map(|it| it.body.blocks()).unwrap_or_default();
            self.made.extend(inner.iter().zip(outputs).map(|(block, var)| (block.name.clone(), var)));
        } else {
            self.made.extend(made.iter().zip(outputs).map(|(block, var)| (block.name.clone(), var)));
        }
        Ok(())
    }

    fn var(&mut self) -> String {
        self.count += 1;
        format!("v{}", self.count - 1)
    }

    /// An instruction with so many outputs.
    fn push(&mut self, kind: &str, inputs: Value, attrs: Value, outputs: usize) -> Vec<String> {
        let outputs: Vec<_> = (0..outputs).map(|_| self.var()).collect();
        self.instructions.push(Value::Array(vec![json!(kind), inputs, attrs, json!(outputs)]));
        outputs
    }

    fn block(&mut self, name: &Name) -> String {
        if let Some(var) = self.made.get(name) {
            return var.clone();
        }
        let outputs = self.push("GetSBlock", json!([]), json!([name, "main"]), 1);
        let var = outputs.into_iter().next().expect("one output");
        self.made.insert(name.clone(), var.clone());
        var
    }

    fn loop_of(&mut self, func: &Func, name: &Name) -> Result<String, TraceError> {
        let all = self.loops(func, std::slice::from_ref(name))?;
        Ok(all.into_iter().next().expect("one loop"))
    }

    /// Loops by the blocks that they are around.
    fn loops(&mut self, func: &Func, names: &[Name]) -> Result<Vec<String>, TraceError> {
        let missing = || unknown("a loop without blocks", "give it one");
        let mut found: Vec<(Name, String)> = vec![];
        for name in names.iter().rev() {
            if found.iter().any(|it| it.0 == *name) {
                continue;
            }
            let target = func.find_loop(name).ok_or_else(missing)?;
            let block = target.body.blocks().first().map(|it| it.name.clone()).ok_or_else(missing)?;
            let around = func.loops_of(&block).ok_or_else(missing)?;
            let var = self.block(&block);
            let vars = self.push("GetLoops", json!([var]), json!([]), around.len());
            found.extend(around.iter().map(|it| it.var.clone()).zip(vars));
        }
        let var = |name: &Name| found.iter().find(|it| it.0 == *name).map(|it| it.1.clone());
        names.iter().map(|it| var(it).ok_or_else(missing)).collect()
    }

    /// The instruction of a step; the variables of the blocks that it makes.
    fn of_step(&mut self, step: &Step, func: &Func) -> Result<Vec<String>, TraceError> {
        match step {
            Step::Split(_)
            | Step::Fuse(_)
            | Step::Merge(_)
            | Step::Reorder(_)
            | Step::AddUnitLoop(_)
            | Step::Parallel(_)
            | Step::Vectorize(_)
            | Step::Unroll(_)
            | Step::Bind(_)
            | Step::Blockize(_) => self.of_loops(step, func),
            Step::CacheRead(_)
            | Step::CacheWrite(_)
            | Step::Reindex(_)
            | Step::SetScope(_)
            | Step::StorageAlign(_) => self.of_buffers(step, func),
            Step::Annotate(_)
            | Step::SoftwarePipelineStage(_)
            | Step::SoftwarePipelineOrder(_)
            | Step::SoftwarePipelineAsyncStages(_)
            | Step::DoubleBufferScope(_) => self.annotation(step, func),
            _ => self.of_blocks(step, func),
        }
    }

    fn of_loops(&mut self, step: &Step, func: &Func) -> Result<Vec<String>, TraceError> {
        match step {
            Step::Split(it) if it.overlap => {
                return Err(unknown(
                    "`split` with `overlap`",
                    "TVM guards what a split leaves over: leave it out",
                ));
            }
            Step::Split(it) => {
                let mut inputs = vec![json!(self.loop_of(func, &it.target)?)];
                for factor in it.into.values() {
                    let factor = factor.as_ref().map(schedule::Number::get).transpose();
                    inputs.push(json!(factor.map_err(|err| unknown(&err.to_string(), "decide the knob"))?));
                }
                self.push("Split", json!(inputs), json!([1, 0]), it.into.len());
            }
            Step::Fuse(it) => {
                let loops = self.loops(func, &it.loops)?;
                self.push("Fuse", json!(loops), json!([1]), 1);
            }
            Step::Merge(it) => {
                let loops = self.loops(func, &it.loops)?;
                self.push("Merge", json!(loops), json!([]), 1);
            }
            Step::Reorder(it) => {
                let loops = self.loops(func, &it.order)?;
                self.push("Reorder", json!(loops), json!([]), 0);
            }
            Step::AddUnitLoop(it) => {
                let what = match (&it.target, &it.block) {
                    (Some(target), _) => self.loop_of(func, target)?,
                    (None, Some(block)) => self.block(block),
                    (None, None) => return Err(unknown("`add_unit_loop` of nothing", "name a loop")),
                };
                self.push("AddUnitLoop", json!([what]), json!([]), 1);
            }
            Step::Parallel(it) => self.mark("Parallel", func, &it.target, json!([]))?,
            Step::Vectorize(it) => self.mark("Vectorize", func, &it.target, json!([]))?,
            Step::Unroll(it) => self.mark("Unroll", func, &it.target, json!([]))?,
            Step::Bind(it) => {
                let axis = it.axis.as_str().replace("cluster", "clusterCtaIdx");
                self.mark("Bind", func, &it.target, json!([axis]))?;
            }
            Step::Blockize(it) => {
                let target = self.loop_of(func, &it.target)?;
                return Ok(self.push("Blockize", json!([target]), json!([1]), 1));
            }
            _ => unreachable!("the steps on loops were told apart before"),
        }
        Ok(vec![])
    }

    fn mark(&mut self, kind: &str, func: &Func, target: &Name, attrs: Value) -> Result<(), TraceError> {
        let target = self.loop_of(func, target)?;
        self.push(kind, json!([target]), attrs, 0);
        Ok(())
    }

    fn of_buffers(&mut self, step: &Step, func: &Func) -> Result<Vec<String>, TraceError> {
        let place = |block: &Name, buffer: &Name, reads: bool| {
            let block =
                func.find_block(block).ok_or_else(|| unknown("a block that is not there", "name another"))?;
            let at = touched(block, reads).iter().position(|it| it == buffer);
            at.ok_or_else(|| {
                unknown("a buffer that TVM's block does not list", "name a block that touches it")
            })
        };
        let writer = |buffer: &Name| {
            let first = func.writers(buffer).first().map(|it| it.name.clone());
            first.ok_or_else(|| unknown("a buffer that nothing writes", "name another"))
        };
        match step {
            Step::CacheRead(it) => {
                let at = place(&it.block, &it.buffer, true)?;
                let mut consumers = vec![];
                for name in it.readers.iter().flatten() {
                    consumers.push(self.block(name));
                }
                let block = self.block(&it.block);
                Ok(self.push("CacheRead", json!([block, consumers]), json!([at, it.scope]), 1))
            }
            Step::CacheWrite(it) => {
                let block = self.block(&it.block);
                Ok(self.push("CacheWrite", json!([block, []]), json!([0, it.scope]), 1))
            }
            Step::SetScope(it) => {
                let name = writer(&it.buffer)?;
                let (at, block) = (place(&name, &it.buffer, false)?, self.block(&name));
                Ok(self.push("SetScope", json!([block]), json!([at, it.scope]), 0))
            }
            Step::StorageAlign(it) => {
                let name = writer(&it.buffer)?;
                let (at, block) = (place(&name, &it.buffer, false)?, self.block(&name));
                let numbers = [it.factor.get(), it.offset.get()];
                let [Ok(factor), Ok(offset)] = numbers else { return Err(unknown("a knob", "decide it")) };
                Ok(self.push("StorageAlign", json!([block]), json!([at, it.axis, factor, offset]), 0))
            }
            _ => Err(unknown(
                "`reindex`, which copies in another order of dimensions in TVM",
                "copy by `cache_read`",
            )),
        }
    }

    fn annotation(&mut self, step: &Step, func: &Func) -> Result<Vec<String>, TraceError> {
        let (target, block, key, value) = match step {
            Step::Annotate(it) => {
                let value = match &it.value {
                    AnnotationValue::Int(it) => json!(it),
                    AnnotationValue::Text(it) => json!(format!("{it:?}")),
                    AnnotationValue::List(it) => json!(it),
                    AnnotationValue::Map(_) => return Err(unknown("an annotation by names", "give a list")),
                };
                (it.target.as_ref(), it.block.as_ref(), it.key.as_str(), value)
            }
            Step::SoftwarePipelineStage(it) if it.style.is_none() && it.benign.is_empty() => {
                let stages = match &it.stages {
                    Stages::List(list) => list.iter().map(|it| it.get().ok()).collect::<Option<Vec<_>>>(),
                    Stages::Map(map) => by_place(func, &it.target, &|name| map.get(name)?.get().ok()),
                };
                (Some(&it.target), None, "software_pipeline_stage", json!(stages.ok_or_else(no_place)?))
            }
            Step::SoftwarePipelineOrder(it) => {
                let order = match &it.order {
                    Order::List(list) => Some(list.clone()),
                    Order::Map(map) => by_place(func, &it.target, &|name| map.get(name)?.get().ok()),
                    Order::Names(names) => by_place(func, &it.target, &|name| {
                        names.iter().position(|it| it == name).and_then(|it| i64::try_from(it).ok())
                    }),
                };
                (Some(&it.target), None, "software_pipeline_order", json!(order.ok_or_else(no_place)?))
            }
            Step::SoftwarePipelineAsyncStages(it) if it.blocks.is_empty() && it.mechanism.is_none() => {
                let stages: Option<Vec<_>> = it.stages.iter().map(|it| it.get().ok()).collect();
                (
                    Some(&it.target),
                    None,
                    "software_pipeline_async_stages",
                    json!(stages.ok_or_else(no_place)?),
                )
            }
            Step::DoubleBufferScope(it) if it.slots.is_none() => {
                (None, Some(&it.block), "double_buffer_scope", json!(0))
            }
            _ => return Err(unknown("an option of a pipeline that TVM has not", "leave it out")),
        };
        let what = match (target, block) {
            (Some(target), _) => self.loop_of(func, target)?,
            (None, Some(block)) => self.block(block),
            (None, None) => return Err(unknown("an annotation of nothing", "name a loop")),
        };
        Ok(self.push("Annotate", json!([what, value]), json!([key]), 0))
    }

    fn of_blocks(&mut self, step: &Step, func: &Func) -> Result<Vec<String>, TraceError> {
        match step {
            Step::ComputeAt(it) => {
                let (block, target) = (self.block(&it.block), self.loop_of(func, &it.target)?);
                Ok(self.push("ComputeAt", json!([block, target]), json!([1, -1]), 0))
            }
            Step::ReverseComputeAt(it) => {
                let (block, target) = (self.block(&it.block), self.loop_of(func, &it.target)?);
                Ok(self.push("ReverseComputeAt", json!([block, target]), json!([1, -1]), 0))
            }
            Step::ComputeInline(it) => {
                let block = self.block(&it.block);
                Ok(self.push("ComputeInline", json!([block]), json!([]), 0))
            }
            Step::ReverseComputeInline(it) => {
                let block = self.block(&it.block);
                Ok(self.push("ReverseComputeInline", json!([block]), json!([]), 0))
            }
            Step::DecomposeReduction(it) => {
                let (block, target) = (self.block(&it.block), self.loop_of(func, &it.target)?);
                Ok(self.push("DecomposeReduction", json!([block, target]), json!([]), 1))
            }
            Step::DecomposePadding(it) => {
                let (block, target) = (self.block(&it.block), self.loop_of(func, &it.target)?);
                Ok(self.push("DecomposePadding", json!([block, target]), json!([]), 1))
            }
            Step::Rfactor(it) => {
                let target = self.loop_of(func, &it.target)?;
                Ok(self.push("RFactor", json!([target]), json!([it.factor_axis]), 1))
            }
            Step::PadEinsum(it) if it.reuse.is_empty() && !it.edge => {
                let list = padding(func, &it.block, &it.padding).ok_or_else(no_place)?;
                let block = self.block(&it.block);
                Ok(self.push("PadEinsum", json!([block]), json!([list]), 0))
            }
            step => {
                let (why, help) = of_step(step);
                Err(unknown(&format!("`{}`: {why}", step.name()), help))
            }
        }
    }
}

/// What each iterator of a block is padded to; 1 leaves it as it is.
fn padding(func: &Func, block: &Name, padding: &Padding) -> Option<Vec<i64>> {
    let map = match padding {
        Padding::List(list) => return list.iter().map(|it| it.get().ok()).collect(),
        Padding::Map(map) => map,
    };
    let of = |iter: &ir::Iter| {
        let driven = iter.binding.as_var().and_then(|it| map.get(it));
        map.get(&iter.var).or(driven).map_or(Some(1), |it| it.get().ok())
    };
    func.find_block(block)?.iters.iter().map(of).collect()
}

/// A number for each statement of a loop, by the name of a block in it.
fn by_place(func: &Func, target: &Name, of: &dyn Fn(&Name) -> Option<i64>) -> Option<Vec<i64>> {
    let body = &func.find_loop(target)?.body;
    let parts = if let ir::Stmt::Seq(all) = body { all.as_slice() } else { std::slice::from_ref(body) };
    parts.iter().map(|part| part.blocks().iter().find_map(|it| of(&it.name))).collect()
}

fn unknown(message: &str, help: &'static str) -> TraceError {
    TraceError::Unknown { message: message.to_owned(), help }
}

fn no_place() -> TraceError {
    unknown("a number without its statement", "give a list, one number a statement")
}
