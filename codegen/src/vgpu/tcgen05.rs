//! Products into tensor memory, and copies of scales to there: started by a thread, done in the order in which it starts them, over when it has
//! waited for their group.
//!
//! Tensor memory is a matrix of 128 rows, or of 32 for scales; elements of a row are neighbours here. What threads load from there is the row of their own
//! lane, whatever the kernel says (PTX ISA, *Tensor Memory*, access restrictions).

use std::collections::VecDeque;

use ir::{Scope, number};

use super::{
    Landing,
    clock::Clock,
    exec::{Machine, Mask, lanes},
    index::{IndexCode, WARP},
    mbarrier::ArriveCode,
    program::{Elements, LessCode},
    shadow::Mark,
    tile::TileCode,
    track::Past,
    value::Lanes,
};

/// The rows that scales stand in.
#[expect(clippy::cast_possible_truncation, reason = "it is 32")]
const SCALE_ROWS: usize = Scope::SCALE_ROWS as usize;

/// The rows of tensor memory.
#[expect(clippy::cast_possible_truncation, reason = "it is 128")]
const ROWS: usize = Scope::TENSOR_ROWS as usize;

/// The scales of a factor in tensor memory: the buffer, and which of its columns has that of the first row.
#[derive(Debug)]
pub(crate) struct ScalesCode {
    pub(crate) buffer: usize,
    pub(crate) column: IndexCode,
}

/// A copy of scales to tensor memory: where to, the first column there, and what.
#[derive(Debug)]
pub(crate) struct TensorCopyCode {
    pub(crate) to: usize,
    pub(crate) column: IndexCode,
    pub(crate) from: TileCode,
}

/// A product into tensor memory.
#[derive(Debug)]
pub(crate) struct Tcgen05Code {
    /// The buffer that the sum is in, the first column, and how many columns.
    pub(crate) sum: usize,
    pub(crate) column: IndexCode,
    pub(crate) columns: usize,
    /// How many blocks compute it together: 1, or the two of a pair, one after the other in the cluster.
    pub(crate) blocks: usize,
    pub(crate) left: TileCode,
    pub(crate) right: TileCode,
    pub(crate) scales: Option<[ScalesCode; 2]>,
    pub(crate) starts: Option<Vec<LessCode>>,
}

/// A product under way.
#[derive(Debug)]
struct Product {
    mark: Mark,
    starts: bool,
    buffer: usize,
    rows: usize,
    /// Where the elements of the sum and of the factors are, row by row.
    sum: Vec<(usize, usize)>,
    left: Vec<(usize, usize)>,
    right: Vec<(usize, usize)>,
    /// Where the scales of the rows of the left factor are, and those of the columns of the right one, if they have some.
    scales: [Vec<(usize, usize)>; 2],
}

/// What a thread has under way, oldest first.
#[derive(Debug, Default)]
pub(crate) struct TensorProducts(VecDeque<Pending>);

/// What happens when all before it has.
#[derive(Debug)]
enum Pending {
    /// A product arrives in tensor memory.
    Product(Product),
    /// Scales arrive there: which, and where.
    Copy(Mark, Vec<(usize, usize)>, Vec<(usize, usize)>),
    /// A group is over that was closed in this epoch.
    Group(u32),
    /// The thread has arrived at mbarriers, and what it knew then of copies that its products read.
    Arrival(Vec<usize>, Mark, Clock),
}

impl TensorProducts {
    fn groups(&self) -> usize {
        self.0.iter().filter(|it| matches!(it, Pending::Group(_))).count()
    }
}

