//! `tilewright show --emit deps`: which block must stay after which, and because of which buffer.
//!
//! An edge leads from a block to a later one: the later reads what the earlier writes (RAW), overwrites what it reads (WAR)
//! or what it writes (WAW). Judged by buffer, as [`ir::deps`] does; what iterations of one loop have with each other is
//! the business of pipelines, and not drawn.

use std::fmt::Write;

use indexmap::{IndexMap, IndexSet};
use ir::{Access, Block, Func, Name, Stmt, deps::DepKind};
use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    constant::{True, word},
    diagnostic::Diagnostic,
    term::report::Report,
    term::{code::Lang, shell::Shell},
};

/// The dependences of a program.
pub(super) struct Graph {
    name: Name,
    /// In program order.
    pub(super) nodes: Vec<Node>,
    /// By the later block, then the earlier.
    pub(super) edges: Vec<Edge>,
}

/// A block.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Node {
    /// Its name.
    pub(super) block: Name,
    /// The loops around it, outermost first.
    pub(super) loops: Vec<Name>,
    /// The buffers that it reads.
    pub(super) reads: IndexSet<Name>,
    /// The buffers that it writes.
    pub(super) writes: IndexSet<Name>,
}

/// A dependence between two blocks, by their places among the nodes.
pub(super) struct Edge {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) kind: DepKind,
    pub(super) buffer: Name,
}

impl Graph {
    /// The graph of a scheduled program.
    pub(super) fn of(func: &Func) -> Graph {
        let inside = nesting(&func.body);
        let graph = ir::deps::graph(&func.body);
        let nodes = func.body.blocks().into_iter().map(|it| node(func, it)).collect();
        // A block that stands in another is a part of it, and has no order with it.
        let is_apart = |a: &Name, b: &Name| {
            let within = |a, b| inside.get(a).is_some_and(|it: &Vec<Name>| it.contains(b));
            !within(a, b) && !within(b, a)
        };
        let edges = graph.edge_indices().filter_map(|at| {
            let (from, to) = graph.edge_endpoints(at)?;
            let dep = &graph[at];
            let (kind, buffer) = (dep.kind, dep.buffer.clone());
            is_apart(&graph[from], &graph[to]).then(|| Edge {
                from: from.index(),
                to: to.index(),
                kind,
                buffer,
            })
        });
        let edges = edges.collect();
        Graph { name: func.name.clone(), nodes, edges }
    }

    /// As Graphviz reads it: solid lines for what is read, broken ones for what must not be overwritten early.
    pub(super) fn dot(&self) -> String {
        let mut out = format!("digraph {} {{\n", quoted(self.name.as_str()));
        out += "  node [shape=box, fontname=\"monospace\"];\n  edge [fontname=\"monospace\", fontsize=10];\n";
        for it in &self.nodes {
            let name = quoted(it.block.as_str());
            let loops: Vec<_> = it.loops.iter().map(Name::as_str).collect();
            let _ = writeln!(out, "  {name} [tooltip={}];", quoted(&loops.join(" ")));
        }
        for it in &self.edges {
            let (from, to) = (&self.nodes[it.from].block, &self.nodes[it.to].block);
            let label = quoted(&format!("{} {}", word(it.kind), it.buffer));
            let style = match it.kind {
                DepKind::Raw => "solid",
                DepKind::War => "dashed",
                DepKind::Waw => "dotted",
            };
            let (from, to) = (quoted(from.as_str()), quoted(to.as_str()));
            let _ = writeln!(out, "  {from} -> {to} [label={label}, style={style}];");
        }
        out + "}\n"
    }

    fn edge<'a>(&'a self, it: &'a Edge) -> EdgeReport<'a> {
        EdgeReport {
            from: &self.nodes[it.from].block,
            to: &self.nodes[it.to].block,
            kind: match it.kind {
                DepKind::Raw => Hazard::Raw,
                DepKind::War => Hazard::War,
                DepKind::Waw => Hazard::Waw,
            },
            buffer: &it.buffer,
        }
    }

    fn report(&self) -> DepsReport<'_> {
        DepsReport {
            ok: True,
            emit: word::Deps,
            program: &self.name,
            nodes: &self.nodes,
            edges: self.edges.iter().map(|it| self.edge(it)).collect(),
            graph: self,
        }
    }
}

/// The dependences between the blocks of a program.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "--emit deps")]
pub(crate) struct DepsReport<'a> {
    ok: True,
    /// What is shown.
    emit: word::Deps,
    /// The program.
    program: &'a Name,
    /// Its blocks, in program order.
    nodes: &'a [Node],
    /// The dependences, by the later block, then the earlier.
    edges: Vec<EdgeReport<'a>>,
    #[serde(skip)]
    graph: &'a Graph,
}

/// A dependence between two blocks.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Edge")]
struct EdgeReport<'a> {
    /// The earlier block.
    from: &'a Name,
    /// The later block.
    to: &'a Name,
    /// Read after write, write after read, write after write.
    kind: Hazard,
    /// Because of which buffer.
    buffer: &'a Name,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Hazard {
    Raw,
    War,
    Waw,
}

impl Report for DepsReport<'_> {
    fn print(&self, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
        shell.code(&self.graph.dot(), Lang::Dot)
    }
}

pub(super) fn show(func: &Func, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
    shell.report(&Graph::of(func).report())
}

/// The hazard, as the field calls it.
pub(super) const fn word(kind: DepKind) -> &'static str {
    match kind {
        DepKind::Raw => "RAW",
        DepKind::War => "WAR",
        DepKind::Waw => "WAW",
    }
}

fn node(func: &Func, block: &Block) -> Node {
    let buffers = |all: Vec<&Access>| all.into_iter().map(|it| it.buffer.clone()).collect();
    let loops = func.loops_of(&block.name).expect("the block is one of the program's");
    let loops = loops.into_iter().map(|it| it.var.clone()).collect();
    Node { block: block.name.clone(), loops, reads: buffers(block.reads()), writes: buffers(block.writes()) }
}

/// The blocks within each block.
fn nesting(body: &Stmt) -> IndexMap<Name, Vec<Name>> {
    let within = |it: &Block| {
        let parts = it.init.iter().chain([&it.body]);
        parts.flat_map(Stmt::blocks).map(|it| it.name.clone()).collect()
    };
    body.blocks().into_iter().map(|it| (it.name.clone(), within(it))).collect()
}

/// A text in the quotes of Graphviz.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
