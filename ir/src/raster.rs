//! `Raster`: the order in which the tiles of a grid are run, in groups of rows.

use indexmap::IndexMap;

use crate::{Annotation, Index, IndexKind, Name};

/// The order of a loop over the tiles of a grid, which are numbered row by row: in groups of rows, column by column inside a
/// group. The last group has the rows that are left.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Raster {
    /// How many tiles a row has.
    pub columns: i64,
    /// How many rows a group has.
    pub group: i64,
}

const COLUMNS: &str = "columns";
const GROUP: &str = "group";

impl Raster {
    /// As the value of an entry of `#{…}`.
    pub(crate) fn annotation(self) -> Annotation {
        let entries = [(COLUMNS, self.columns), (GROUP, self.group)];
        Annotation::Map(entries.map(|(key, it)| (Name::from(key), it)).into())
    }

    /// The order of such a value, or what it should have been.
    pub(crate) fn parse(value: &Annotation) -> Result<Raster, String> {
        let wanted =
            || "how many `columns` there are and how many rows a `group` has, both at least 1".to_owned();
        let Annotation::Map(map) = value else { return Err(wanted()) };
        let number =
            |map: &IndexMap<Name, i64>, key| map.get(&Name::from(key)).copied().filter(|it| *it >= 1);
        match (number(map, COLUMNS), number(map, GROUP), map.len()) {
            (Some(columns), Some(group), 2) if columns.checked_mul(group).is_some() => {
                Ok(Raster { columns, group })
            }
            _ => Err(wanted()),
        }
    }

    /// The row and the column of the tile that is run in an iteration of a loop over so many rows of tiles.
    ///
    /// Up to the last group every group has as many rows. So the number of an iteration is cut in two, the part up to the last
    /// group and the part in it, one of which adds nothing: in each part the divisors are the same for all iterations, and no
    /// condition is needed. Only where the number of rows is symbolic is one of them no constant.
    pub fn tile(self, iteration: &Index, rows: &Index) -> (Index, Index) {
        let [columns, group] = [self.columns, self.group].map(Index::int);
        let of_group = &columns * &group;
        let whole = |at: &Index| {
            let row = &at.floor_div(&of_group) * &group + at.floor_mod(&group);
            (row, at.floor_div(&group).floor_mod(&columns))
        };
        let left = rows.floor_mod(&group);
        if left.as_int() == Some(0) {
            return whole(iteration);
        }
        // Where no rows are left, no iteration is in the last group.
        let left = left.maximum(&Index::int(1));
        let before = &rows.floor_div(&group) * &of_group;
        let (row, column) = whole(&iteration.minimum(&before));
        let within = &iteration.maximum(&before) - &before;
        (row + within.floor_mod(&left), column + within.floor_div(&left))
    }

    /// An index over the number of a tile, over its row and column.
    pub fn renumbered(self, index: &Index, number: &Name, tile: &(Index, Index)) -> Index {
        let is_digit = |a: &Index, b: &Index| a.as_var() == Some(number) && b.as_int() == Some(self.columns);
        match index.kind() {
            IndexKind::FloorDiv(a, b) if is_digit(a, b) => tile.0.clone(),
            IndexKind::FloorMod(a, b) if is_digit(a, b) => tile.1.clone(),
            IndexKind::Var(name) if name == number => &tile.0 * self.columns + tile.1.clone(),
            _ => index.map_parts(&mut |part| self.renumbered(part, number, tile)),
        }
    }
}