impl<'p> Machine<'p, '_, '_> {
    /// Some lanes start a product each.
    pub(crate) fn tcgen05(&mut self, site: u32, code: &'p Tcgen05Code, active: Mask) {
        let mut columns = [0; WARP];
        self.index(&code.column, &mut columns);
        let starts = code.starts.as_ref().map_or(0, |it| self.holds(it, active));
        for lane in lanes(active) {
            let (mut left, mut right, mut sum) = (vec![], vec![], vec![]);
            let own = self.program.cluster.block_of(self.base);
            let blocks = if code.blocks > 1 { 0..code.blocks } else { own..own + 1 };
            for block in blocks {
                let Some(it) = self.factor(site, &code.left, 0..code.left.extents[0], block) else { return };
                left.extend(it);
                let Some(it) = self.factor(site, &code.right, 0..code.right.extents[0], block) else {
                    return;
                };
                right.extend(it);
                let Some(it) = self.sum(site, code, (columns[lane], block), lane) else { return };
                sum.extend(it);
            }
            let mut scales = [vec![], vec![]];
            let counts = [ROWS, code.columns];
            for ((out, of), count) in scales.iter_mut().zip(code.scales.iter().flatten()).zip(counts) {
                let Some(it) = self.scales(site, of, count, lane) else { return };
                *out = it;
            }
            let mark = self.mark(site, lane);
            let starts = starts >> lane & 1 == 1;
            let rows = ROWS * code.blocks;
            let product = Product { mark, starts, buffer: code.sum, rows, sum, left, right, scales };
            let thread = self.base + lane;
            let now = Past { mark, agent: self.agents.tensor(thread) };
            let [of_left, of_right] = &product.scales;
            for places in [&product.left, &product.right, of_left, of_right] {
                self.async_reads(places, now, thread..thread + 1);
            }
            if !starts {
                self.async_reads(&product.sum, now, thread..thread + 1);
            }
            for (buffer, at) in &product.sum {
                self.async_write(*buffer, *at, now, thread..thread + 1, None);
            }
            self.epoch += 1;
            if self.run.landing == Landing::Earliest {
                self.multiply_into(&product);
            }
            self.tensor_products.entry(thread).or_default().0.push_back(Pending::Product(product));
        }
    }

    /// Where the elements of a sum are.
    fn sum(
        &mut self,
        site: u32,
        code: &Tcgen05Code,
        (column, block): (i64, usize),
        lane: usize,
    ) -> Option<Vec<(usize, usize)>> {
        let mut out = Vec::with_capacity(ROWS * code.columns);
        for row in 0..ROWS {
            for n in 0..code.columns {
                let column = column.wrapping_add(i64::try_from(n).expect("columns are few"));
                let Some(at) = self.tensor_element(code.sum, row, column, block) else {
                    self.out_of_bounds(site, code.sum, column, lane);
                    return None;
                };
                out.push((code.sum, at));
            }
        }
        Some(out)
    }

    /// Where the scales of so many rows of a factor are: 128 in 32 rows of 16 columns, four columns further for each 32 of them.
    fn scales(
        &mut self,
        site: u32,
        code: &ScalesCode,
        count: usize,
        lane: usize,
    ) -> Option<Vec<(usize, usize)>> {
        let mut columns = [0; WARP];
        self.index(&code.column, &mut columns);
        let block = self.program.cluster.block_of(self.base);
        let place = |at: usize| {
            let further = i64::try_from(at / ROWS * 16 + at / SCALE_ROWS % 4 * 4).expect("columns are few");
            (at % SCALE_ROWS, columns[lane].wrapping_add(further))
        };
        self.tensor_elements(site, code.buffer, (0..count).map(place), (block, lane))
    }

    /// Where elements of tensor memory are, each by its row and its column.
    fn tensor_elements(
        &mut self,
        site: u32,
        buffer: usize,
        places: impl Iterator<Item = (usize, i64)>,
        (block, lane): (usize, usize),
    ) -> Option<Vec<(usize, usize)>> {
        let mut out = vec![];
        for (row, column) in places {
            let Some(at) = self.tensor_element(buffer, row, column, block) else {
                self.out_of_bounds(site, buffer, column, lane);
                return None;
            };
            out.push((buffer, at));
        }
        Some(out)
    }

