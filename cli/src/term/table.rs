//! Tables of plain text: columns as wide as their widest cell, numbers to the right.

use std::io::{self, Write};

use super::wrap::{width, wrapped};
use crate::escape::visible;

/// A table under construction.
#[derive(Debug, Default)]
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these words over its columns.
    pub(crate) fn new(heads: impl IntoIterator<Item = impl Into<String>>) -> Table {
        let mut table = Table::default();
        table.row(heads);
        table
    }

    /// Adds a row. Rows may end early. What would steer a terminal is shown instead.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = impl Into<String>>) {
        self.rows.push(cells.into_iter().map(|it| visible(it.into())).collect());
    }

    /// Prints it with the last of two columns in lines that fit: it holds sentences.
    pub(crate) fn print_sentences(&self, out: &mut dyn Write) -> io::Result<()> {
        let names = self.rows.iter().filter_map(|row| row.first()).map(|it| it.chars().count());
        // Where the names leave little room, a sentence begins below its name.
        let beside = names.max().map(|it| it + 2).filter(|it| it + 30 <= width());
        for row in &self.rows {
            let (name, sentence) =
                (row.first().map_or("", String::as_str), row.get(1).map_or("", String::as_str));
            if let Some(column) = beside {
                wrapped(sentence, &format!("{name:column$}"), &" ".repeat(column), out)?;
            } else {
                writeln!(out, "{name}")?;
                wrapped(sentence, "    ", "    ", out)?;
            }
        }
        Ok(())
    }

    /// Prints it. A column after the first is set to the right when every cell under its head starts with a digit or a sign, or
    /// is empty or a dash.
    pub(crate) fn print(&self, out: &mut dyn Write) -> io::Result<()> {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let column = |at: usize| self.rows.iter().filter_map(move |row| row.get(at));
        let widest = |at| column(at).map(|it| it.chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns).map(widest).collect();
        let right: Vec<bool> =
            (0..columns).map(|at| at > 0 && column(at).skip(1).all(|it| is_number(it))).collect();
        for row in &self.rows {
            let mut line = String::new();
            for (at, cell) in row.iter().enumerate() {
                let pad = " ".repeat(widths[at] - cell.chars().count());
                let parts = if right[at] { [pad.as_str(), cell] } else { [cell, pad.as_str()] };
                line.extend(["  "].into_iter().take(at).chain(parts));
            }
            writeln!(out, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

fn is_number(cell: &str) -> bool {
    let head = cell.trim_start_matches(['+', '-', '~', 'x']).chars().next();
    head.is_none_or(|it| it.is_ascii_digit() || it == '—')
}

/// `1 barrier`, `12,345 barriers`.
pub(crate) fn counted(number: usize, word: &str) -> String {
    format!("{} {word}{}", grouped(number as u64), if number == 1 { "" } else { "s" })
}

/// A number with commas; one of more than 18 digits in powers of ten.
pub(crate) fn grouped(number: impl Into<u128>) -> String {
    let number = number.into();
    let digits = number.to_string();
    if digits.len() > 18 {
        return format!("{:.1e}", number as f64);
    }
    let mut out = String::new();
    for (n, digit) in digits.chars().enumerate() {
        if n > 0 && (digits.len() - n).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::Table;

    #[test]
    fn numbers_stand_to_the_right() {
        let mut table = Table::new(["rung", "GFLOPS", "note"]);
        table.row(["naive", "1.25", "slow"]);
        table.row(["tiled", "120.00"]);
        table.row(["broken", "—", "wrong"]);
        let mut out = Vec::new();
        table.print(&mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let expected = "rung    GFLOPS  note\nnaive     1.25  slow\ntiled   120.00\nbroken       —  wrong\n";
        assert_eq!(text, expected);
    }
}
