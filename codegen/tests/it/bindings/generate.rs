//! Random programs: temporaries that some nests fill and others read, under loops that are bound at random.

use std::fmt::Write as _;

use super::Made;

/// Random numbers: splitmix64.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed >> 33) % u64::try_from(end).unwrap()).unwrap()
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }
}

/// Sides of a tile: rows and columns.
const TILES: [(usize, usize); 4] = [(4, 4), (4, 3), (3, 5), (2, 6)];
const GRID: [&str; 2] = ["blockIdx.x", "blockIdx.y"];

/// What programs are made of.
pub(crate) struct Kind {
    /// The axes that the loops over tiles may be bound to.
    axes: &'static [&'static str],
    /// The scopes of temporaries.
    scopes: &'static [&'static str],
    /// Whether temporaries have a tile for each iteration of some outer loops.
    many_tiles: bool,
}

/// Programs for grids of blocks.
pub(crate) const BLOCKS: Kind = Kind {
    axes: &["threadIdx.x", "threadIdx.y", "blockIdx.x", "blockIdx.y"],
    scopes: &["global", "shared", "shared", "local"],
    many_tiles: true,
};

/// Programs for clusters, whose memory is dealt out by its first dimension.
pub(crate) const CLUSTERS: Kind = Kind {
    axes: &["cluster.x", "threadIdx.x", "threadIdx.y"],
    scopes: &["cluster", "cluster", "cluster", "shared"],
    many_tiles: false,
};

/// A buffer with tiles, one of them for each iteration of the outer loops that it depends on.
struct Buffer {
    name: &'static str,
    outer: Vec<usize>,
    /// Whether its rows are the columns of the tile.
    turned: bool,
}

struct Generator<'a> {
    kind: &'a Kind,
    random: &'a mut Random,
    /// The extents of the outer loops, and the axes that they are bound to.
    outer: Vec<(usize, Option<&'static str>)>,
    tile: (usize, usize),
    nests: usize,
    bound: String,
    serial: String,
}

/// A program in which temporaries hand tiles from an input to an output.
pub(crate) fn program(random: &mut Random, kind: &Kind) -> Made {
    let outer = (0..random.below(3)).map(|_| {
        let extent = random.pick(&[1, 2, 3]);
        let axis = if random.chance(50) { Some(random.pick(&GRID)) } else { None };
        (extent, axis)
    });
    let mut outer: Vec<_> = outer.collect();
    if outer.len() == 2 && outer[0].1 == outer[1].1 {
        outer[1].1 = None;
    }
    let tile = random.pick(&TILES);
    let mut it =
        Generator { kind, random, outer, tile, nests: 0, bound: String::new(), serial: String::new() };
    it.program();
    Made { bound: it.bound, serial: it.serial }
}

