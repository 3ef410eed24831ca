//! Products into tensor memory, and copies of scales to there: started by a thread, done in the order in which it starts them, over when it has
//! waited for their group.
//!
//! Tensor memory is a matrix of 128 rows, or of 32 for scales; elements of a row are neighbours here. What threads load from there is the row of their own
//! lane, whatever the kernel says (PTX ISA, *Tensor Memory*, access restrictions).

use ir::{Scope, number};

use super::{
    Landing,
    exec::{Machine, Mask, lanes},
    index::{IndexCode, WARP},
    program::{Elements, LessCode},
    shadow::Mark,
    tensor_pending::Pending,
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
    /// How many scales of a row a product reads.
    pub(crate) of_row: usize,
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
    /// What multiplies two elements.
    pub(crate) multiply: fn(f64, f64) -> f64,
    pub(crate) scales: Option<[ScalesCode; 2]>,
    pub(crate) starts: Option<Vec<LessCode>>,
}

/// A product under way.
#[derive(Debug)]
pub(crate) struct Product {
    pub(crate) mark: Mark,
    starts: bool,
    buffer: usize,
    rows: usize,
    /// Where the elements of the sum and of the factors are, row by row.
    sum: Vec<(usize, usize)>,
    left: Vec<(usize, usize)>,
    right: Vec<(usize, usize)>,
    multiply: fn(f64, f64) -> f64,
    /// Where the scales of the rows of the left factor are, one behind the other for each, and those of the columns of the right one, if they
    /// have some.
    scales: [Vec<(usize, usize)>; 2],
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
            let (buffer, multiply) = (code.sum, code.multiply);
            let product = Product { mark, starts, buffer, rows, sum, left, right, multiply, scales };
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
            self.leave_to_tensor_core(thread, Pending::Product(product));
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

    /// Where the scales of so many rows of a factor are, those of a row one behind the other: 128 rows in 32 of 16 columns, four columns
    /// further for each 32 of them.
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
        let place = |(at, scale): (usize, usize)| {
            let further = at / ROWS * 16 + at / SCALE_ROWS % 4 * 4 + scale;
            let further = i64::try_from(further).expect("columns are few");
            (at % SCALE_ROWS, columns[lane].wrapping_add(further))
        };
        let all = (0..count).flat_map(|at| (0..code.of_row).map(move |scale| (at, scale)));
        self.tensor_elements(site, code.buffer, all.map(place), (block, lane))
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
            self.leave_to_tensor_core(thread, Pending::Copy(mark, from, to));
        }
    }

    /// Scales arrive in tensor memory.
    pub(crate) fn arrive_scales(&mut self, mark: Mark, from: &[(usize, usize)], to: &[(usize, usize)]) {
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
    pub(crate) fn multiply_into(&mut self, product: &Product) {
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
        let columns = product.sum.len() / product.rows;
        let depth = left.len() / product.rows;
        let groups = (of_left.len() / product.rows).max(1);
        // Scales have no sign.
        let scale =
            |all: &[f64], row: usize, group: usize| all.get(row * groups + group).map_or(1.0, |it| it.abs());
        let mut unwritten = None;
        for (n, (buffer, at)) in product.sum.iter().enumerate() {
            let (i, j) = (n / columns, n % columns);
            let (a, b) = (&left[i * depth..][..depth], &right[j * depth..][..depth]);
            let parts = a.chunks(depth / groups).zip(b.chunks(depth / groups)).enumerate();
            let parts = parts.map(|(group, (a, b))| {
                let terms: f64 = a.iter().zip(b).map(|(a, b)| (product.multiply)(*a, *b)).sum();
                terms * scale(&of_left, i, group) * scale(&of_right, j, group)
            });
            let terms: f64 = parts.sum();
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
}
