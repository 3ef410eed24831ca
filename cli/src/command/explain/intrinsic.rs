//! What a tensor intrinsic computes, and which lane has what.

use std::fmt::Write as _;

use ir::{
    Index,
    intrin::{Instruction, Intrinsic, LaneMap, ProductKind},
};
use schemars::JsonSchema;
use serde::Serialize;

use crate::{constant::True, diagnostic::Diagnostic, term::report::Report, term::shell::Shell};

/// The manual of an intrinsic as a text.
fn manual(it: &Intrinsic) -> String {
    let mut out = format!("{}\n\n{}\nNeeds {}.", it.name, it.about, it.needs.targets());
    if !it.types.is_empty() {
        let types: Vec<_> = it.types.iter().map(|it| it.as_str()).collect();
        let _ = write!(out, " T is {}.", types.join(", "));
    }
    out.push('\n');
    match it.instruction {
        Instruction::Mma { opcode, .. } => {
            let _ = write!(out, "PTX: {opcode}\n\n{}", it.description);
            out.push_str(&drawn_maps(it));
        }
        Instruction::Ldmatrix { matrices, transposed } => {
            let trans = if transposed { ".trans" } else { "" };
            let _ = write!(out, "PTX: ldmatrix.sync.aligned.m8n8.x{matrices}{trans}.shared.b16\n\n");
            let _ = write!(out, "{}", it.description);
            out.push_str(&matrix(matrices, transposed));
        }
        Instruction::Stmatrix { matrices, transposed } => {
            let trans = if transposed { ".trans" } else { "" };
            let _ = write!(out, "PTX: stmatrix.sync.aligned.m8n8.x{matrices}{trans}.shared.b16\n\n");
            let _ = write!(out, "{}", it.description);
            out.push_str(&matrix(matrices, transposed));
        }
        Instruction::Wgmma { types, k, transposes, .. } => {
            let shape = format!("m64nNk{k}");
            let _ = write!(out, "PTX: wgmma.mma_async.sync.aligned.{shape}{types}\n\n{}", it.description);
            out.push_str(&factors(transposes));
            out.push_str(&drawn_maps(it));
        }
        Instruction::Tcgen05(kind) => {
            out.push_str(&product_of_tensor_core(it, kind));
        }
        Instruction::TensorCopy => {
            let _ = write!(out, "PTX: tcgen05.cp.cta_group::1.32x128b.warpx4\n\n{}{SCALES}", it.description);
        }
        Instruction::TensorLoad(_) => {
            let _ = write!(out, "PTX: tcgen05.ld.sync.aligned.32x32b.xN.b32\n\n{}", it.description);
            out.push_str(&drawn_maps(it));
        }
        Instruction::Lanes(map) => {
            let [rows, columns] = map.tile;
            let _ = write!(
                out,
                "\nfor i in 0..{rows}\n  for j in 0..{columns}\n    any statement\n->\nfor i_lane in 0..{} @threadIdx.x\n  \
                 for i_part in 0..{} @unrolled\n    for i_elem in 0..{} @vectorized\n      \
                 the statement with i = {}\n                     and j = {}\n\n{}",
                map.lanes,
                map.parts[0],
                map.parts[1],
                own(map.row),
                own(map.column),
                drawn(map)
            );
        }
    }
    out
}

/// A product into tensor memory.
fn product_of_tensor_core(it: &Intrinsic, kind: ProductKind) -> String {
    let ProductKind { name, blocks, scaled, transposes, .. } = kind;
    let block_scale = if scaled.is_some() { ".block_scale" } else { "" };
    let pair = if blocks > 1 { PAIR } else { "" };
    let scales = if scaled.is_some() { SCALES } else { "" };
    let (description, factors) = (it.description, factors(transposes));
    format!(
        "PTX: tcgen05.mma.cta_group::{blocks}.kind::{name}{block_scale}\n\n{description}{factors}{TENSOR_MEMORY}{pair}{scales}"
    )
}

/// Which lane has what, by operand.
fn drawn_maps(it: &Intrinsic) -> String {
    let mut out = String::new();
    for (name, map) in maps(it) {
        let _ = write!(out, "\n{name}: {}", drawn(map));
    }
    out
}

/// What is different where two blocks multiply together.
const PAIR: &str = "\
Two blocks of a cluster along `cluster.x` compute it together: each says so of its own 128 rows. B is the same for both, and each copies and \
                    keeps half of its columns. It needs roles (`warp_specialize`), for the thread that starts it is one of the first block.\n";

/// How scales get to tensor memory.
const SCALES: &str = "\nScales stand in tensor memory, too: 128 rows of a factor, four scales each, are 32 rows of 16 scales there, and take four columns of \
                      four bytes. `tcgen05_cp` brings them from shared memory, where the copy engine puts them, in turn with the products of \
                      the thread that starts it; a product reads one of the four.\n";

/// What is to be known of sums in tensor memory.
const TENSOR_MEMORY: &str = "\nC is 128 rows of tensor memory, where each element takes a column of four bytes: a block of threads has 512 of \
                             them. One thread starts products, and waits for groups of them; `tcgen05_ld` brings C to registers.\n";

/// How a product of a warpgroup has its factors, and where it starts.
fn factors(transposes: bool) -> String {
    let or_first = if transposes { "last or first" } else { "last" };
    format!(
        "\nFactors in shared memory are swizzled, with the dimension that is summed over {or_first}. An init of zeros may stay in \
         the block: the instruction starts from zero.\n"
    )
}

