//! Instructions that look for blocks and loops.

use ir::{Index, Name};

use super::{
    TraceError, no_record,
    read::Reader,
    value::{Instruction, Thing},
};

impl Reader {
    /// Gives variables to what is found.
    pub(super) fn query(&mut self, it: &Instruction<'_>) -> Result<(), TraceError> {
        let found: Vec<Thing> = match it.kind {
            "GetLoops" => self.loops_around(it)?.into_iter().map(Thing::Loop).collect(),
            "GetChildBlocks" => match self.thing(it, it.inputs.first())? {
                Thing::Root => {
                    self.func().body.blocks().iter().map(|it| Thing::Block(it.name.clone())).collect()
                }
                Thing::Loop(name) => {
                    let blocks = self.func().find_loop(&name).map(|it| it.body.blocks()).unwrap_or_default();
                    blocks.iter().map(|it| Thing::Block(it.name.clone())).collect()
                }
                Thing::Block(_) | Thing::Number(_) => return Err(it.odd("a loop")),
            },
            "GetProducers" | "GetConsumers" => {
                let name = self.block(it, 0)?;
                let block = self.func().find_block(&name).ok_or_else(|| it.odd("a block"))?;
                let (ours, is_producer) =
                    if it.kind == "GetProducers" { (block.reads(), true) } else { (block.writes(), false) };
                let shares = |other: &&&ir::Block| {
                    let theirs = if is_producer { other.writes() } else { other.reads() };
                    other.name != name && theirs.iter().any(|a| ours.iter().any(|b| a.buffer == b.buffer))
                };
                self.func()
                    .body
                    .blocks()
                    .iter()
                    .filter(shares)
                    .map(|it| Thing::Block(it.name.clone()))
                    .collect()
            }
            _ => {
                let word = it.word(0)?;
                match self.func().find_block(&Name::new(word)) {
                    Some(block) => vec![Thing::Block(block.name.clone())],
                    None if word == "root" => vec![Thing::Root],
                    None if self.aliases.contains_key(word) => vec![Thing::Block(self.aliases[word].clone())],
                    None => {
                        return Err(no_record(format!("{}: the program has no block `{word}`", it.label())));
                    }
                }
            }
        };
        if found.len() < it.outputs.len() {
            let why = format!("{} are asked for, and there are {}", it.outputs.len(), found.len());
            return Err(it.unknown(&why, "the program is another one here: compare it by `tilewright show`"));
        }
        self.give(it, found);
        Ok(())
    }

    /// The loops around a block. Those of one iteration, which copies keep here, are left out where TVM has fewer.
    fn loops_around(&self, it: &Instruction<'_>) -> Result<Vec<Name>, TraceError> {
        let name = self.block(it, 0)?;
        let loops = self.func().loops_of(&name).ok_or_else(|| it.odd("a block"))?;
        let surplus = loops.len().saturating_sub(it.outputs.len());
        let units = loops.iter().filter(|it| it.extent == Index::int(1)).count();
        let drops = surplus > 0 && surplus == units;
        Ok(loops.iter().filter(|it| !drops || it.extent != Index::int(1)).map(|it| it.var.clone()).collect())
    }
}