    /// Some lanes start a copy of scales each.
    pub(crate) fn tensor_copy(&mut self, site: u32, code: &'p TensorCopyCode, active: Mask) {
        let mut columns = [0; WARP];
        self.index(&code.column, &mut columns);
        let block = self.program.cluster.block_of(self.base);
        let [rows, width] = code.from.extents;
        for lane in lanes(active) {
            let Some(from) = self.factor(site, &code.from, 0..rows, block) else { return };
            let columns = (0..).take(width).map(|it: i64| columns[lane].wrapping_add(it));
            let places = (0..rows).flat_map(|row| columns.clone().map(move |column| (row, column)));
            let Some(to) = self.tensor_elements(site, code.to, places, (block, lane)) else { return };
            let (mark, thread) = (self.mark(site, lane), self.base + lane);
            let now = Past { mark, agent: self.agents.tensor(thread) };
            self.async_reads(&from, now, thread..thread + 1);
            for (buffer, at) in &to {
                self.async_write(*buffer, *at, now, thread..thread + 1, None);
            }
            self.epoch += 1;
            if self.run.landing == Landing::Earliest {
                self.arrive_scales(mark, &from, &to);
            }
            self.tensor_products.entry(thread).or_default().0.push_back(Pending::Copy(mark, from, to));
        }
    }

    /// Scales arrive in tensor memory.
    fn arrive_scales(&mut self, mark: Mark, from: &[(usize, usize)], to: &[(usize, usize)]) {
        for (from, to) in from.iter().zip(to) {
            if self.memory[from.0].written[from.1] != self.since.block {
                self.uninitialised(from.0, from.1, mark);
            }
            self.put(to.0, to.1, self.memory[from.0].values[from.1]);
        }
    }

    /// An element of the tensor memory of a block, if the buffer has that column.
    fn tensor_element(&self, buffer: usize, row: usize, column: i64, block: usize) -> Option<usize> {
        let memory = &self.memory[buffer];
        let rows = Scope::tensor_rows(memory.dtype.bytes());
        let columns = memory.len / usize::try_from(rows).expect("they are few");
        let column = usize::try_from(column).ok().filter(|it| *it < columns)?;
        Some(self.origin(buffer, block) + row * columns + column)
    }

    /// A product arrives in tensor memory.
    fn multiply_into(&mut self, product: &Product) {
        let [of_left, of_right] = &product.scales;
        for (buffer, at) in [&product.left, &product.right, of_left, of_right].into_iter().flatten() {
            if self.memory[*buffer].written[*at] != self.since.block {
                self.uninitialised(*buffer, *at, product.mark);
            }
        }
        let read = |places: &[(usize, usize)]| -> Vec<f64> {
            places.iter().map(|(buffer, at)| self.memory[*buffer].values[*at]).collect()
        };
        let (left, right) = (read(&product.left), read(&product.right));
        let (of_left, of_right) = (read(of_left), read(of_right));
        let scale = |all: &[f64], at: usize| all.get(at).copied().unwrap_or(1.0);
        let columns = product.sum.len() / product.rows;
        let depth = left.len() / product.rows;
        let mut unwritten = None;
        for (n, (buffer, at)) in product.sum.iter().enumerate() {
            let (i, j) = (n / columns, n % columns);
            let (a, b) = (&left[i * depth..][..depth], &right[j * depth..][..depth]);
            let terms: f64 = a.iter().zip(b).map(|(a, b)| a * b).sum();
            let terms = terms * scale(&of_left, i) * scale(&of_right, j);
            let memory = &self.memory[*buffer];
            if !product.starts && memory.written[*at] != self.since.block {
                unwritten = Some(*at);
            }
            let old = if product.starts { 0.0 } else { memory.values[*at] };
            let value = number::round(memory.dtype, old + terms);
            self.put(*buffer, *at, value);
        }
        if let Some(at) = unwritten {
            self.uninitialised(product.buffer, at, product.mark);
        }
    }

    /// Some lanes close their groups of products.
    pub(crate) fn commit_tensor(&mut self, mask: Mask) {
        for lane in lanes(mask) {
            let it = self.tensor_products.entry(self.base + lane).or_default();
            it.0.push_back(Pending::Group(self.epoch));
        }
        self.epoch += 1;
    }

    /// Some lanes wait for all but their youngest groups.
    pub(crate) fn wait_tensor(&mut self, in_flight: usize, mask: Mask) {
        for lane in lanes(mask) {
            let thread = self.base + lane;
            while self.tensor_products.get(&thread).is_some_and(|it| it.groups() > in_flight) {
                if let Some(Pending::Group(epoch)) = self.land_tensor(thread) {
                    self.learn(1 << lane, self.agents.tensor(thread), epoch);
                }
            }
        }
    }

