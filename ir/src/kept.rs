//! What a rewrite left alone, so that it need not be checked again.

use std::{collections::HashMap, sync::Arc};

use crate::{Block, Func, Loop, Name, Stmt};

/// For each block of `after`, in program order, whether it is what it was in `before`: the same object, under loops of
/// the same names and extents, over the same dimensions and the same buffers.
///
/// The kinds and annotations of loops may differ, and so may what else is under the loops.
pub fn kept(before: &Func, after: &Func) -> Vec<bool> {
    let (mut old, mut new) = (Vec::new(), Vec::new());
    nests(&before.body, &mut Vec::new(), &mut old);
    nests(&after.body, &mut Vec::new(), &mut new);
    if before.dims != after.dims {
        return vec![false; new.len()];
    }
    let changed: Vec<&Name> = after
        .buffers
        .iter()
        .filter_map(|(name, buffer)| (before.buffers.get(name) != Some(buffer)).then_some(name))
        .collect();
    let old: HashMap<*const Block, Vec<&Loop>> =
        old.into_iter().map(|(it, path)| (Arc::as_ptr(it), path)).collect();
    let is_kept = |(block, path): (&Arc<Block>, Vec<&Loop>)| {
        let was = old.get(&Arc::as_ptr(block));
        was.is_some_and(|was| are_alike(was, &path)) && !accesses_any(block, &changed)
    };
    new.into_iter().map(is_kept).collect()
}

/// Whether loops have the same names and extents.
fn are_alike(a: &[&Loop], b: &[&Loop]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.var == b.var && a.extent == b.extent)
}

fn accesses_any(block: &Block, buffers: &[&Name]) -> bool {
    if buffers.is_empty() {
        return false;
    }
    block.reads().into_iter().chain(block.writes()).any(|it| buffers.contains(&&it.buffer))
}

fn nests<'a>(stmt: &'a Stmt, around: &mut Vec<&'a Loop>, out: &mut Vec<(&'a Arc<Block>, Vec<&'a Loop>)>) {
    match stmt {
        Stmt::Loop(it) => {
            around.push(it);
            nests(&it.body, around, out);
            around.pop();
        }
        Stmt::Block(it) => out.push((it, around.clone())),
        Stmt::Seq(stmts) => stmts.iter().for_each(|it| nests(it, around, out)),
        Stmt::Store(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::kept;
    use crate::{Func, Index, Loop, LoopKind, Name, Stmt};

    const TWO: &str = "
func two()
  in A: f32[8]
  out B: f32[8]
  out C: f32[8]

  for i in 0..8
    block B(v: 8 = i)
      B[v] = A[v]
  for j in 0..8
    block C(v: 8 = j)
      C[v] = A[v]
";

    fn two() -> Func {
        crate::text::parse(TWO).expect("the text above is a program")
    }

    #[test]
    fn the_same_program_is_kept() {
        assert_eq!(kept(&two(), &two()), [false, false], "equal is not the same object");
        let func = two();
        assert_eq!(kept(&func, &func.clone()), [true, true]);
    }

    #[test]
    fn a_changed_block_is_not_kept() {
        let mut func = two();
        func.replace_block(&Name::new("C"), |it| Stmt::Block(Arc::new(it)));
        assert_eq!(kept(&two(), &func), [false, false]);
        let before = two();
        let mut after = before.clone();
        after.replace_block(&Name::new("C"), |it| Stmt::Block(Arc::new(it)));
        assert_eq!(kept(&before, &after), [true, false]);
    }

    #[test]
    fn a_block_under_another_loop_is_not_kept() {
        let before = two();
        let mut after = before.clone();
        after.replace_loop(&Name::new("j"), |it| Stmt::Loop(Arc::new(Loop { extent: Index::int(9), ..it })));
        assert_eq!(kept(&before, &after), [true, false]);
        let mut after = before.clone();
        after.replace_loop(&Name::new("i"), |it| {
            Stmt::Loop(Arc::new(Loop { kind: LoopKind::Parallel, ..it }))
        });
        assert_eq!(kept(&before, &after), [true, true]);
    }

    #[test]
    fn a_block_over_another_buffer_is_not_kept() {
        let before = two();
        let mut after = before.clone();
        after.buffers[&Name::new("C")].shape = vec![Index::int(9)];
        assert_eq!(kept(&before, &after), [true, false]);
    }
}
