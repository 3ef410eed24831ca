//! Lane maps: which of the lanes that execute an instruction together has which element of a tile, and at which place among
//! its own.

use std::{fmt, sync::OnceLock};

use crate::{Arch, Index, Name};

/// The number of lanes of a warp, as an extent: [`Arch::WARP`].
pub const WARP: i64 = Arch::WARP as i64;

/// The number of lanes of a warpgroup: four warps, the first of which has a number that is a multiple of four (PTX ISA,
/// *Asynchronous warpgroup level matrix instructions*).
pub const WARPGROUP: i64 = 4 * WARP;

/// How a tile of two dimensions is spread over the lanes of a warp or of a warpgroup, the same number of elements to each.
///
/// Both directions are there, since both are needed: which element a lane has at a place, to write loops over the
/// lanes; and where an element is, to find it. A test holds one against the other.
pub struct LaneMap {
    /// Its name, for messages.
    pub name: &'static str,
    /// How many lanes there are: [`WARP`] or [`WARPGROUP`].
    pub lanes: i64,
    /// The rows and columns of the tile.
    pub tile: [i64; 2],
    /// How many groups of how many elements a lane has; those of a group are neighbours in the tile.
    pub parts: [i64; 2],
    /// The row of the element `v` of group `h` of a `lane`.
    pub row: &'static str,
    /// The column of that element.
    pub column: &'static str,
    /// The lane that has the element of row `i` and column `j`.
    pub lane: &'static str,
    /// Where it has that element: `h * parts[1] + v`.
    pub place: &'static str,
    forms: OnceLock<Forms>,
}

/// What the expressions of a map say, read once.
struct Forms {
    /// The row and the column of an element.
    element: [Index; 2],
    /// The lane of an element, and its place there.
    position: [Index; 2],
    /// The rows and columns of all elements.
    table: Vec<[usize; 2]>,
}

// No two maps have the same name.
impl PartialEq for LaneMap {
    fn eq(&self, other: &LaneMap) -> bool {
        self.name == other.name
    }
}

impl Eq for LaneMap {}

impl fmt::Debug for LaneMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LaneMap").field(&self.name).finish()
    }
}

impl LaneMap {
    /// How many elements a lane has.
    pub const fn elements(&self) -> i64 {
        self.parts[0] * self.parts[1]
    }

    /// The row and the column of an element, over `lane`, `h` and `v`.
    pub fn element(&self, lane: &Index, h: &Index, v: &Index) -> [Index; 2] {
        let with = |name: &Name| match name.as_str() {
            "lane" => Some(lane.clone()),
            "h" => Some(h.clone()),
            "v" => Some(v.clone()),
            _ => None,
        };
        self.forms().element.each_ref().map(|it| it.subst(&with))
    }

    /// The rows and columns of all elements: lane by lane, place by place.
    pub fn table(&self) -> &[[usize; 2]] {
        &self.forms().table
    }

    /// The row and column of the element at a place of a lane.
    pub fn element_at(&self, lane: i64, place: i64) -> [i64; 2] {
        self.numbers(&self.forms().element, lane, place)
    }

    fn forms(&self) -> &Forms {
        self.forms.get_or_init(|| {
            let element = [self.row, self.column].map(parsed);
            let number = |it: i64| usize::try_from(it).expect("a tile starts at zero");
            let all = (0..self.lanes).flat_map(|lane| (0..self.elements()).map(move |place| (lane, place)));
            let table = all.map(|(lane, place)| self.numbers(&element, lane, place).map(number)).collect();
            Forms { element, position: [self.lane, self.place].map(parsed), table }
        })
    }

    fn numbers(&self, element: &[Index; 2], lane: i64, place: i64) -> [i64; 2] {
        let value = |name: &Name| match name.as_str() {
            "lane" => Some(lane),
            "h" => Some(place.div_euclid(self.parts[1])),
            "v" => Some(place.rem_euclid(self.parts[1])),
            _ => None,
        };
        [0, 1].map(|at| element[at].eval(&value).expect("the map is over lane, h and v only"))
    }

    /// The lane that has an element of the tile, and the place where it has it.
    pub fn position(&self, row: &Index, column: &Index) -> (Index, Index) {
        let with = |name: &Name| match name.as_str() {
            "i" => Some(row.clone()),
            "j" => Some(column.clone()),
            _ => None,
        };
        let [lane, place] = &self.forms().position;
        (lane.subst(&with), place.subst(&with))
    }
}

fn parsed(text: &str) -> Index {
    text.parse().expect("the maps are tried by a test")
}

/// The fragment of an accumulator of `mma.m16n8`, whatever its type (PTX ISA, matrix fragments of `mma.m16n8k16`).
pub(super) static C_16X8: LaneMap = LaneMap {
    name: "C of m16n8",
    lanes: WARP,
    tile: [16, 8],
    parts: [2, 2],
    row: "lane floordiv 4 + h * 8",
    column: "lane mod 4 * 2 + v",
    lane: "i mod 8 * 4 + j floordiv 2",
    place: "i floordiv 8 * 2 + j mod 2",
    forms: OnceLock::new(),
};

