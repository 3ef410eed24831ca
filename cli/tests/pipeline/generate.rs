//! Loops and annotations at random.

use crate::{
    model::{
        Access, Block, Buffer, Component, Guard, Kind, MARGIN, MOST_TRIPS, Program, Reduce, Subscript, Trips,
    },
    oracle::{Oracle, Times},
    random::Asked,
};

/// Random numbers: splitmix64.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from zero, below `end`.
    pub(crate) fn below(&mut self, end: i64) -> i64 {
        i64::try_from(self.next() % u64::try_from(end).expect("positive")).expect("small")
    }

    /// Yes in `part` cases of `whole`.
    pub(crate) fn chance(&mut self, part: i64, whole: i64) -> bool {
        self.below(whole) < part
    }

    pub(crate) fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[usize::try_from(self.below(i64::try_from(of.len()).expect("small"))).expect("positive")]
    }

    /// A number from the standard normal distribution.
    pub(crate) fn normal(&mut self) -> f64 {
        let mut unit = || ((self.next() >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
        let (radius, angle) = (unit(), unit());
        (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
    }

    fn shuffle<T>(&mut self, of: &mut [T]) {
        for at in (1..of.len()).rev() {
            let other = self.below(i64::try_from(at).expect("small") + 1);
            of.swap(at, usize::try_from(other).expect("positive"));
        }
    }

    /// A loop.
    pub(crate) fn program(&mut self) -> Program {
        let trips = if self.chance(1, 3) { Trips::Symbolic } else { Trips::Constant(1 + self.below(9)) };
        let cooperative = self.chance(1, 2);
        let wanted = 1 + self.below(3);
        let buffers: Vec<Buffer> = (0..wanted).map(|at| self.buffer(at, trips, cooperative)).collect();
        let mut out = Program { trips, cooperative, buffers, components: Vec::new() };
        for at in 0..2 + self.below(4) {
            let component = self.component(&out, at);
            out.components.push(component);
        }
        out.settle();
        out
    }

    fn buffer(&mut self, at: i64, trips: Trips, cooperative: bool) -> Buffer {
        let local = if cooperative { " @shared" } else { " @local" };
        let scope = self.pick(&[" @shared", " @shared", local, ""]);
        let kind = match (at, self.chance(1, 4)) {
            (0, false) => Kind::Output,
            (_, true) => Kind::Carried(scope),
            (_, false) => Kind::Inner(scope),
        };
        let constant =
            matches!(trips, Trips::Constant(_)) || matches!(kind, Kind::Output | Kind::Carried(""));
        Buffer { kind, long: constant && self.chance(2, 3) }
    }

    fn component(&mut self, program: &Program, at: i64) -> Component {
        let tile = self.pick(&[1, 1, 1, 2, 3]);
        let count = if (tile > 1 || program.cooperative) && self.chance(1, 5) { 2 } else { 1 };
        let buffers = i64::try_from(program.buffers.len()).expect("small");
        let mut blocks: Vec<Block> = Vec::new();
        for _ in 0..count {
            // Rather a chain through the buffers, its last link the first buffer, which is seen afterwards.
            let chained = self.chance(2, 3);
            let to = if chained { (at + 1) % buffers } else { self.below(buffers) };
            let from = if chained { at % buffers } else { self.below(buffers) };
            blocks.push(self.block(
                program,
                tile,
                usize::try_from(to).unwrap(),
                usize::try_from(from).unwrap(),
            ));
        }
        // Threads exchange data between components only.
        let written: Vec<_> = blocks.iter().map(|it| it.place.buffer).collect();
        for read in blocks.iter_mut().flat_map(|it| &mut it.reads) {
            read.flip &= !written.contains(&read.buffer);
        }
        Component { tile, blocks }
    }

    fn block(&mut self, program: &Program, tile: i64, to: usize, from: usize) -> Block {
        let guard = self.pick(&[Guard::Always, Guard::Always, Guard::Always, Guard::NotFirst, Guard::Even]);
        let guarded = guard != Guard::Always;
        let mut reduce = self.pick(&[Reduce::No, Reduce::No, Reduce::No, Reduce::Update, Reduce::Init]);
        if guarded && reduce == Reduce::Init {
            reduce = Reduce::Update;
        }
        let mut place = self.access(program, Some(to), tile, guard);
        place.flip = false;
        if reduce != Reduce::No {
            // A reduction has the same place in each iteration.
            place.subscript = Subscript { per_trip: 0, modulo: None, ..place.subscript };
            place.subscript.offset = place.subscript.offset.max(0);
        }
        let copies = reduce == Reduce::No && self.chance(1, 3);
        let count = if copies { 1 } else { 1 + self.below(2) };
        let reads = (0..count).map(|n| {
            let input = copies && self.chance(3, 4) || self.chance(1, 4);
            let other = usize::try_from(self.below(i64::try_from(program.buffers.len()).unwrap())).unwrap();
            let buffer = if input { None } else { Some(if n == 0 { from } else { other }) };
            // Blocks that read what they write do so at their place: a sum of neighbours is no block.
            if buffer == Some(to) {
                Access { buffer, ..place }
            } else {
                self.access(program, buffer, tile, guard)
            }
        });
        let mut reads: Vec<_> = reads.collect();
        reads.retain(|it| reduce == Reduce::No || it.buffer != Some(to));
        let copies = copies && reads.len() == 1;
        Block { guard, reduce, place, reads, copies }
    }

    fn access(&mut self, program: &Program, buffer: Option<usize>, tile: i64, guard: Guard) -> Access {
        let long = buffer.is_none_or(|it| program.buffers[it].long);
        let private = buffer.is_some_and(|it| matches!(program.buffers[it].kind, Kind::Inner(_)));
        let per_tile = if tile > 1 { self.pick(&[1, 1, 0]) } else { 0 };
        let least = if guard == Guard::NotFirst { -1 } else { 0 };
        let offset = if self.chance(1, 2) { 0 } else { least + self.below(3) };
        let subscript = match (long, self.below(6)) {
            (true, 0..=1) if !private => Subscript { per_trip: 1, offset, modulo: None, per_tile },
            (true, 2) => Subscript { per_trip: 2, offset, modulo: None, per_tile },
            (true, 3) if tile > 1 => Subscript { per_trip: tile, offset, modulo: None, per_tile: 1 },
            (_, 4) => {
                let modulo = Some(self.pick(&[2, 2, 3]));
                Subscript { per_trip: 1, offset: offset.max(0), modulo, per_tile }
            }
            (true, 5) => Subscript { per_trip: 1, offset, modulo: None, per_tile },
            _ => Subscript { per_trip: 0, offset: offset.max(0), modulo: None, per_tile },
        };
        let may_flip =
            program.cooperative && buffer.is_some_and(|it| program.buffers[it].kind.is_exchanged());
        Access { buffer, flip: may_flip && self.chance(1, 3), subscript }
    }

    /// An annotation: times, perhaps a style, perhaps asynchronous stages.
    pub(crate) fn annotation(&mut self, components: usize) -> Asked {
        let times = self.times(components);
        let style = self.pick(&[None, None, Some("peel"), Some("predicate")]);
        let mut async_stages: Vec<i64> = Vec::new();
        if self.chance(1, 2) {
            for (stage, _) in &times {
                if !async_stages.contains(stage) && self.chance(1, 2) {
                    async_stages.push(*stage);
                }
            }
        }
        Asked { times, style, async_stages }
    }

    /// Stages from 0 to 4 and a permutation, at random or not far from program order.
    pub(crate) fn times(&mut self, components: usize) -> Times {
        let count = i64::try_from(components).expect("small");
        let mut order: Vec<i64> = (0..count).collect();
        let mut stages: Vec<i64> = (0..count).map(|_| self.below(5)).collect();
        match self.below(3) {
            0 => {}
            1 => {
                stages.sort_unstable();
                let last = self.below(5);
                stages = stages.into_iter().map(|it| it.min(last)).collect();
            }
            _ => stages = stages.into_iter().map(|it| it.min(1)).collect(),
        }
        match self.below(4) {
            0 | 1 => self.shuffle(&mut order),
            2 => {
                let at = usize::try_from(self.below(count - 1)).expect("positive");
                order.swap(at, at + 1);
            }
            _ => {}
        }
        stages.into_iter().zip(order).collect()
    }
}

impl Kind {
    /// Whether threads can read of it what others wrote.
    fn is_exchanged(self) -> bool {
        match self {
            Kind::Output => true,
            Kind::Carried(scope) | Kind::Inner(scope) => scope != " @local",
        }
    }
}

impl Program {
    /// Fills before the loop what the loop reads before it writes it.
    fn settle(&mut self) {
        for at in 0..self.buffers.len() {
            let Kind::Inner(scope) = self.buffers[at].kind else { continue };
            let trips = match self.trips {
                Trips::Constant(it) => it,
                Trips::Symbolic => MOST_TRIPS,
            };
            if (1..=trips).any(|it| Oracle::new(self, it).carries(at)) || !self.uses(at) {
                self.buffers[at].kind = Kind::Carried(scope);
            }
        }
        debug_assert!(self.all_trips().iter().all(|it| *it <= MOST_TRIPS && MARGIN > 6));
    }

    /// Whether some block writes the buffer.
    fn uses(&self, buffer: usize) -> bool {
        let mut blocks = self.components.iter().flat_map(|it| &it.blocks);
        blocks.any(|it| it.place.buffer == Some(buffer))
    }
}
