//! Marks that passes before the door leave on blocks, for the door to read.

use std::sync::Arc;

use ir::{Annotation, Annotations, Block, Func, Name, Op, Stmt, Wait};

/// On a block: its stores are copies that may land later.
pub(crate) const COPY: &str = "async_copy";
/// On a block without body: here each thread closes its group of copies.
pub(crate) const COMMIT: &str = "async_commit";
/// On a block without body: here each thread waits. For each buffer that is waited for, how many groups may still be
/// under way; the numbers are equal.
pub(crate) const WAIT: &str = "async_wait";
/// On a block without body: here stands a comment.
const NOTE: &str = "pipeline_note";

/// The program without the marks that passes leave on blocks for later ones: a program that a user wrote may have any
/// annotation, and has to have none of these.
pub fn without_marks(mut func: Func) -> Func {
    func.map_blocks(&mut |block| {
        block.annotations.retain(|key, _| ![COPY, COMMIT, WAIT, NOTE].contains(&key.as_str()));
    });
    func
}

/// A marker that becomes [`Op::Commit`].
pub(crate) fn commit(name: Name) -> Stmt {
    marker(name, COMMIT, Annotation::Int(1))
}

/// A marker that becomes [`Op::Wait`].
pub(crate) fn wait(name: Name, it: &Wait) -> Stmt {
    let numbers = it.buffers.iter().map(|buffer| (buffer.clone(), i64::from(it.in_flight)));
    marker(name, WAIT, Annotation::Map(numbers.collect()))
}

/// A marker that becomes [`Op::Comment`].
pub(crate) fn note(text: String) -> Stmt {
    marker(Name::new(NOTE), NOTE, Annotation::Text(text))
}

/// Whether a block is such a marker.
pub(crate) fn is_note(block: &Block) -> bool {
    block.annotations.contains_key(NOTE)
}

fn marker(name: Name, key: &str, value: Annotation) -> Stmt {
    let annotations = Annotations::from([(key.to_owned(), value)]);
    let (iters, guards, body) = (vec![], vec![], Stmt::Seq(vec![]));
    Stmt::Block(Arc::new(Block { name, iters, guards, annotations, init: None, body }))
}

/// What a marker stands for; nothing for other blocks.
pub(crate) fn marked(block: &Block) -> Option<Op> {
    if block.annotations.contains_key(COMMIT) {
        return Some(Op::Commit);
    }
    if let Some(Annotation::Text(text)) = block.annotations.get(NOTE) {
        return Some(Op::Comment(text.clone()));
    }
    let Annotation::Map(numbers) = block.annotations.get(WAIT)? else { return None };
    // Fewer in flight is always right.
    let in_flight = numbers.values().copied().min().unwrap_or(0).max(0);
    let in_flight = u32::try_from(in_flight).unwrap_or(u32::MAX);
    Some(Op::Wait(Wait { in_flight, buffers: numbers.keys().cloned().collect() }))
}
