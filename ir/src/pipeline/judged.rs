//! What the judgement of a pipeline is about, so that it is not asked for again where nothing of that has changed.

use std::sync::Arc;

use super::is_pipeline;
use crate::{Block, BlockAttrs, Func, Loop, Numbers, Stmt};

/// Whether two programs have the same blocks under the same loops and over the same buffers, whatever is asked of them and
/// however the loops are run.
///
/// What a judgement asks of blocks does not depend on that: how many slots they want and which warps run them is a matter
/// of [`expand`](super::expand()).
pub fn are_alike(a: &Func, b: &Func) -> bool {
    a.dims == b.dims && a.buffers == b.buffers && are_stmts_alike(&a.body, &b.body)
}

fn are_stmts_alike(a: &Stmt, b: &Stmt) -> bool {
    match (a, b) {
        (Stmt::Loop(a), Stmt::Loop(b)) => {
            Arc::ptr_eq(a, b) || a.var == b.var && a.extent == b.extent && are_stmts_alike(&a.body, &b.body)
        }
        (Stmt::Block(a), Stmt::Block(b)) => Arc::ptr_eq(a, b) || are_blocks_alike(a, b),
        (Stmt::Seq(a), Stmt::Seq(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| are_stmts_alike(a, b))
        }
        _ => a == b,
    }
}

fn are_blocks_alike(a: &Block, b: &Block) -> bool {
    let plain = |it: &Block| Block { attrs: BlockAttrs::default(), ..it.clone() };
    plain(a) == plain(b)
}

/// Whether a pipeline, of two programs that [are alike](are_alike), is judged in the same way in both.
///
/// The parts of a pipeline inside are what its own annotations make of it.
pub fn is_judged_alike(a: &Loop, b: &Loop) -> bool {
    fn judged(it: &Loop) -> Option<[Option<&Numbers>; 2]> {
        it.attrs.pipeline.as_ref().map(|it| [it.stages.as_ref(), it.orders.as_ref()])
    }
    let benign = |it: &Loop| it.attrs.pipeline.as_ref().and_then(|it| it.benign.clone());
    let own = a.kind == b.kind && judged(a) == judged(b) && benign(a) == benign(b);
    own && (!has_pipelines(&b.body) || a == b)
}

fn has_pipelines(body: &Stmt) -> bool {
    let mut found = false;
    body.walk(&mut |stmt| found |= matches!(stmt, Stmt::Loop(it) if is_pipeline(it)));
    found
}

#[cfg(test)]
mod tests {
    use super::{are_alike, is_judged_alike};
    use crate::{Func, Name};

    /// A pipeline in which a buffer is filled and used.
    fn pipeline(attrs: &str, extent: i64) -> Func {
        let text = format!(
            "
func copied()
  in A: f32[8]
  out C: f32[8]
  temp B: f32[8] @shared

  for k in 0..{extent} #{{software_pipeline_stage: {{B: 0, C: 1}}, software_pipeline_order: {{B: 1, C: 0}}{attrs}}}
    block B(v: 8 = k) #{{double_buffer_slots: 2}}
      B[v] = A[v]
    block C(v_1: 8 = k)
      C[v_1] = B[v_1]
"
        );
        crate::text::parse(&text).expect("the text above is a program")
    }

    fn is_judged_again(a: &Func, b: &Func) -> bool {
        let find = |it| Func::find_loop(it, &Name::new("k")).expect("it is there");
        !are_alike(a, b) || !is_judged_alike(find(a), find(b))
    }

    #[test]
    fn what_a_judgement_does_not_ask_does_not_matter() {
        let plain = pipeline("", 8);
        assert!(!is_judged_again(&plain, &pipeline("", 8)));
        assert!(!is_judged_again(&plain, &pipeline(", software_pipeline_async_stages: [0]", 8)));
        let mut other_slots = plain.clone();
        other_slots.map_blocks(&mut |it| it.attrs.slots = Some(3));
        assert_ne!(other_slots, plain);
        assert!(!is_judged_again(&plain, &other_slots));
    }

    #[test]
    fn what_it_asks_does() {
        let plain = pipeline("", 8);
        assert!(is_judged_again(&plain, &pipeline("", 7)), "another extent");
        assert!(
            is_judged_again(&plain, &pipeline(", software_pipeline_benign: {C: 1}", 8)),
            "other promises"
        );
        let mut wider = plain.clone();
        wider.buffers[&Name::new("B")].shape = vec![crate::Index::int(9)];
        assert!(is_judged_again(&plain, &wider), "another shape");
    }
}
