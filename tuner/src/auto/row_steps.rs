//! The steps for stages over rows on a GPU: what `block_rows` decided, in the procedures of `std/rows`.

use ir::{Block, Name};

use super::{
    Draft, Request,
    block_rows::{Row, Rows, written_by},
    counted, free,
    rows::{Does, Stage, words},
    size::Size,
};

/// The bytes of the widest access.
const VECTOR: i64 = 16;

/// The loads of a thread that are in flight where rows do not stay.
const IN_FLIGHT: i64 = 4;

/// Writes the steps for stages that stay, one after the other.
pub(super) struct Writer<'a> {
    pub(super) rows: &'a Rows<'a>,
    pub(super) request: &'a Request<'a>,
    pub(super) out: &'a mut Draft,
    /// How many threads share a row.
    pub(super) share: Size,
    pub(super) row: Row,
}

impl Writer<'_> {
    pub(super) fn steps(&mut self, rows: &Size) {
        let staying: Vec<_> =
            self.rows.stages.all.iter().filter(|it| !self.rows.is_inlined(it.block, self.row)).collect();
        let Some((last, before)) = staying.split_last() else { return };
        self.cut_in_parts(&staying);
        let written = self.written_by_way_of_registers(last);
        let depth = self.rows.stages.rows.len();
        let outer: Vec<Name> = match &written {
            Some(name) => (0..depth).map(|it| Name::new(format!("{name}_{it}"))).collect(),
            None => last.rows.clone(),
        };
        let row = self.free("row");
        self.rows_in_blocks(&outer, &row, rows);
        if !before.is_empty() {
            self.out.reason(
                "All stages of a row are in one kernel; what a row is reduced to, each of its threads has.",
            );
        }
        self.move_stages(last, before, written.as_deref(), &row);
        self.keep_inputs(&row);
        self.out.reason(
            "The threads of a row share it alike in all stages. They reduce it together: by shuffles, and through shared memory where they \
             are several warps.",
        );
        for it in before {
            let name = it.block.name.as_str();
            if self.is_in_parts(it) {
                self.share_part(name, &format!("{name}_{depth}"));
                continue;
            }
            self.share(&self.moved(name), name, it.does != Does::Reduce);
            if it.does == Does::Elements {
                self.flatten(written_by(it.block).as_str());
            }
        }
        let name = last.block.name.as_str();
        let along = if written.is_some() {
            self.moved(name)
        } else {
            last.along.iter().map(ToString::to_string).collect()
        };
        if self.is_in_parts(last) {
            self.share_part(name, &format!("{name}_peer"));
        } else if last.does != Does::Once {
            self.share(&along, name, last.does == Does::Elements);
        }
        if let Some(name) = &written {
            self.share(&self.moved(name), name, true);
            self.flatten(name);
        }
        self.stream_inputs();
    }

    /// Moves all stages to the rows of the last one, last first.
    fn move_stages(&mut self, last: &Stage<'_>, before: &[&Stage<'_>], written: Option<&str>, row: &str) {
        if let Some(name) = written {
            self.stage(last.block, name, row);
        }
        if self.is_in_parts(last) {
            self.parts(last.block, row);
        }
        for it in before.iter().rev() {
            self.stage(it.block, written_by(it.block).as_str(), row);
            if self.is_in_parts(it) {
                self.parts(it.block, row);
            }
        }
    }

    /// Whether a stage reduces a row that the blocks of a cluster share.
    fn is_in_parts(&self, it: &Stage<'_>) -> bool {
        self.row.blocks() > 1 && it.does == Does::Reduce
    }

    /// Cuts the reductions of a row in parts, one for each block of a cluster.
    fn cut_in_parts(&mut self, stages: &[&Stage<'_>]) {
        let blocks = self.row.blocks();
        let cut: Vec<_> = stages.iter().filter(|it| self.is_in_parts(it)).collect();
        if !cut.is_empty() {
            self.out.reason(format!(
                "A row does not fit in the registers of a block, so {blocks} blocks share it, a cluster: each reduces its part, and reads what \
                 the others have in their shared memory.",
            ));
        }
        for it in cut {
            let (name, along) = (it.block.name.as_str(), it.along[0].as_str());
            self.out.step(format!("reduce_in_parts(block: {name:?}, loop: {along:?}, blocks: {blocks})"));
        }
    }

    /// Moves the parts of a stage before it.
    fn parts(&mut self, block: &Block, row: &str) {
        let axis = self.rows.stages.rows.len();
        let [name, buffer] = [block.name.as_str(), written_by(block).as_str()].map(|it| format!("{it}_rf"));
        self.out
            .step(format!("stage_of_parts(block: {name:?}, buffer: {buffer:?}, row: {row:?}, axis: {axis})"));
    }

    /// Shares a part of a row among the threads of a block, and lets each of them put the parts together, over a loop.
    fn share_part(&mut self, name: &str, peers: &str) {
        let axis = self.rows.stages.rows.len();
        self.out.step(format!("unroll(loop: {peers:?})"));
        let (part, threads, vector) = (format!("{name}_rf"), &self.share, self.row.vector());
        let along = format!("{part}_{}", axis + 1);
        self.out.step(format!(
            "share_row(loop: {along:?}, name: {part:?}, threads: {threads}, vector: {vector}, wide: 0)"
        ));
    }

    /// Lets a row of several axes that stays lie as one, of which each thread has a part.
    fn flatten(&mut self, buffer: &str) {
        let (rows, along) = (self.rows.stages.rows.len(), &self.rows.stages.along);
        if along.len() < 2 {
            return;
        }
        let rows: Vec<_> = (0..rows).map(|it| format!("r{it}")).collect();
        let names: Vec<_> = (0..along.len()).map(|it| format!("a{it}")).collect();
        let mut all = names[0].clone();
        for (name, extent) in names.iter().zip(along).skip(1) {
            all = format!("({all})*{extent} + {name}");
        }
        let (rows, names) = (rows.join(", "), names.join(", "));
        self.out.step(format!(
            "transform_layout(buffer: {buffer:?}, index_map: \"({rows}, {names}) -> ({rows}, {all})\")"
        ));
    }

    fn free(&self, name: &str) -> String {
        free(self.request.func, name).to_string()
    }

    /// The loops along a row of a block that was moved.
    fn moved(&self, block: &str) -> Vec<String> {
        let depth = self.rows.stages.rows.len();
        (depth..depth + self.rows.stages.along.len()).map(|it| format!("{block}_{it}")).collect()
    }

    /// Narrow elements are computed in fewer at once than are written: then the row that is written is kept as well, which is its name.
    fn written_by_way_of_registers(&mut self, last: &Stage<'_>) -> Option<String> {
        let Row::Stays(kept) = self.row else { return None };
        if last.does != Does::Elements || kept.vector * self.rows.computed <= VECTOR {
            return None;
        }
        let name = self.free(&format!("{}_row", written_by(last.block)));
        self.out.because(
            format!(
                "{} are written at once, but computed in fewer, so they are kept until then.",
                counted(kept.vector, "element")
            ),
            format!("cache_write(block: {:?}, scope: \"local\", name: {name:?})", last.block.name.as_str()),
        );
        Some(name)
    }

    fn rows_in_blocks(&mut self, outer: &[Name], row: &str, rows: &Size) {
        let mut all = outer[0].to_string();
        if outer.len() > 1 {
            all = self.free("rows");
            self.out.step(format!("fuse(loops: {:?}, into: {all:?})", words(outer)));
        }
        self.out.step(format!("rows_in_blocks(loop: {all:?}, name: {row:?}, rows: {rows})"));
    }

    fn stage(&mut self, block: &Block, buffer: &str, row: &str) {
        let block = block.name.as_str();
        self.out.step(format!("row_stage(block: {block:?}, buffer: {buffer:?}, row: {row:?})"));
    }

    /// Reads inputs once, where rows stay.
    fn keep_inputs(&mut self, row: &str) {
        let Row::Stays(kept) = self.row else { return };
        let of_each = if kept.blocks > 1 { " of each block" } else { "" };
        let (place, scope) =
            if kept.shared { ("shared memory", ", scope: \"shared\"") } else { ("registers", "") };
        self.out.reason(format!(
            "A row is read once, {} at a time, and stays in {place}: {} threads{of_each} share it.",
            counted(kept.vector, "element"),
            self.share.value,
        ));
        let names: Vec<_> = self.rows.inputs.iter().map(|it| self.free(&format!("{it}_row"))).collect();
        for (input, name) in self.rows.inputs.iter().zip(&names) {
            let readers = self.rows.readers(input, self.row);
            let first = *readers.first().expect("a stage reads it");
            let parts = if self.is_in_parts(first) { "_rf" } else { "" };
            let reader = format!("{}{parts}", first.block.name);
            let mut only = String::new();
            if !self.rows.is_read_by_rows(input) {
                let names: Vec<_> = readers
                    .iter()
                    .map(|it| {
                        let parts = if self.is_in_parts(it) { "_rf" } else { "" };
                        format!("{}{parts}", it.block.name)
                    })
                    .collect();
                only = format!(", readers: {names:?}");
            }
            self.out.step(format!(
                "keep_row(block: {reader:?}, buffer: {:?}, name: {name:?}, row: {row:?}{scope}{only})",
                input.as_str()
            ));
        }
        for name in &names {
            self.share(&self.moved(name), name, true);
            self.flatten(name);
        }
    }

    /// Splits the loops along a row among threads.
    fn share(&mut self, along: &[String], name: &str, is_wide: bool) {
        let mut all = along[0].clone();
        if along.len() > 1 {
            all = format!("{name}_along");
            self.out.step(format!("fuse(loops: {along:?}, into: {all:?})"));
        }
        let threads = &self.share;
        let (vector, wide) = (self.row.vector(), i64::from(is_wide));
        if let Row::Stays(it) = self.row {
            let wide = if is_wide { "" } else { ", wide: 0" };
            let (procedure, blocks) = match it.blocks {
                1 => ("share_row", String::new()),
                blocks => ("share_row_in_cluster", format!("blocks: {blocks}, ")),
            };
            self.out.step(format!(
                "{procedure}(loop: {all:?}, name: {name:?}, {blocks}threads: {threads}, vector: {vector}{wide})"
            ));
            return;
        }
        let words = format!("threads: {threads}, loads: {IN_FLIGHT}, vector: {vector}, wide: {wide}");
        self.out.step(format!("share_long_row(loop: {all:?}, name: {name:?}, {words})"));
    }

    /// Reads what stages want of long rows in vectors.
    fn stream_inputs(&mut self) {
        let (Row::Streams(vector), axis) = (self.row, self.rows.stages.rows.len()) else { return };
        if vector == 1 {
            return;
        }
        self.out.reason(format!(
            "A row does not fit in registers: each stage reads it, {} at a time, some of them before it uses the first.",
            counted(vector, "element")
        ));
        for input in &self.rows.inputs {
            for it in self.rows.readers(input, self.row) {
                let block = it.block.name.as_str();
                let name = self.free(&format!("{block}_{input}"));
                self.out.step(format!(
                    "stream_row(block: {block:?}, buffer: {:?}, name: {name:?}, axis: {axis}, threads: {}, vector: {vector})",
                    input.as_str(),
                    self.share
                ));
            }
        }
    }
}
