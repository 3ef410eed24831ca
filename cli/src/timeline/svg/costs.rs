//! What pipelines cost, as a table with the blocks that a multiprocessor has room for.

use codegen::timeline::Consequences;

use super::pen::{CHAR, Face, GREY, LINE, MARGIN, Pen};
use crate::timeline::{cells, choices, footnotes, heads};

/// The greatest side of the square for a block.
const BLOCK: usize = 10;

/// Draws the table and the sentences under it.
pub(super) fn draw(pen: &mut Pen, it: &Consequences) {
    pen.sentence(&format!("what it costs in kernel `{}`", it.kernel), Face::Title);
    pen.y += 4;
    let mut table = vec![[vec![String::new()], heads(it)].concat()];
    let rows = choices(it);
    for (what, choice) in &rows {
        table.push([vec![(*what).to_owned()], cells(it, choice)].concat());
    }
    let width = |at: usize| table.iter().map(|it| it[at].chars().count()).max().unwrap_or(0);
    let starts: Vec<usize> = (0..table[0].len())
        .scan(MARGIN, |x, at| {
            let start = *x;
            *x += (width(at) + 2) * CHAR;
            Some(start)
        })
        .collect();
    for (at, row) in table.iter().enumerate() {
        let is_last = at + 1 == table.len();
        let face = if at == 0 {
            Face::Grey
        } else if is_last {
            Face::Bold
        } else {
            Face::Plain
        };
        for (cell, x) in row.iter().zip(&starts) {
            pen.text(*x, pen.y + LINE - 5, cell, face);
        }
        let choice = at.checked_sub(1).and_then(|it| rows.get(it));
        if let Some(full) = choice.and_then(|it| it.1.occupancy.as_ref()) {
            // The blocks stand in the last column, with their squares.
            let start = starts[starts.len() - 1] + 4 * CHAR;
            let blocks = full.blocks as usize;
            let step = (BLOCK + 2).min(pen.width.saturating_sub(start + MARGIN) / blocks.max(1)).max(3);
            for block in 0..blocks {
                let x = start + block * step;
                let fill = if is_last { "#3f9142" } else { "#9aa4af" };
                pen.cell((x, pen.y + 5), (step - 2, BLOCK), (fill, fill), true);
            }
        }
        pen.y += LINE;
        if at == 0 {
            pen.rule(MARGIN, pen.width - MARGIN, pen.y, GREY, 1);
            pen.y += 3;
        }
    }
    pen.y += 6;
    let lines = footnotes(it);
    for (at, line) in lines.iter().enumerate() {
        let is_verdict = it.verdict.is_some() && at + 1 == lines.len();
        pen.sentence(line, if is_verdict { Face::Bold } else { Face::Grey });
    }
}