    /// Some lanes arrive at mbarriers when their products so far are over.
    pub(crate) fn arrive_late(&mut self, site: u32, code: &ArriveCode, slots: &[i64; WARP], active: Mask) {
        for lane in lanes(active) {
            let blocks = self.told_blocks(&code.along, code.at_first).into_iter();
            let at: Option<Vec<_>> =
                blocks.map(|it| self.mbarrier(site, code.barrier, (slots[lane], it), lane)).collect();
            let Some(at) = at else { continue };
            let mark = self.mark(site, lane);
            let thread = self.base + lane;
            let told = self.clocks.of(thread).of_workers(self.agents);
            self.tensor_products.entry(thread).or_default().0.push_back(Pending::Arrival(at, mark, told));
            self.epoch += 1;
            while self.run.landing == Landing::Earliest && self.land_tensor(thread).is_some() {}
        }
    }

    /// What comes next of a thread's products happens.
    fn land_tensor(&mut self, thread: usize) -> Option<Pending> {
        let next = self.tensor_products.get_mut(&thread)?.0.pop_front()?;
        match &next {
            Pending::Product(it) if self.run.landing == Landing::Latest => self.multiply_into(it),
            Pending::Copy(mark, from, to) if self.run.landing == Landing::Latest => {
                self.arrive_scales(*mark, from, to);
            }
            Pending::Arrival(at, mark, told) => {
                for at in at {
                    self.arrive_for(*at, self.agents.tensor(thread), *mark, told);
                }
            }
            Pending::Product(_) | Pending::Copy(..) | Pending::Group(_) => {}
        }
        Some(next)
    }

    /// Lets a product land that somebody may wait for, of any thread; `false` if there is none.
    pub(crate) fn land_any_tensor(&mut self) -> bool {
        let arrives = |it: &TensorProducts| it.0.iter().any(|it| matches!(it, Pending::Arrival(..)));
        let found = self.tensor_products.iter().find(|it| arrives(it.1)).map(|it| *it.0);
        found.is_some_and(|thread| self.land_tensor(thread).is_some())
    }

    /// What the lanes of a warp load from tensor memory: each the columns of its own row.
    pub(crate) fn tensor_rows(&mut self, site: u32, place: &Elements) -> Vec<Lanes> {
        let mut columns = [0; WARP];
        self.index(&place.index, &mut columns);
        let first = self.program.cluster.in_block(self.base) % ROWS;
        let mut parts = vec![[f64::NAN; WARP]; place.lanes as usize];
        for (part, out) in (0..i64::from(place.lanes)).zip(&mut parts) {
            for (lane, out) in out.iter_mut().enumerate() {
                let columns_of_row =
                    i64::try_from(self.memory[place.buffer].len / ROWS).expect("it is small");
                let row = i64::try_from(first + lane).expect("it is below 128");
                let column = columns[lane].wrapping_add(part);
                let inside = (0..columns_of_row).contains(&column);
                let offset = if inside { row * columns_of_row + column } else { -1 };
                *out = self.read(site, place.buffer, offset, lane);
            }
        }
        parts
    }

    /// The blocks of a cluster end: arrivals in another one that are still to come nobody has waited for.
    pub(crate) fn leave_arrivals(&mut self) {
        let of_block = self.program.mbarriers_of_block();
        for (thread, it) in &self.tensor_products {
            let own = self.program.cluster.block_of(*thread);
            for it in &it.0 {
                let Pending::Arrival(all, mark, _) = it else { continue };
                for at in all.iter().filter(|it| **it / of_block != own) {
                    self.visits.late.insert(*at, (i64::MAX, *mark));
                }
            }
        }
    }

    /// The block ends: products that nobody waited for.
    pub(crate) fn end_tensor(&mut self) {
        for (_, it) in std::mem::take(&mut self.tensor_products) {
            for it in it.0 {
                if let Pending::Product(Product { mark, .. }) | Pending::Copy(mark, ..) = it {
                    self.outstanding(mark);
                }
            }
        }
    }
}