/// The left factor in elements of 2 bytes.
pub(super) static A_16X16: LaneMap = LaneMap {
    name: "A of m16n8k16, 2 bytes",
    lanes: WARP,
    tile: [16, 16],
    parts: [4, 2],
    row: "lane floordiv 4 + h mod 2 * 8",
    column: "lane mod 4 * 2 + h floordiv 2 * 8 + v",
    lane: "i mod 8 * 4 + j mod 8 floordiv 2",
    place: "j floordiv 8 * 4 + i floordiv 8 * 2 + j mod 2",
    forms: OnceLock::new(),
};

/// The right factor in elements of 2 bytes, rows along `k`.
pub(super) static B_16X8: LaneMap = LaneMap {
    name: "B of m16n8k16, 2 bytes",
    lanes: WARP,
    tile: [16, 8],
    parts: [2, 2],
    row: "lane mod 4 * 2 + h * 8 + v",
    column: "lane floordiv 4",
    lane: "j * 4 + i mod 8 floordiv 2",
    place: "i floordiv 8 * 2 + i mod 2",
    forms: OnceLock::new(),
};

/// The left factor in elements of 1 byte.
pub(super) static A_16X32: LaneMap = LaneMap {
    name: "A of m16n8k32, 1 byte",
    lanes: WARP,
    tile: [16, 32],
    parts: [4, 4],
    row: "lane floordiv 4 + h mod 2 * 8",
    column: "lane mod 4 * 4 + h floordiv 2 * 16 + v",
    lane: "i mod 8 * 4 + j mod 16 floordiv 4",
    place: "j floordiv 16 * 8 + i floordiv 8 * 4 + j mod 4",
    forms: OnceLock::new(),
};

/// The right factor in elements of 1 byte, rows along `k`.
pub(super) static B_32X8: LaneMap = LaneMap {
    name: "B of m16n8k32, 1 byte",
    lanes: WARP,
    tile: [32, 8],
    parts: [2, 4],
    row: "lane mod 4 * 4 + h * 16 + v",
    column: "lane floordiv 4",
    lane: "j * 4 + i mod 16 floordiv 4",
    place: "i floordiv 16 * 4 + i mod 4",
    forms: OnceLock::new(),
};

/// The left factor in elements of 4 bytes.
pub(super) static A_16X8: LaneMap = LaneMap {
    name: "A of m16n8k8, 4 bytes",
    lanes: WARP,
    tile: [16, 8],
    parts: [4, 1],
    row: "lane floordiv 4 + h mod 2 * 8",
    column: "lane mod 4 + h floordiv 2 * 4 + v",
    lane: "i mod 8 * 4 + j mod 4",
    place: "j floordiv 4 * 2 + i floordiv 8",
    forms: OnceLock::new(),
};

/// The right factor in elements of 4 bytes, rows along `k`.
pub(super) static B_8X8: LaneMap = LaneMap {
    name: "B of m16n8k8, 4 bytes",
    lanes: WARP,
    tile: [8, 8],
    parts: [2, 1],
    row: "lane mod 4 + h * 4 + v",
    column: "lane floordiv 4",
    lane: "j * 4 + i mod 4",
    place: "i floordiv 4",
    forms: OnceLock::new(),
};

/// The part of 8 columns of an accumulator of `wgmma`, whatever its type (PTX ISA, register fragments of
/// `wgmma.mma_async.m64nNk16`): warp `w` has rows `16*w` and on, as `mma.m16n8` has them.
pub(super) static D_64X8: LaneMap = LaneMap {
    name: "D of m64n8",
    lanes: WARPGROUP,
    tile: [64, 8],
    parts: [2, 2],
    row: "lane floordiv 32 * 16 + lane mod 32 floordiv 4 + h * 8",
    column: "lane mod 4 * 2 + v",
    lane: "i floordiv 16 * 32 + i mod 8 * 4 + j floordiv 2",
    place: "i mod 16 floordiv 8 * 2 + j mod 2",
    forms: OnceLock::new(),
};

/// The left factor of `wgmma` in registers, in elements of 2 bytes: four of `mma.m16n8k16` under each other.
pub(super) static A_64X16: LaneMap = LaneMap {
    name: "A of m64k16, 2 bytes",
    lanes: WARPGROUP,
    tile: [64, 16],
    parts: [4, 2],
    row: "lane floordiv 32 * 16 + lane mod 32 floordiv 4 + h mod 2 * 8",
    column: "lane mod 4 * 2 + h floordiv 2 * 8 + v",
    lane: "i floordiv 16 * 32 + i mod 8 * 4 + j mod 8 floordiv 2",
    place: "j floordiv 8 * 4 + i mod 16 floordiv 8 * 2 + j mod 2",
    forms: OnceLock::new(),
};

/// Eight columns of what a warpgroup loads from tensor memory (PTX ISA, `tcgen05.ld`, shape `.32x32b`): lane `i` of the warpgroup has
/// row `i`.
pub(super) static D_128X8: LaneMap = LaneMap {
    name: "D of m128n8",
    lanes: WARPGROUP,
    tile: [128, 8],
    parts: [1, 8],
    row: "lane + h",
    column: "v",
    lane: "i",
    place: "j",
    forms: OnceLock::new(),
};
