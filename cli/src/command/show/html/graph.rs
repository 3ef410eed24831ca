//! Draws dependences: blocks in layers, each below all that it depends on, and every edge through its own label.
//!
//! Labels and the bends of long edges take part in the layout as blocks do, so that nothing lies on anything else. All of it is
//! whole numbers, and a function of the graph.

use std::fmt::Write;

use indexmap::IndexMap;
use ir::{Name, deps::DepKind};

use super::super::deps::{Edge, Graph, Node, word};
use crate::term::markup::{escaped, shortened};

/// More blocks than this are a list.
const MAX_BLOCKS: usize = 24;
/// Pixels: a character of a name and of a label, a line of a label, the room between things.
const CHAR: i64 = 8;
const SMALL: i64 = 7;
const LINE: i64 = 15;
const GAP: i64 = 18;
const BLOCK: i64 = 32;
/// How often the order and the places are improved.
const SWEEPS: usize = 6;

/// A thing that has a place: a block, the label of an edge, or where an edge bends.
struct Item {
    layer: usize,
    /// Text lines; a block has one, a bend none.
    lines: Vec<String>,
    width: i64,
    above: Vec<usize>,
    below: Vec<usize>,
    /// Its middle.
    x: i64,
}

impl Item {
    fn new(layer: usize, lines: Vec<String>, char: i64, more: i64) -> Item {
        let longest = lines.iter().map(|it| it.chars().count()).max().unwrap_or(0);
        let (above, below) = (vec![], vec![]);
        Item { layer, lines, width: px(longest) * char + more, above, below, x: 0 }
    }

    /// How high its text is.
    fn height(&self) -> i64 {
        px(self.lines.len()) * LINE
    }

    /// Even layers are for blocks and odd ones for labels; edges bend in both.
    fn is_block(&self) -> bool {
        self.layer.is_multiple_of(2) && !self.lines.is_empty()
    }
}

/// A count as a number of pixels; there are never many.
fn px(count: usize) -> i64 {
    i64::try_from(count).expect("it is in memory")
}

/// All edges between two blocks, as the things they lead through, both blocks included.
struct Link {
    kind: DepKind,
    through: Vec<usize>,
}

/// The dependences as an SVG, or as a list where there are too many.
pub(super) fn html(graph: &Graph) -> String {
    if graph.edges.is_empty() {
        return "<p class=\"quiet\">No block depends on another.</p>\n".to_owned();
    }
    if graph.nodes.len() > MAX_BLOCKS {
        return list(graph);
    }
    let (mut items, links) = items(graph);
    let mut layers = layers(&items);
    place(&mut items, &mut layers);
    let note = "A block stands below what it depends on. RAW: it reads what the other writes; WAR and WAW, broken lines: it overwrites \
                what the other reads or writes.";
    format!(
        "<figure class=\"deps\"><div class=\"scroll\">{}</div><figcaption>{note}</figcaption></figure>\n",
        draw(graph, &items, &links, &layers)
    )
}

fn list(graph: &Graph) -> String {
    let mut out = "<ul>\n".to_owned();
    for it in &graph.edges {
        let [from, to] = [it.from, it.to].map(|at| escaped(graph.nodes[at].block.as_str()));
        let what = format!("{} {}", word(it.kind), escaped(it.buffer.as_str()));
        let _ = writeln!(out, "<li><code>{from}</code> → <code>{to}</code>: {what}</li>");
    }
    out + "</ul>\n"
}