impl Generator<'_> {
    fn line(&mut self, depth: usize, text: &str, axis: Option<&str>) {
        let start = "  ".repeat(depth + 1);
        let end = axis.map(|it| format!(" @{it}")).unwrap_or_default();
        let in_turn = if text.starts_with("for z") { " @threadIdx.x" } else { "" };
        writeln!(self.bound, "{start}{text}{end}").unwrap();
        // One thread has no cluster.
        let text = text.replace("@cluster", "@shared");
        writeln!(self.serial, "{start}{text}{in_turn}").unwrap();
    }

    fn program(&mut self) {
        let all: Vec<usize> = (0..self.outer.len()).collect();
        let a = Buffer { name: "A", outer: all.clone(), turned: false };
        let c = Buffer { name: "C", outer: all.clone(), turned: false };
        let temps = ["T", "U"].map(|name| Buffer {
            name,
            outer: all.iter().copied().filter(|_| self.kind.many_tiles && self.random.chance(50)).collect(),
            turned: self.random.chance(30),
        });
        self.bound.push_str("func random\n");
        self.serial.push_str("func random\n");
        let scopes = [0, 1].map(|_| self.random.pick(self.kind.scopes));
        let two = self.random.chance(50);
        for (keyword, buffer) in [("in", &a), ("out", &c)] {
            let shape = self.shape(buffer);
            self.line(0, &format!("{keyword} {}: f32{shape}", buffer.name), None);
        }
        for (buffer, scope) in temps.iter().zip(scopes).take(if two { 2 } else { 1 }) {
            let shape = self.shape(buffer);
            self.line(0, &format!("temp {}: f32{shape} @{scope}", buffer.name), None);
        }
        self.bound += "\n";
        self.serial += "\n";
        self.line(0, "for z in 0..1", None);
        let mut steps = vec![(&a, &temps[0])];
        if self.random.chance(15) {
            steps.push((&a, &temps[0]));
        }
        if two {
            steps.push((&temps[0], &temps[1]));
            steps.push((&temps[1], &c));
        } else {
            steps.push((&temps[0], &c));
        }
        // Each step stands in the outer loops or, the first ones, before the inner of them.
        let mut before: Vec<usize> = steps[..steps.len() - 1]
            .iter()
            .map(|_| all.len() - usize::from(self.random.chance(25)).min(all.len()))
            .collect();
        before.push(all.len());
        before.sort_unstable();
        let mut open = 0;
        for ((from, to), depth) in steps.into_iter().zip(before) {
            while open < depth {
                let (extent, axis) = self.outer[open];
                self.line(open + 1, &format!("for o{open} in 0..{extent}"), axis);
                open += 1;
            }
            self.nest(from, to, open);
        }
    }

    fn shape(&self, buffer: &Buffer) -> String {
        let (rows, columns) = self.tile;
        let tile = if buffer.turned { [columns, rows] } else { [rows, columns] };
        let all = buffer.outer.iter().map(|it| self.outer[*it].0).chain(tile);
        format!("[{}]", all.map(|it| it.to_string()).collect::<Vec<_>>().join(", "))
    }

    /// Loops over a tile in one of several shapes; values for rows and columns, and a guard.
    fn loops(&mut self, depth: &mut usize) -> (String, String, String) {
        let (n, (rows, columns)) = (self.nests, self.tile);
        let is_free = |it: &&str| self.outer.iter().all(|outer| outer.1 != Some(*it));
        let mut free: Vec<&str> = self.kind.axes.iter().copied().filter(is_free).collect();
        free.retain(|it| !it.starts_with("block") || self.random.chance(15));
        let mut drawn = |random: &mut Random| {
            let at = random.below(free.len());
            random.chance(60).then(|| free.remove(at))
        };
        let mut add = |it: &mut Self, name: &str, extent: usize, axis: Option<&str>| {
            it.line(*depth, &format!("for {name}{n} in 0..{extent}"), axis);
            *depth += 1;
        };
        match self.random.below(4) {
            0 | 1 => {
                let axes = [drawn(self.random), drawn(self.random)];
                add(self, "a", rows, axes[0]);
                add(self, "b", columns, axes[1]);
                (format!("a{n}"), format!("b{n}"), String::new())
            }
            2 => {
                let axis = drawn(self.random);
                add(self, "f", rows * columns, axis);
                (format!("f{n} floordiv {columns}"), format!("f{n} mod {columns}"), String::new())
            }
            _ => {
                let threads = self.random.pick(&[4, 5, 8, 32]);
                let axes = [drawn(self.random).filter(|_| self.random.chance(30)), drawn(self.random)];
                add(self, "p", (rows * columns).div_ceil(threads), axes[0]);
                add(self, "t", threads, axes[1]);
                let fused = format!("(p{n}*{threads} + t{n})");
                let guard = format!(" if {fused} < {}", rows * columns);
                (format!("{fused} floordiv {columns}"), format!("{fused} mod {columns}"), guard)
            }
        }
    }

    fn nest(&mut self, from: &Buffer, to: &Buffer, open: usize) {
        self.nests += 1;
        let mut depth = open + 1;
        let (rows, columns) = self.tile;
        let (row, column, guard) = self.loops(&mut depth);
        let mut iters: Vec<String> =
            (0..open).map(|it| format!("v{it}: {} = o{it}", self.outer[it].0)).collect();
        iters.push(format!("r: {rows} = {row}"));
        iters.push(format!("c: {columns} = {column}"));
        let n = self.nests;
        self.line(depth, &format!("block B{n}({}){guard}", iters.join(", ")), None);
        let read = match self.random.below(10) {
            0 | 1 => (format!("{} - r", rows - 1), "c".to_owned()),
            2 => ("r".to_owned(), "0".to_owned()),
            _ => ("r".to_owned(), "c".to_owned()),
        };
        let place = access(to, open, ("r".to_owned(), "c".to_owned()));
        let value = access(from, open, read);
        self.line(depth + 1, &format!("{place} = {value} + {n}.0f32"), None);
    }
}

fn access(buffer: &Buffer, open: usize, (row, column): (String, String)) -> String {
    let outer = buffer.outer.iter().map(|it| if *it < open { format!("v{it}") } else { "0".to_owned() });
    let tile = if buffer.turned { [column, row] } else { [row, column] };
    format!("{}[{}]", buffer.name, outer.chain(tile).collect::<Vec<_>>().join(", "))
}
