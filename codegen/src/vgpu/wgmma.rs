//! Products of warpgroups: factors from where descriptors say they are, sums into registers that are in flight until a wait.
//!
//! Each warp of a warpgroup computes its 16 rows of the tile when it comes to the instruction; that all four come is looked at
//! when the block ends.

use std::{collections::VecDeque, ops::Range};

use ir::{
    Fence, Participants,
    intrin::{Instruction, Intrinsic},
    number,
};

use super::{
    Finding, Landing,
    exec::{Machine, Mask, lanes},
    index::WARP,
    program::{Elements, LessCode},
    shadow::Mark,
    tell::{FENCE, GROUP, REGISTER},
    tile::TileCode,
    track::Past,
};

/// The rows of a tile that a warp computes.
const ROWS: usize = 16;

#[derive(Debug)]
pub(crate) enum LeftCode {
    Shared(TileCode),
    Registers(Elements),
}

/// An asynchronous product.
#[derive(Debug)]
pub(crate) struct WgmmaCode {
    pub(crate) intrinsic: &'static Intrinsic,
    /// Its number among those of the kernel.
    pub(crate) number: usize,
    pub(crate) place: Elements,
    pub(crate) left: LeftCode,
    pub(crate) right: TileCode,
    pub(crate) starts: Option<Vec<LessCode>>,
}

/// A product of one warp under way.
#[derive(Debug)]
struct Product<'p> {
    mark: Mark,
    code: &'p WgmmaCode,
    base: usize,
    starts: bool,
    /// The rows of local memory that the sum is in, and those of a left factor in registers.
    sum: Range<usize>,
    registers: Option<Range<usize>>,
    /// Where the elements of the factors are, row by row.
    left: Vec<(usize, usize)>,
    right: Vec<(usize, usize)>,
}

/// What a warp has under way.
#[derive(Debug, Default)]
pub(crate) struct Products<'p> {
    open: Vec<Product<'p>>,
    /// The closed groups, oldest first, and when each was closed.
    groups: VecDeque<(u32, Vec<Product<'p>>)>,
    /// How many fences there were.
    fences: u32,
    /// How often the warp came to each product of the kernel.
    came: Vec<u32>,
}

impl<'p> Products<'p> {
    pub(crate) fn new(count: usize) -> Products<'p> {
        Products { came: vec![0; count], ..Products::default() }
    }

    fn in_flight(&self) -> impl Iterator<Item = &Product<'p>> {
        self.groups.iter().flat_map(|it| &it.1).chain(&self.open)
    }
}

impl<'p> Machine<'p, '_, '_> {
    /// A warp comes to a product. All its lanes must be there.
    pub(crate) fn wgmma(&mut self, site: u32, code: &'p WgmmaCode, mask: Mask) {
        if mask != Mask::MAX {
            self.partial(site, mask, code.intrinsic.name);
        }
        let warp = self.base / WARP;
        self.products[warp].came[code.number] += 1;
        let starts = code.starts.as_ref().is_some_and(|it| self.holds(it, mask) != 0);
        let Some(sum) = self.rows(site, &code.place) else { return };
        let team = self.program.team(self.base, Participants::Warpgroup);
        let above = (self.base - team.start) / WARP * ROWS;
        let own = self.program.cluster.block_of(self.base);
        let (mut left, mut registers) = (vec![], None);
        match &code.left {
            LeftCode::Shared(it) => {
                let Some(places) = self.factor(site, it, above..above + ROWS, own) else { return };
                left = places;
            }
            LeftCode::Registers(it) => {
                registers = self.rows(site, it);
                if registers.is_none() {
                    return;
                }
            }
        }
        let Some(right) = self.factor(site, &code.right, 0..code.right.extents[0], own) else { return };
        let first = self.mark(site, 0);
        let product = Product { mark: first, code, base: self.base, starts, sum, registers, left, right };
        self.expect_registers(&product);
        let now = Past { mark: first, agent: self.agents.product(self.base) };
        for places in [&product.left, &product.right] {
            self.async_reads(places, now, self.base..self.base + WARP);
        }
        self.set_busy(&product, true);
        if self.run.landing == Landing::Earliest {
            self.multiply(&product);
        }
        self.products[warp].open.push(product);
    }

    /// The rows of local memory that an operand in registers is in.
    fn rows(&mut self, site: u32, place: &Elements) -> Option<Range<usize>> {
        let first = place.index.uniform(&self.slots);
        let last = first.wrapping_add(i64::from(place.lanes) - 1);
        let (Some(first), Some(_)) = (self.element(place.buffer, first), self.element(place.buffer, last))
        else {
            self.out_of_bounds(site, place.buffer, last, 0);
            return None;
        };
        let row = self.base / WARP * self.memory[place.buffer].len + first;
        Some(row..row + place.lanes as usize)
    }

