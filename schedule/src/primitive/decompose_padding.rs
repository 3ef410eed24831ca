use std::sync::Arc;

use ir::{Access, Block, Func, Index, Iter, IterKind, Less, Loop, Name, Stmt, Value};
use serde::{Deserialize, Serialize};

use crate::{BlockError, Primitive, ScheduleError, ScheduleState, TileError, nest};

/// Parts a copy with padding into a fill and a copy of what there is.
///
/// ```text
/// decompose_padding(block: "P", loop: "j")
///
/// for i in 0..n { for j in 0..16 { P[i, j] = select(j < m, A[i, j], 0) } }
/// ->
/// for i in 0..n {
///   for j_fill in 0..16 { P[i, j_fill] = 0 }
///   for j in 0..16 { P[i, j] = A[i, j] if j < m }
/// }
/// ```
///
/// The fill becomes block `{block}_fill` right before the loop, in loops of its own: those at and below the named one,
/// as `{loop}_fill`, run in the same way. The block keeps its name; the conditions of its selection become guards.
/// Nothing but the block may be in the loop, and its body has to be one such selection, between anything and a
/// constant.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DecomposePadding {
    /// The copy.
    pub block: Name,
    /// The loop before which the fill is put.
    #[serde(rename = "loop")]
    pub target: Name,
}

impl Primitive for DecomposePadding {
    fn apply(&self, state: &mut ScheduleState) -> Result<(), ScheduleError> {
        let block = state.expect_block(&self.block)?.clone();
        let target = state.expect_loop(&self.target)?;
        let padding = Padding::of(&block)?;
        let path = state.func.loops_of(&self.block).expect("the block is one of the program's");
        let (name, loop_name) = (self.block.clone(), self.target.clone());
        let Some(at) = path.iter().position(|it| it.var == self.target) else {
            return Err(BlockError::NotAround { block: name, loop_name }.into());
        };
        if target.body.blocks().len() > 1 {
            return Err(BlockError::NotAlone { block: name, loop_name }.into());
        }

        let loops: Vec<Loop> = path[at..].iter().copied().cloned().collect();
        let func = &mut state.func;
        let fill = padding.fill(func, &block, &loops);
        func.replace_block(&self.block, |it| Stmt::Block(Arc::new(padding.copy(it))));
        func.replace_loop(&self.target, |it| Stmt::seq([fill, Stmt::Loop(Arc::new(it))]));
        Ok(())
    }
}

/// `place = select(inside, value, beyond)`.
struct Padding {
    place: Access,
    inside: Vec<Less>,
    value: Value,
    beyond: Value,
}

impl Padding {
    fn of(block: &Block) -> Result<Padding, TileError> {
        let not = |why| TileError::NotAPadding { block: block.name.clone(), why };
        if block.init.is_some() || block.iters.iter().any(|it| it.kind == IterKind::Reduce) {
            return Err(not("it reduces"));
        }
        let Stmt::Store(store) = &block.body else { return Err(not("its body is not one assignment")) };
        let Value::Select(inside, value, beyond) = &store.value else {
            return Err(not("it does not select what it stores"));
        };
        if !matches!(**beyond, Value::Const(_)) {
            return Err(not("it stores no constant where its condition fails"));
        }
        let mut reads_own = false;
        value.each_load(&mut |it| reads_own |= it.buffer == store.place.buffer);
        if reads_own {
            return Err(not("it reads what it writes"));
        }
        let (value, beyond) = (Value::clone(value), Value::clone(beyond));
        Ok(Padding { place: store.place.clone(), inside: inside.clone(), value, beyond })
    }

    /// The block that copies what there is.
    fn copy(&self, mut block: Block) -> Block {
        let binding = |name: &Name| block.find_iter(name).map(|it| it.binding.clone());
        let inside: Vec<Less> = self.inside.iter().map(|it| it.subst(&binding)).collect();
        block.guards.extend(inside);
        block.body = Stmt::store(self.place.clone(), self.value.clone());
        block
    }

    /// The block that fills, in loops of its own.
    fn fill(&self, func: &Func, block: &Block, loops: &[Loop]) -> Stmt {
        let mut renamed: Vec<(&Name, Name)> = Vec::new();
        for it in loops {
            let taken = |name: &Name| func.is_taken(name) || renamed.iter().any(|(_, new)| new == name);
            let new = Name::nth(&format!("{}_fill", it.var), taken);
            renamed.push((&it.var, new));
        }
        let with = |var: &Name| renamed.iter().find(|it| it.0 == var).map(|it| Index::var(&it.1));
        let fill = Block {
            name: Name::nth(&format!("{}_fill", block.name), |it| func.is_taken(it)),
            iters: block
                .iters
                .iter()
                .map(|it| Iter { binding: it.binding.subst(&with), ..it.clone() })
                .collect(),
            guards: block.guards.iter().map(|it| it.subst(&with)).collect(),
            attrs: ir::BlockAttrs::default(),
            init: None,
            body: Stmt::store(self.place.clone(), self.beyond.clone()),
        };
        let nest = loops.iter().zip(&renamed).rev();
        nest.fold(Stmt::Block(Arc::new(fill)), |body, (it, (_, new))| {
            let extent = it.extent.subst(&with);
            nest::loop_like(&Loop { extent, ..it.clone() }, new.clone(), body)
        })
    }
}
