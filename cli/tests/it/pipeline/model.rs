//! Small loops to pipeline, in a form of this test's own, and the text that the tool reads.
//!
//! Nothing here knows the tool: what a loop means is in `oracle.rs`, and the text is checked against that.

use std::fmt::Write as _;

/// How many threads run each loop.
pub(crate) const THREADS: i64 = 3;
/// The most iterations that any of these loops is run for.
pub(crate) const MAX_TRIPS: i64 = 12;
/// How far beyond `3 * trips` a subscript may reach.
pub(crate) const MARGIN: i64 = 8;

/// A loop to pipeline and what stands around it.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub(crate) trips: Trips,
    /// Whether each component has a loop over threads of its own; else one is around all.
    pub(crate) cooperative: bool,
    pub(crate) buffers: Vec<Buffer>,
    pub(crate) components: Vec<Component>,
}

/// How often the loop runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Trips {
    Constant(i64),
    /// A symbolic dimension, from 1 to [`MAX_TRIPS`].
    Symbolic,
}

/// A buffer that components write; the only input is `A`.
#[derive(Clone, Debug)]
pub(crate) struct Buffer {
    pub(crate) kind: BufferUse,
    /// Whether it is as long as the loop needs; else [`MARGIN`] elements a thread.
    pub(crate) long: bool,
    /// Whether one component has it for itself.
    pub(crate) own: bool,
}

/// What a buffer is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BufferUse {
    /// An output, filled before the loop.
    Output,
    /// A temporary, filled before the loop and copied to an output after it.
    Carried(&'static str),
    /// A temporary that is used in the loop only.
    Inner(&'static str),
}

/// A statement directly in the loop: its blocks, under one loop over a tile if that has more than one element.
#[derive(Clone, Debug)]
pub(crate) struct Component {
    pub(crate) tile: i64,
    /// Whether that loop is there to be pipelined itself.
    pub(crate) nested: bool,
    pub(crate) blocks: Vec<Block>,
}

/// A block: `place = sum of reads`, or `place = place + sum of reads` with a reduction iterator.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    pub(crate) guard: Guard,
    pub(crate) reduce: Reduce,
    pub(crate) place: Access,
    pub(crate) reads: Vec<Access>,
    /// Whether the block is one load and nothing else, as an asynchronous copy must be.
    pub(crate) copies: bool,
}

/// When a block runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Guard {
    Always,
    /// In all iterations but the first.
    NotFirst,
    /// In every second iteration.
    Even,
}

/// Whether a block reduces over the pipelined loop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reduce {
    No,
    /// Onto what stood there before the loop.
    Update,
    /// From zero, in the first iteration.
    Init,
}

/// An access: `buffer[thread, subscript]`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Access {
    /// The number of the buffer; none is the input.
    pub(crate) buffer: Option<usize>,
    /// Whether a thread reads what another one wrote.
    pub(crate) flip: bool,
    pub(crate) subscript: Subscript,
}

/// `((per_trip * i + offset) mod m) + per_tile * j`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Subscript {
    pub(crate) per_trip: i64,
    pub(crate) offset: i64,
    pub(crate) modulo: Option<i64>,
    pub(crate) per_tile: i64,
}

impl Subscript {
    pub(crate) fn at(self, trip: i64, tile: i64) -> i64 {
        let plain = self.per_trip * trip + self.offset;
        self.modulo.map_or(plain, |it| plain.rem_euclid(it)) + self.per_tile * tile
    }

    fn text(self) -> String {
        let plain = match (self.per_trip, self.offset) {
            (0, offset) => offset.to_string(),
            (factor, offset) => format!("vi*{factor} + {offset}"),
        };
        let plain = self.modulo.map_or(plain.clone(), |it| format!("(({plain}) mod {it})"));
        match self.per_tile {
            0 => plain,
            factor => format!("{plain} + vj*{factor}"),
        }
    }
}

impl Guard {
    pub(crate) fn holds(self, trip: i64) -> bool {
        match self {
            Guard::Always => true,
            Guard::NotFirst => trip > 0,
            Guard::Even => trip % 2 == 0,
        }
    }

    const fn text(self) -> &'static str {
        match self {
            Guard::Always => "",
            Guard::NotFirst => " if 0 < i",
            Guard::Even => " if i mod 2 < 1",
        }
    }
}

impl Access {
    fn text(&self) -> String {
        let row = if self.flip { format!("{} - vt", THREADS - 1) } else { "vt".to_owned() };
        let name = self.buffer.map_or("A".to_owned(), buffer_name);
        format!("{name}[{row}, {}]", self.subscript.text())
    }
}

pub(crate) fn buffer_name(at: usize) -> String {
    format!("B{at}")
}

pub(crate) fn output_name(at: usize) -> String {
    format!("D{at}")
}

/// The name by which an annotation calls a component.
pub(crate) fn component_name(at: usize) -> String {
    block_name(at, 0)
}

pub(crate) fn block_name(component: usize, block: usize) -> String {
    format!("c{component}_{block}")
}

/// The name of the loop over a component's tile.
pub(crate) fn tile_name(component: usize) -> String {
    format!("j{component}")
}

impl Program {
    pub(crate) fn extent(&self) -> String {
        match self.trips {
            Trips::Constant(it) => it.to_string(),
            Trips::Symbolic => "n".to_owned(),
        }
    }

