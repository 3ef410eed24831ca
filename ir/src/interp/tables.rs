//! What the inputs hold whose elements are indices.

use std::sync::Arc;

use indexmap::IndexMap;

use crate::{Func, Name};

/// Inputs of integers by name, row-major.
pub(crate) type Tables = IndexMap<Name, Arc<[i64]>>;

/// The tables of a program; `read` gives the element of the input of a number at a position.
pub(crate) fn tables(func: &Func, shapes: &[Vec<usize>], read: &dyn Fn(usize, usize) -> f64) -> Tables {
    let mut out = Tables::new();
    for name in func.tables() {
        let Some(buffer) = func.buffers.get_index_of(&name) else { continue };
        let len = shapes[buffer].iter().product();
        #[expect(clippy::cast_possible_truncation, reason = "an input of integers holds integers")]
        let all = (0..len).map(|at| read(buffer, at) as i64).collect();
        out.insert(name, all);
    }
    out
}
