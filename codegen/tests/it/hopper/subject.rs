//! What the kernels of `tests/vgpu` compute that multiply matrices.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::path::Path;

use indexmap::IndexMap;
use ir::{Module, Name};

/// A kernel and what it computes.
pub(crate) struct Subject {
    pub(crate) name: String,
    pub(crate) module: Module,
    pub(crate) inputs: IndexMap<Name, Vec<f64>>,
    /// What `C` is then.
    pub(crate) product: Vec<f64>,
}

/// The kernels with a product.
pub(crate) fn subjects() -> Vec<Subject> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vgpu");
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|it| it.unwrap().path()).collect();
    paths.sort();
    paths.iter().filter_map(|it| Subject::read(it)).collect()
}

impl Subject {
    fn read(path: &Path) -> Option<Subject> {
        let text = std::fs::read_to_string(path).unwrap();
        let line = text.lines().find_map(|it| it.strip_prefix("// product: "))?;
        let pairs = line.split_whitespace().map(|it| it.split_once('=').unwrap());
        let words: IndexMap<&str, &str> = pairs.collect();
        let [m, n, k] = ["m", "n", "k"].map(|it| words[it].parse::<usize>().unwrap());
        let module = ir::text::parse_module(&text).unwrap_or_else(|err| panic!("{}: {err}", path.display()));
        // Small numbers, which all types hold and all sums are exact of.
        let number = |seed: usize, it: usize| (((it + seed) * 2_654_435_761) >> 7) % 7;
        let form = words.get("scales").copied();
        // Floats of four bits, two in each byte: of any bits.
        let has_pairs = matches!(form, Some("nvfp4" | "mxfp4"));
        let element = |seed: usize, it: usize| {
            if has_pairs {
                (((it + seed) * 2_654_435_761) >> 9) as f64 % 256.0
            } else {
                number(seed, it) as f64 - 3.0
            }
        };
        let matrix = |seed: usize, len: usize| (0..len).map(|it| element(seed, it)).collect::<Vec<_>>();
        let (a, b) = (matrix(1, m * k), matrix(5, n * k));
        let at = |major: &str, mn: usize, extent: usize, depth: usize| match major {
            "k" => mn * k + depth,
            _ => depth * extent + mn,
        };
        // Tiles of 128 rows and four scales of each, 32 x 16 (OCP Microscaling Formats; cuBLAS, *1D block scaling factors layout*).
        let depth_of_tile = match form {
            Some("nvfp4") => 32,
            Some("mxfp4") => 64,
            _ => 128,
        };
        let tiles = |rows: usize| rows.div_ceil(128) * k.div_ceil(depth_of_tile) * 512;
        let scales = |seed: usize, rows: usize| -> Vec<f64> {
            let count = if form.is_some() { tiles(rows) } else { 0 };
            (0..count).map(|it| [0.5, 1.0, 2.0][number(seed, it) % 3]).collect()
        };
        let (sa, sb) = (scales(2, m), scales(6, n));
        let scale = |all: &[f64], row: usize, depth: usize| {
            let tile = row / 128 * k.div_ceil(depth_of_tile) + depth / depth_of_tile;
            let place = tile * 512 + row % 32 * 16 + row / 32 % 4 * 4 + depth / (depth_of_tile / 4) % 4;
            all.get(place).copied().unwrap_or(1.0)
        };
        let element = |i: usize, j: usize| {
            let term = |it: usize| {
                let (a, b) = (a[at(words["a"], i, m, it)], b[at(words["b"], j, n, it)]);
                let factors = if has_pairs { ir::number::dot_e2m1x2(a, b) } else { a * b };
                factors * scale(&sa, i, it) * scale(&sb, j, it)
            };
            (0..k).map(term).sum()
        };
        let product = (0..m).flat_map(|i| (0..n).map(move |j| (i, j))).map(|(i, j)| element(i, j)).collect();
        let all = [("A", a), ("B", b), ("SA", sa), ("SB", sb)].into_iter().filter(|it| !it.1.is_empty());
        let inputs = all.map(|(name, it)| (Name::new(name), it)).collect();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        Some(Subject { name, module, inputs, product })
    }
}
