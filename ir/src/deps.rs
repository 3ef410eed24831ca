//! Dependences between blocks, as a petgraph graph in program order.

use petgraph::graph::DiGraph;

use crate::{Access, Block, Name, Stmt};

/// Why one block must stay after another.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Dep {
    /// What kind of hazard.
    pub kind: DepKind,
    /// The buffer both touch.
    pub buffer: Name,
}

/// The kinds of hazard.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum DepKind {
    /// The later block reads what the earlier one writes.
    Raw,
    /// The later block overwrites what the earlier one reads.
    War,
    /// Both write.
    Waw,
}

/// The dependences between the blocks of a statement: an edge from the earlier to the later block for each hazard
/// and buffer. Nodes are in program order. Judged by buffer, not by region, and without loop-carried ones.
pub fn graph(stmt: &Stmt) -> DiGraph<Name, Dep> {
    let blocks = stmt.blocks();
    let mut graph = DiGraph::new();
    let nodes: Vec<_> = blocks.iter().map(|it| graph.add_node(it.name.clone())).collect();
    for (later, dst) in blocks.iter().enumerate() {
        for (earlier, src) in blocks[..later].iter().enumerate() {
            for dep in between(src, dst) {
                graph.add_edge(nodes[earlier], nodes[later], dep);
            }
        }
    }
    graph
}

/// The hazards from an earlier block to a later one.
pub fn between(src: &Block, dst: &Block) -> Vec<Dep> {
    let mut out: Vec<Dep> = Vec::new();
    let mut meet = |kind, earlier: Vec<&Access>, later: Vec<&Access>| {
        for a in earlier {
            let dep = Dep { kind, buffer: a.buffer.clone() };
            if later.iter().any(|b| b.buffer == a.buffer) && !out.contains(&dep) {
                out.push(dep);
            }
        }
    };
    meet(DepKind::Raw, src.writes(), dst.reads());
    meet(DepKind::War, src.reads(), dst.writes());
    meet(DepKind::Waw, src.writes(), dst.writes());
    out
}
