//! A plot in the terminal: a row for each value, with a bar as long as it is large.

use std::io::{self, Write};

use super::width::{cut, width};

/// What fills so many eighths of a column.
const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];

/// The longest bar, in columns.
const LONGEST: usize = 40;

/// The longest name that is shown as a whole.
const NAME: usize = 30;

/// A row: its name, its value in words, and as a number.
pub(crate) type Bar = (String, String, f64);

/// Prints the rows in so many columns. Where no bars fit beside them, there are none.
pub(crate) fn print(rows: &[Bar], columns: usize, out: &mut dyn Write) -> io::Result<()> {
    let names = rows.iter().map(|it| width(&it.0)).max().unwrap_or(0).min(NAME);
    let values = rows.iter().map(|it| width(&it.1)).max().unwrap_or(0);
    let longest = columns.saturating_sub(names + values + 3).min(LONGEST);
    let most = rows.iter().map(|it| it.2).fold(0.0, f64::max);
    for (name, value, number) in rows {
        let name = cut(name, names);
        let [after, before] = [names - width(&name), values - width(value)].map(|it| " ".repeat(it));
        let line = format!("{name}{after}  {before}{value} {}", bar(number / most, longest));
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

/// A part of so many columns, to the eighth of one.
fn bar(part: f64, columns: usize) -> String {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "at most eight times LONGEST"
    )]
    let eighths = (part.clamp(0.0, 1.0) * (columns * 8) as f64).round() as usize;
    "█".repeat(eighths / 8) + EIGHTHS[eighths % 8]
}

#[cfg(test)]
mod tests {
    use super::{Bar, print};

    fn printed(rows: &[(&str, &str, f64)], columns: usize) -> String {
        let rows: Vec<Bar> = rows.iter().map(|it| (it.0.to_owned(), it.1.to_owned(), it.2)).collect();
        let mut out = vec![];
        print(&rows, columns, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn bars_are_as_long_as_values_are_large() {
        let rows = [
            ("1. naive", "0.5", 0.5),
            ("2. tile", "20", 20.0),
            ("3. none", "—", f64::NAN),
            ("gemm", "32", 32.0),
        ];
        insta::assert_snapshot!(printed(&rows, 30), @r"
        1. naive  0.5 ▎
        2. tile    20 ██████████
        3. none     —
        gemm       32 ████████████████
        ");
        insta::assert_snapshot!(printed(&rows[..2], 14), @r"
        1. naive  0.5
        2. tile    20
        ");
        assert_eq!(printed(&[], 80), "");
        assert_eq!(printed(&[("a", "0", 0.0)], 80), "a  0\n");
    }
}