    /// Looks whether a fence is between what threads did with the registers of a product and the product, and whether other
    /// products in flight use them in another way.
    fn expect_registers(&mut self, product: &Product<'p>) {
        let it = &self.products[product.base / WARP];
        let code = product.code;
        let is_fenced = |(buffer, rows): (usize, &Range<usize>)| {
            self.memory[buffer].touched[rows.clone()].iter().all(|touched| *touched <= it.fences)
        };
        let unfenced = product.operands().find(|it| !is_fenced((it.0, &it.1)));
        let unfenced = unfenced.or_else(|| product.operands().next().filter(|_| it.fences == 0));
        let meets = |own: &(usize, Range<usize>), rows: &(usize, Range<usize>)| {
            own.0 == rows.0 && own.1.start < rows.1.end && rows.1.start < own.1.end
        };
        let clashes = |other: &Product<'p>| {
            let same = other.sum == product.sum && other.code.place.buffer == code.place.buffer;
            let sum = (code.place.buffer, product.sum.clone());
            let others = other.operands().skip(usize::from(same));
            let is_written = others.into_iter().any(|it| meets(&it, &sum));
            let own = product.operands().nth(1);
            is_written || own.is_some_and(|it| meets(&it, &(other.code.place.buffer, other.sum.clone())))
        };
        let clash = it.in_flight().find(|it| clashes(it)).map(|it| it.mark);
        if let Some((buffer, _)) = unfenced {
            let key = self.key(FENCE, product.mark.site(), product.mark.site());
            if !self.run.sink.count(key) {
                let access = self.describe(product.mark);
                let buffer = self.program.buffers[buffer].name.clone();
                self.run.sink.keep(key, Finding::MissingWgmmaFence { buffer, access });
            }
        }
        if let Some(first) = clash {
            self.in_flight_register(code.place.buffer, first, product.mark);
        }
    }

    /// Whether a product uses its registers now.
    fn set_busy(&mut self, product: &Product<'p>, is_busy: bool) {
        for (buffer, rows) in product.operands() {
            for it in &mut self.memory[buffer].busy[rows] {
                *it = if is_busy { *it + 1 } else { *it - 1 };
            }
        }
    }

    /// A product arrives in its registers.
    fn multiply(&mut self, product: &Product<'p>) {
        let Product { code, base, mark, .. } = product;
        let Instruction::Wgmma { sum, left: map, .. } = code.intrinsic.instruction else { return };
        let [columns, depth] = code.right.extents;
        let first = base - self.program.team(*base, Participants::Warpgroup).start;
        let above = first / WARP * ROWS;
        for (buffer, at) in product.left.iter().chain(&product.right) {
            if self.memory[*buffer].written[*at] != self.since.block {
                self.uninitialised(*buffer, *at, *mark);
            }
        }
        let read = |places: &[(usize, usize)]| -> Vec<f64> {
            places.iter().map(|(buffer, at)| self.memory[*buffer].values[*at]).collect()
        };
        let (mut left, right) = (read(&product.left), read(&product.right));
        if let (LeftCode::Registers(it), Some(rows), Some(map)) = (&code.left, &product.registers, map) {
            left = vec![f64::NAN; ROWS * depth];
            let each = map.table().len() / (4 * WARP);
            for (n, [i, k]) in map.table().iter().enumerate().skip(first * each).take(WARP * each) {
                let (lane, place) = (n / each % WARP, n % each);
                left[(i - above) * depth + k] =
                    self.memory[it.buffer].values[(rows.start + place) * WARP + lane];
            }
        }
        let memory = &mut self.memory[code.place.buffer];
        let table = sum.table();
        let mut unwritten = None;
        for (block, row) in product.sum.clone().enumerate() {
            // Each eight columns take four elements of a lane.
            let (part, place) = (block / 4, block % 4);
            if !product.starts && memory.written[row] != Mask::MAX {
                unwritten = Some(block);
            }
            for lane in 0..WARP {
                let [i, j] = table[(first + lane) * 4 + place];
                let (a, b) =
                    (&left[(i - above) * depth..][..depth], &right[(part * 8 + j) * depth..][..depth]);
                let old = if product.starts { 0.0 } else { memory.values[row * WARP + lane] };
                let sum = old + a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
                memory.values[row * WARP + lane] = number::round(memory.dtype, sum);
            }
            memory.written[row] = Mask::MAX;
        }
        debug_assert!(product.sum.len() == columns / 2, "the compiler looks at that");
        if let Some(at) = unwritten {
            self.uninitialised(code.place.buffer, at, *mark);
        }
    }

    /// A warp closes its group of products.
    pub(crate) fn commit_products(&mut self) {
        let it = &mut self.products[self.base / WARP];
        let group = std::mem::take(&mut it.open);
        it.groups.push_back((self.epoch, group));
        self.epoch += 1;
    }

    /// A warp waits for all but its youngest groups.
    pub(crate) fn wait_products(&mut self, in_flight: usize, mask: Mask) {
        let (warp, agent) = (self.base / WARP, self.agents.product(self.base));
        while self.products[warp].groups.len() > in_flight {
            let Some((epoch, group)) = self.products[warp].groups.pop_front() else { return };
            for it in &group {
                if self.run.landing == Landing::Latest {
                    self.multiply(it);
                }
                self.set_busy(it, false);
            }
            self.learn(mask, agent, epoch);
        }
    }

    pub(crate) fn fence(&mut self, fence: Fence, mask: Mask) {
        match fence {
            Fence::Async => self.fence_proxies(mask),
            Fence::Wgmma => self.products[self.base / WARP].fences += 1,
        }
    }

    /// A thread touches registers.
    #[inline]
    pub(crate) fn touch_registers(&mut self, site: u32, buffer: usize, row: usize, mask: Mask) {
        if let Some(it) = self.memory[buffer].touched.get_mut(row) {
            let products = &self.products[self.base / WARP];
            *it = products.fences + 1;
            if self.memory[buffer].busy[row] > 0 {
                let holds =
                    |it: &&Product<'p>| it.operands().any(|(of, rows)| of == buffer && rows.contains(&row));
                let first = products.in_flight().find(holds).map(|it| it.mark);
                let lane = lanes(mask).next().unwrap_or(0);
                if let Some(first) = first {
                    self.in_flight_register(buffer, first, self.mark(site, lane));
                }
            }
        }
    }

    #[cold]
    fn in_flight_register(&mut self, buffer: usize, product: Mark, access: Mark) {
        let key = self.key(REGISTER, product.site(), access.site());
        if !self.run.sink.count(key) {
            let (product, access) = (self.describe(product), self.describe(access));
            let buffer = self.program.buffers[buffer].name.clone();
            self.run.sink.keep(key, Finding::InFlightRegister { buffer, product, access });
        }
    }

    /// The block ends: products to which not all four warps came, and those that nobody waited for.
    pub(crate) fn end_products(&mut self) {
        for base in (0..self.products.len()).map(|it| it * WARP) {
            let team = self.program.team(base, Participants::Warpgroup);
            for number in 0..self.program.products.len() {
                let came = |base: usize| self.products[base / WARP].came[number];
                let is_group = team.len() == 4 * WARP && team.start.is_multiple_of(4 * WARP);
                let is_whole = is_group && came(base) >= came(team.start);
                let is_more = came(base) > came(team.start);
                if (came(team.start) > 0 && !is_whole) || is_more {
                    let missing = if is_more { team.start } else { base };
                    self.partial_group(number, missing);
                }
            }
        }
        for base in (0..self.products.len()).map(|it| it * WARP) {
            let fresh = Products::new(self.program.products.len());
            let left = std::mem::replace(&mut self.products[base / WARP], fresh);
            for product in left.in_flight() {
                self.outstanding(product.mark);
                self.set_busy(product, false);
            }
        }
    }

    #[cold]
    fn partial_group(&mut self, number: usize, thread: usize) {
        let (site, intrinsic) = self.program.products[number];
        let key = self.key(GROUP, site, site);
        if !self.run.sink.count(key) {
            let thread = u32::try_from(thread).expect("threads are few");
            let access = self.describe(Mark::new(0, self.epoch, site, thread));
            self.run.sink.keep(key, Finding::PartialGroup { intrinsic, access });
        }
    }
}

impl Product<'_> {
    /// The buffers and rows of registers that it uses, the sum first.
    fn operands(&self) -> impl Iterator<Item = (usize, Range<usize>)> {
        let left = match (&self.code.left, &self.registers) {
            (LeftCode::Registers(it), Some(rows)) => Some((it.buffer, rows.clone())),
            _ => None,
        };
        [(self.code.place.buffer, self.sum.clone())].into_iter().chain(left)
    }
}