/// The things of a graph, blocks first, and the edges through them.
fn items(graph: &Graph) -> (Vec<Item>, Vec<Link>) {
    let mut between: IndexMap<(usize, usize), Vec<&Edge>> = IndexMap::new();
    for it in &graph.edges {
        between.entry((it.from, it.to)).or_default().push(it);
    }
    // Edges lead from earlier to later blocks, so that one pass in their order finds the layers. The odd ones are for labels.
    let mut layer = vec![0; graph.nodes.len()];
    for to in 0..graph.nodes.len() {
        let befores = between.keys().filter(|it| it.1 == to).map(|it| layer[it.0] + 2);
        layer[to] = befores.max().unwrap_or(0);
    }
    let block =
        |(it, layer): (&Node, &usize)| Item::new(*layer, vec![shortened(it.block.as_str(), 40)], CHAR, 24);
    let mut items: Vec<Item> = graph.nodes.iter().zip(&layer).map(block).collect();
    let mut links = vec![];
    for ((from, to), edges) in between {
        let label = |it: &&Edge| format!("{} {}", word(it.kind), shortened(it.buffer.as_str(), 40));
        let mut labels: Vec<String> = edges.iter().map(label).collect();
        let kind = edges.iter().map(|it| it.kind).min().unwrap_or(DepKind::Raw);
        let mut through = vec![from];
        for at in layer[from] + 1..layer[to] {
            // The first has all labels and the others, where the edge only bends, none.
            items.push(Item::new(at, std::mem::take(&mut labels), SMALL, 4));
            through.push(items.len() - 1);
        }
        through.push(to);
        for pair in through.windows(2) {
            items[pair[0]].below.push(pair[1]);
            items[pair[1]].above.push(pair[0]);
        }
        links.push(Link { kind, through });
    }
    (items, links)
}

/// The things of each layer, from left to right.
fn layers(items: &[Item]) -> Vec<Vec<usize>> {
    let count = items.iter().map(|it| it.layer + 1).max().unwrap_or(0);
    let of = |layer: usize| (0..items.len()).filter(|it| items[*it].layer == layer).collect();
    (0..count).map(of).collect()
}

/// Gives each thing its place: near what it hangs on, in an order with few crossings.
fn place(items: &mut [Item], layers: &mut [Vec<usize>]) {
    for layer in &*layers {
        let mut x = 0;
        for it in layer {
            items[*it].x = x + items[*it].width / 2;
            x += items[*it].width + GAP;
        }
    }
    for sweep in 0..2 * SWEEPS {
        let down = sweep % 2 == 0;
        let count = layers.len();
        for n in 0..count {
            let layer = &mut layers[if down { n } else { count - 1 - n }];
            let wish: Vec<i64> = layer.iter().map(|it| wish(items, *it, down)).collect();
            let mut order: Vec<usize> = (0..layer.len()).collect();
            // The last sweeps only straighten.
            if sweep < SWEEPS {
                order.sort_by_key(|it| wish[*it]);
            }
            let wishes: Vec<i64> = order.iter().map(|it| wish[*it]).collect();
            *layer = order.iter().map(|it| layer[*it]).collect();
            for (it, x) in layer.iter().zip(apart(items, layer, &wishes)) {
                items[*it].x = x;
            }
        }
    }
    let left = items.iter().map(|it| it.x - it.width / 2).min().unwrap_or(0);
    for it in items {
        it.x += 4 - left;
    }
}

/// Where a thing would like to be: in the middle of those it hangs on above or below.
fn wish(items: &[Item], at: usize, down: bool) -> i64 {
    let near = if down { &items[at].above } else { &items[at].below };
    let count = px(near.len());
    if count == 0 { items[at].x } else { near.iter().map(|it| items[*it].x).sum::<i64>() / count }
}

/// Places as near to the wished ones as keeps a layer's order and gaps: the mean of what pushing to the right and pushing to
/// the left give, which keeps the gaps because both do.
fn apart(items: &[Item], layer: &[usize], wishes: &[i64]) -> Vec<i64> {
    let room = |n: usize| i64::midpoint(items[layer[n]].width, items[layer[n + 1]].width) + GAP;
    let (mut right, mut left) = (wishes.to_vec(), wishes.to_vec());
    for n in 1..layer.len() {
        right[n] = right[n].max(right[n - 1] + room(n - 1));
    }
    for n in (1..layer.len()).rev() {
        left[n - 1] = left[n - 1].min(left[n] - room(n - 1));
    }
    right.iter().zip(&left).map(|(a, b)| (a + b).div_euclid(2)).collect()
}

fn height(items: &[Item], layer: &[usize], n: usize) -> i64 {
    let tallest = layer.iter().map(|it| items[*it].height()).max().unwrap_or(0);
    if n.is_multiple_of(2) { BLOCK } else { tallest + 34 }
}