    /// The numbers of iterations that stand for all.
    pub(crate) fn all_trips(&self) -> Vec<i64> {
        match self.trips {
            Trips::Constant(it) => vec![it],
            Trips::Symbolic => (1..=MAX_TRIPS).collect(),
        }
    }

    fn size(&self, long: bool) -> String {
        match (long, self.trips) {
            (false, _) => MARGIN.to_string(),
            (true, Trips::Constant(it)) => (3 * it + MARGIN).to_string(),
            (true, Trips::Symbolic) => format!("n*3 + {MARGIN}"),
        }
    }

    /// The program as the tool reads it, its loops over threads (`t…`) still serial.
    pub(crate) fn text(&self) -> String {
        let dims = if self.trips == Trips::Symbolic { "(n)" } else { "" };
        let mut out = format!("func p{dims}\n  in A: f32[{THREADS}, {}]\n", self.size(true));
        for (at, it) in self.buffers.iter().enumerate() {
            let (name, size) = (buffer_name(at), self.size(it.long));
            let (role, scope) = match it.kind {
                BufferUse::Output => ("out", ""),
                BufferUse::Carried(scope) | BufferUse::Inner(scope) => ("temp", scope),
            };
            writeln!(out, "  {role} {name}: f32[{THREADS}, {size}]{scope}").unwrap();
            if let BufferUse::Carried(_) = it.kind {
                writeln!(out, "  out {}: f32[{THREADS}, {size}]", output_name(at)).unwrap();
            }
        }
        out.push_str("\n  for b in 0..1\n");
        let around = if self.cooperative { 2 } else { 3 };
        if !self.cooperative {
            writeln!(out, "    for t in 0..{THREADS}").unwrap();
        }
        let mut lines = Lines { out, cooperative: self.cooperative };
        for (at, it) in
            self.buffers.iter().enumerate().filter(|(_, it)| !matches!(it.kind, BufferUse::Inner(_)))
        {
            lines.whole(around, "fill", &buffer_name(at), "A", &self.size(it.long));
        }
        lines.line(around, &format!("for i in 0..{}", self.extent()));
        for (at, it) in self.components.iter().enumerate() {
            lines.component(around + 1, at, it, &self.extent());
        }
        let carried = |it: &(usize, &Buffer)| matches!(it.1.kind, BufferUse::Carried(_));
        for (at, it) in self.buffers.iter().enumerate().filter(carried) {
            lines.whole(around, "keep", &output_name(at), &buffer_name(at), &self.size(it.long));
        }
        lines.out
    }
}

/// Text being written.
struct Lines {
    out: String,
    cooperative: bool,
}

impl Lines {
    fn line(&mut self, depth: usize, text: &str) {
        writeln!(self.out, "{:1$}{text}", "", 2 * depth).unwrap();
    }

    /// A loop over threads where each component has its own; the depth inside it, and its variable.
    fn threads(&mut self, depth: usize, name: &str) -> (usize, String) {
        if !self.cooperative {
            return (depth, "t".to_owned());
        }
        self.line(depth, &format!("for t_{name} in 0..{THREADS}"));
        (depth + 1, format!("t_{name}"))
    }

    fn whole(&mut self, depth: usize, stem: &str, to: &str, from: &str, size: &str) {
        let name = format!("{stem}_{to}");
        let (depth, t) = self.threads(depth, &name);
        self.line(depth, &format!("for z_{name} in 0..{size}"));
        self.line(depth + 1, &format!("block {name}(vt: {THREADS} = {t}, vz: {size} = z_{name})"));
        self.line(depth + 2, &format!("{to}[vt, vz] = {from}[vt, vz]"));
    }

    fn component(&mut self, depth: usize, at: usize, it: &Component, extent: &str) {
        let (mut depth, t) = self.threads(depth, &format!("c{at}"));
        if it.tile > 1 {
            self.line(depth, &format!("for j{at} in 0..{}", it.tile));
            depth += 1;
        }
        for (number, block) in it.blocks.iter().enumerate() {
            let tile = if it.tile > 1 { format!(", vj: {} = j{at}", it.tile) } else { String::new() };
            let kind = if block.reduce == Reduce::No { "" } else { "reduce " };
            let head = format!("block c{at}_{number}(vt: {THREADS} = {t}{tile}, vi: {kind}{extent} = i)");
            self.line(depth, &format!("{head}{}", block.guard.text()));
            let place = block.place.text();
            if block.reduce == Reduce::Init {
                self.line(depth + 1, "init");
                self.line(depth + 2, &format!("{place} = 0.0f32"));
            }
            let value = if block.copies { block.reads[0].text() } else { sum(&block.reads, at) };
            let value = if block.reduce == Reduce::No { value } else { format!("{place} + ({value})") };
            self.line(depth + 1, &format!("{place} = {value}"));
        }
    }
}

/// The factor of a read, by its place among the reads.
pub(crate) const FACTORS: [f64; 4] = [0.5, 0.25, 0.75, -0.5];

/// What a component adds to the sum of its reads.
pub(crate) fn constant(component: usize) -> f64 {
    component as f64 + 1.5
}

fn sum(reads: &[Access], component: usize) -> String {
    let term = |(access, factor): (&Access, f64)| format!("{} * ({factor:?}f32) + ", access.text());
    let terms: String = reads.iter().zip(FACTORS).map(term).collect();
    format!("{terms}{:?}f32", constant(component))
}