/// The expression with the names of the loops that `tensorize` makes.
fn own(text: &str) -> String {
    let word = |word: &str| match word {
        "lane" => "i_lane".to_owned(),
        "h" => "i_part".to_owned(),
        "v" => "i_elem".to_owned(),
        other => other.to_owned(),
    };
    text.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

/// The manual of a tensor intrinsic.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "an intrinsic")]
pub(crate) struct Manual {
    ok: True,
    /// Its name.
    intrinsic: &'static str,
    /// What it does, in a sentence.
    about: &'static str,
    /// The least compute capability that has it: 80 for sm_80.
    least_sm: u32,
    /// The types that T stands for in the description.
    types: Vec<&'static str>,
    /// What it computes, as a program in the text form.
    description: String,
    /// Which lane has what, for each operand; none for a matrix load.
    maps: Vec<OperandMap>,
    #[serde(skip)]
    text: String,
}

/// Which lane has which elements of an operand.
#[derive(Debug, Serialize, JsonSchema)]
struct OperandMap {
    /// The operand.
    operand: &'static str,
    /// The name of the map, the same for all operands that lie alike.
    map: &'static str,
    /// Rows and columns of the tile.
    tile: [i64; 2],
    /// For each lane of the warp or warpgroup its elements, each by its row and column.
    elements_of_lanes: Vec<Vec<[usize; 2]>>,
}

impl Manual {
    /// The manual as a text.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn of(it: &Intrinsic) -> Manual {
        let map = |(operand, map): (&'static str, &'static LaneMap)| {
            let table = map.table();
            let lanes = usize::try_from(map.lanes).expect("a team has a few lanes");
            let own = table.chunks(table.len() / lanes).map(<[_]>::to_vec);
            OperandMap { operand, map: map.name, tile: map.tile, elements_of_lanes: own.collect() }
        };
        Manual {
            ok: True,
            intrinsic: it.name,
            about: it.about,
            least_sm: it.needs.least_sm(),
            types: it.types.iter().map(|it| it.as_str()).collect(),
            description: it.description.to_owned(),
            maps: maps(it).into_iter().map(map).collect(),
            text: manual(it),
        }
    }
}

impl Report for Manual {
    fn print(&self, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
        Ok(write!(shell.out, "{}", self.text)?)
    }
}

fn maps(it: &Intrinsic) -> Vec<(&'static str, &'static LaneMap)> {
    match it.instruction {
        Instruction::Mma { c, a, b, .. } => vec![("C", c), ("A", a), ("B", b)],
        Instruction::Wgmma { sum, left, .. } => {
            [("C", sum)].into_iter().chain(left.map(|it| ("A", it))).collect()
        }
        Instruction::TensorLoad(map) => vec![("D", map)],
        Instruction::Lanes(map) => vec![("tile", map)],
        Instruction::Ldmatrix { .. }
        | Instruction::Stmatrix { .. }
        | Instruction::Tcgen05(_)
        | Instruction::TensorCopy => vec![],
    }
}

/// The tile, each cell with the lane that has it; neighbours that one lane has side by side share a cell.
fn drawn(map: &'static LaneMap) -> String {
    let first = map.element_at(0, 0);
    let second = map.element_at(0, i64::from(map.parts[1] > 1));
    let wide = [0, 1].map(|at| if second[at] > first[at] { map.parts[1] } else { 1 });
    let range = |from: i64, count: i64| {
        if count == 1 { from.to_string() } else { format!("{from}-{}", from + count - 1) }
    };
    let step = |it: i64| usize::try_from(it).expect("a lane has a few elements");
    let [rows, columns] = map.tile;
    let mut out = format!("{rows} x {columns}, T5:2 is lane 5, from its element 2 on\n\n       ");
    for column in (0..columns).step_by(step(wide[1])) {
        let _ = write!(out, "{:<7}", range(column, wide[1]));
    }
    out.truncate(out.trim_end().len());
    out.push('\n');
    for row in (0..rows).step_by(step(wide[0])) {
        let _ = write!(out, "{:>5}  ", range(row, wide[0]));
        for column in (0..columns).step_by(step(wide[1])) {
            let (lane, place) = map.position(&Index::int(row), &Index::int(column));
            let _ = write!(out, "{:<7}", format!("T{lane}:{place}"));
        }
        out.truncate(out.trim_end().len());
        out.push('\n');
    }
    out
}

/// What becomes of each matrix of a matrix load.
fn matrix(matrices: u32, transposed: bool) -> String {
    let lanes = matrices * 8 - 1;
    let mut out = format!(
        "\nLanes 0 to {lanes} each give the address of a row of 16 bytes: lane 8*g + r that of row r of matrix g.\n\
         Matrix g goes to the g-th 4 bytes of every lane{}:\n\n",
        if transposed { ", an element of 2 bytes low or high in them" } else { "" }
    );
    let head: Vec<String> = if transposed {
        (0..8).map(|it| format!("elem {it}")).collect()
    } else {
        (0..4).map(|it| format!("byte {}", it * 4)).collect()
    };
    let _ = write!(out, "         ");
    for it in &head {
        let _ = write!(out, "{it:<10}");
    }
    out.truncate(out.trim_end().len());
    out.push('\n');
    for row in 0..8 {
        let _ = write!(out, "  row {row}  ");
        for column in 0..head.len() {
            let text = if transposed {
                format!("T{} {}", column * 4 + row / 2, if row % 2 == 0 { "low" } else { "high" })
            } else {
                format!("T{}", row * 4 + column)
            };
            let _ = write!(out, "{text:<10}");
        }
        out.truncate(out.trim_end().len());
        out.push('\n');
    }
    out
}
