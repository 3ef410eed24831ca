//! Loops and annotations at random.

use super::{
    model::{
        Access, Block, Buffer, BufferUse, Component, Guard, MARGIN, MAX_TRIPS, Program, Reduce, Subscript,
        Trips,
    },
    nested::Inner,
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
            let nested = self.chance(1, 8) && out.components.iter().all(|it| !it.nested);
            let component = if nested { self.nested(&mut out) } else { self.component(&out, at) };
            out.components.push(component);
        }
        out.settle();
        out
    }

    fn buffer(&mut self, at: i64, trips: Trips, cooperative: bool) -> Buffer {
        let local = if cooperative { " @shared" } else { " @local" };
        let scope = self.pick(&[" @shared", " @shared", local, ""]);
        let kind = match (at, self.chance(1, 4)) {
            (0, false) => BufferUse::Output,
            (_, true) => BufferUse::Carried(scope),
            (_, false) => BufferUse::Inner(scope),
        };
        let constant =
            matches!(trips, Trips::Constant(_)) || matches!(kind, BufferUse::Output | BufferUse::Carried(""));
        Buffer { kind, long: constant && self.chance(2, 3), own: false }
    }

    fn component(&mut self, program: &Program, at: i64) -> Component {
        let tile = self.pick(&[1, 1, 1, 2, 3]);
        let count = if (tile > 1 || program.cooperative) && self.chance(1, 5) { 2 } else { 1 };
        let buffers = i64::try_from(program.shared()).expect("small");
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
        Component { tile, nested: false, blocks }
    }

    /// A component whose loop is there to be pipelined: its blocks hand elements on in buffers of their own.
    fn nested(&mut self, program: &mut Program) -> Component {
        let tile = self.pick(&[2, 3, 4, 5]);
        let scope = self.pick(&[" @shared", ""]);
        let outer = program.shared();
        let links = usize::try_from(1 + self.below(2)).expect("small");
        for _ in 0..links {
            program.buffers.push(Buffer { kind: BufferUse::Inner(scope), long: false, own: true });
        }
        let seen: Vec<usize> =
            (0..outer).filter(|it| !matches!(program.buffers[*it].kind, BufferUse::Inner(_))).collect();
        let mut blocks: Vec<Block> = Vec::new();
        for at in 0..=links {
            let to =
                if at == links && !seen.is_empty() { self.pick(&seen) } else { outer + at.min(links - 1) };
            let from = if at == 0 {
                usize::try_from(self.below(i64::try_from(outer).expect("small"))).expect("positive")
            } else {
                outer + at - 1
            };
            let mut block = self.block(program, tile, to, from);
            block.place.flip = false;
            block.reads.iter_mut().for_each(|it| it.flip = false);
            blocks.push(block);
        }
        Component { tile, nested: true, blocks }
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
            let other = usize::try_from(self.below(i64::try_from(program.shared()).unwrap())).unwrap();
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
        let private = buffer.is_some_and(|it| matches!(program.buffers[it].kind, BufferUse::Inner(_)));
        let per_tile = if tile > 1 { self.pick(&[1, 1, 0]) } else { 0 };
        let least = if guard == Guard::NotFirst { -1 } else { 0 };
        let offset = if self.chance(1, 2) { 0 } else { least + self.below(4) };
        let subscript = match (long, self.below(6)) {
            (true, 0..=1) if !private => Subscript { per_trip: 1, offset, modulo: None, per_tile },
            (true, 2) => Subscript { per_trip: 2, offset, modulo: None, per_tile },
            (true, 3) if tile > 1 => Subscript { per_trip: tile.min(3), offset, modulo: None, per_tile: 1 },
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

    /// An annotation: times, and perhaps a style, asynchronous stages, slots, and pipelines inside.
    pub(crate) fn annotation(&mut self, program: &Program) -> Asked {
        let inner = program.components.iter().map(|it| self.inner(program, it)).collect();
        let mut asked = Asked { inner, ..Asked::default() };
        asked.times = self.times(asked.pieces().len());
        asked.style = self.pick(&[None, None, Some("peel"), Some("predicate")]);
        if self.chance(1, 2) {
            for (stage, _) in asked.times.clone() {
                if !asked.async_stages.contains(&stage) && self.chance(1, 2) {
                    asked.async_stages.push(stage);
                }
            }
            if self.chance(1, 6) {
                asked.mechanism =
                    self.pick(&[Some("cp_async"), Some("register_staged"), Some("synchronous")]);
            }
        }
        for (component, it) in program.components.iter().enumerate() {
            for (block, it) in it.blocks.iter().enumerate() {
                let kind = it.place.buffer.map(|it| program.buffers[it].kind);
                if kind != Some(BufferUse::Output) && self.chance(1, 12) {
                    asked.slots.push((component, block, 2 + self.below(4)));
                }
            }
        }
        asked
    }

    /// Times of the blocks of a component, rather legal ones: producers and consumers in a chain.
    fn inner(&mut self, program: &Program, it: &Component) -> Option<Inner> {
        if !it.nested || self.chance(1, 6) {
            return None;
        }
        let mut times = self.times(it.blocks.len());
        if self.chance(2, 3) {
            let mut stages: Vec<i64> = times.iter().map(|it| it.0.min(2)).collect();
            stages.sort_unstable();
            times = stages.into_iter().zip(0..).collect();
        }
        Some(Inner { times, in_parts: !program.cooperative && self.chance(2, 3) })
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

impl BufferUse {
    /// Whether threads can read of it what others wrote.
    fn is_exchanged(self) -> bool {
        match self {
            BufferUse::Output => true,
            BufferUse::Carried(scope) | BufferUse::Inner(scope) => scope != " @local",
        }
    }
}

impl Program {
    /// Fills before the loop what the loop reads before it writes it.
    fn settle(&mut self) {
        for at in 0..self.buffers.len() {
            let BufferUse::Inner(scope) = self.buffers[at].kind else { continue };
            let trips = match self.trips {
                Trips::Constant(it) => it,
                Trips::Symbolic => MAX_TRIPS,
            };
            if (1..=trips).any(|it| Oracle::new(self, it).carries(at)) || !self.uses(at) {
                self.buffers[at].kind = BufferUse::Carried(scope);
            }
        }
        debug_assert!(self.all_trips().iter().all(|it| *it <= MAX_TRIPS && MARGIN > 6));
    }

    /// How many buffers there are that any component may use: they come first.
    fn shared(&self) -> usize {
        self.buffers.iter().filter(|it| !it.own).count()
    }

    /// Whether some block writes the buffer.
    fn uses(&self, buffer: usize) -> bool {
        let mut blocks = self.components.iter().flat_map(|it| &it.blocks);
        blocks.any(|it| it.place.buffer == Some(buffer))
    }
}
