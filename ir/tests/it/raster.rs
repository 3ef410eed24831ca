//! The order of tiles in groups of rows.

use proptest::prelude::*;
use tilewright_ir::{Index, Name, Raster};

/// The order as it is said: groups of rows, column by column inside a group.
fn in_groups(rows: i64, raster: Raster) -> Vec<(i64, i64)> {
    let mut out = vec![];
    let mut first = 0;
    while first < rows {
        let end = rows.min(first + raster.group);
        for column in 0..raster.columns {
            out.extend((first..end).map(|row| (row, column)));
        }
        first = end;
    }
    out
}

fn check(rows: i64, raster: Raster, is_symbolic: bool) {
    let (t, r) = (Name::from("t"), Name::from("r"));
    let known = if is_symbolic { Index::var(&r) } else { Index::int(rows) };
    let value = |at: i64| {
        let t = &t;
        move |name: &Name| Some(if name == t { at } else { rows })
    };
    let tile = raster.tile(&Index::var(&t), &known);
    let order = (0..rows * raster.columns).map(|at| {
        let eval = |it: &Index| it.eval(&value(at)).expect("it has a value");
        (eval(&tile.0), eval(&tile.1))
    });
    assert_eq!(order.collect::<Vec<_>>(), in_groups(rows, raster));
}

proptest! {
    /// Each tile is run once, and when it should be, whether the number of rows is known or not.
    #[test]
    fn tiles_run_in_groups(rows in 1..40i64, columns in 1..20i64, group in 1..20i64) {
        let raster = Raster { columns, group };
        check(rows, raster, false);
        check(rows, raster, true);
    }

    /// Digits of the number of a tile become rows and columns, and any other index of it means what it meant.
    #[test]
    fn indices_are_renumbered(rows in 1..12i64, columns in 1..12i64, group in 1..9i64, at in 0..144i64, by in 1..9i64) {
        let at = at % (rows * columns);
        let (raster, t) = (Raster { columns, group }, Name::from("t"));
        let tile = raster.tile(&Index::var(&t), &Index::int(rows));
        let var = Index::var(&t);
        let (row, column) = in_groups(rows, raster)[usize::try_from(at).expect("small")];
        let number = row * columns + column;
        for index in [
            var.clone(),
            var.floor_div(&Index::int(columns)),
            var.floor_mod(&Index::int(columns)),
            var.floor_div(&Index::int(by)) * 3 + var.floor_mod(&Index::int(by)),
        ] {
            let new = raster.renumbered(&index, &t, &tile);
            prop_assert_eq!(new.eval(&|_| Some(at)), index.eval(&|_| Some(number)));
        }
    }
}