fn draw(graph: &Graph, items: &[Item], links: &[Link], layers: &[Vec<usize>]) -> String {
    let mut tops = vec![4];
    for (n, layer) in layers.iter().enumerate() {
        tops.push(tops[n] + height(items, layer, n));
    }
    let width = items.iter().map(|it| it.x + it.width / 2).max().unwrap_or(0) + 4;
    let height = tops[layers.len()] + 4;
    let mut out = format!(
        "<svg width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"the dependences \
         between blocks\">\n"
    );
    let middle = |it: &Item| i64::midpoint(tops[it.layer], tops[it.layer + 1]);
    for it in links {
        let class = word(it.kind).to_lowercase();
        let _ = write!(out, "<path class=\"{class}\" d=\"{}\"/>", path(items, it, &tops, &middle));
        let to = &items[it.through[it.through.len() - 1]];
        let _ = writeln!(out, "<path class=\"head {class}\" d=\"M{} {}l-4 -8h8z\"/>", to.x, tops[to.layer]);
    }
    for (n, it) in items.iter().enumerate() {
        if let Some(node) = graph.nodes.get(n) {
            out += &block(it, node, tops[it.layer]);
            continue;
        }
        let first = middle(it) - it.height() / 2 + 11;
        for (n, line) in it.lines.iter().enumerate() {
            let y = first + px(n) * LINE;
            let _ = writeln!(out, "<text class=\"label\" x=\"{}\" y=\"{y}\">{}</text>", it.x, escaped(line));
        }
    }
    out + "</svg>\n"
}

/// A block with what it does as its tooltip.
fn block(it: &Item, node: &Node, top: i64) -> String {
    let names = |all: &mut dyn Iterator<Item = &Name>| all.map(Name::as_str).collect::<Vec<_>>().join(", ");
    let tip = format!(
        "loops: {}; reads: {}; writes: {}",
        names(&mut node.loops.iter()),
        names(&mut node.reads.iter()),
        names(&mut node.writes.iter())
    );
    format!(
        "<g><title>{}</title><rect x=\"{}\" y=\"{top}\" width=\"{}\" height=\"{BLOCK}\" rx=\"6\"/><text x=\"{}\" y=\"{}\">{}</text></g>\n",
        escaped(&tip),
        it.x - it.width / 2,
        it.width,
        it.x,
        top + 21,
        escaped(&it.lines[0])
    )
}

/// The curve of an edge, with a gap where its label stands.
fn path(items: &[Item], link: &Link, tops: &[i64], middle: &dyn Fn(&Item) -> i64) -> String {
    let mut out = String::new();
    for pair in link.through.windows(2) {
        let (a, b) = (&items[pair[0]], &items[pair[1]]);
        let half = |it: &Item| if it.lines.is_empty() { 0 } else { it.height() / 2 + 2 };
        let start = if a.is_block() { tops[a.layer] + BLOCK } else { middle(a) + half(a) };
        let end = if b.is_block() { tops[b.layer] - 7 } else { middle(b) - half(b) };
        let bend = i64::midpoint(start, end);
        let _ = write!(out, "M{} {start}C{} {bend} {} {bend} {} {end}", a.x, a.x, b.x, b.x);
    }
    out
}

#[cfg(test)]
mod tests {
    use ir::text::parse;

    use super::{super::super::deps::Graph, html};

    #[test]
    fn a_diamond_with_a_long_edge() {
        let text = "func mine\n  in A: f32[4]\n  out D: f32[4]\n  temp B: f32[4]\n  temp C: f32[4]\n\n  for i in 0..4\n    \
             block B(v: 4 = i)\n      B[v] = A[v]\n  for j in 0..4\n    block C(v: 4 = j)\n      C[v] = B[v]\n  for k in 0..4\n    \
             block D(v: 4 = k)\n      D[v] = B[v] + C[v]\n";
        let func = parse(text).unwrap();
        let drawn = html(&Graph::of(&func));
        insta::assert_snapshot!(drawn);
        assert_eq!(drawn, html(&Graph::of(&func)));
    }
}
