//! Tiles that are filled by a fused loop which is split over threads, as proofs see them.

use std::collections::BTreeSet;

use super::{AccessRelation, Conflict, Iteration, covers, never_missed};
use crate::{
    Index, Less, Name,
    arith::Bounds,
    solve::{Problem, tests::read},
};

const THREADS: [i64; 5] = [4, 8, 16, 32, 96];

/// Each element of a tile by a thread of its own: `f = o*threads + t` with the subscripts `f floordiv columns` and `f mod
/// columns`, in the form that a schedule leaves them in.
struct Fill {
    indices: Vec<Index>,
    loops: Vec<(Name, Index)>,
    guard: Less,
}

/// An access, and itself in any other iteration.
fn with_itself<'a>(it: &'a AccessRelation, dims: &'a [Name]) -> Conflict<'a> {
    Conflict { first: it, second: it, dims, when: &|_| Iteration::Any }
}

impl Fill {
    /// The subscripts are digits of a fused loop, the outermost one first; `sizes` are those of the tile.
    fn of(digits: &[String], sizes: &[i64], threads: i64) -> Fill {
        let all: i64 = sizes.iter().product();
        let loops = vec![
            (Name::new("o"), Index::int((all + threads - 1) / threads)),
            (Name::new("t"), Index::int(threads)),
        ];
        let mut bounds = Bounds::default();
        for (name, extent) in &loops {
            bounds.insert(name, extent);
        }
        let fused = format!("(o*{threads} + t)");
        let indices = digits.iter().map(|it| bounds.simplify(&read(&it.replace('f', &fused)))).collect();
        let guard = bounds.simplify_less(&Less::new(read(&fused), Index::int(all)));
        Fill { indices, loops, guard }
    }

    fn place(&self) -> AccessRelation {
        AccessRelation {
            indices: self.indices.clone(),
            vars: self.loops.clone(),
            conditions: vec![self.guard.clone()],
        }
    }

    /// Whether no two iterations of a loop touch one element.
    fn tells_apart(&self, var: &str) -> bool {
        let place = self.place();
        with_itself(&place, &[]).has_same(&Name::new(var))
    }

    /// Whether no element of the tile is left out.
    fn fills(&self, sizes: &[i64]) -> bool {
        let mut points = Problem::new();
        let names: Vec<_> = (0..sizes.len()).map(|n| Name::new(format!("e{n}"))).collect();
        names.iter().zip(sizes).for_each(|(name, size)| points.index(name, &Index::int(*size)));
        let element: Vec<_> = names.iter().map(Index::var).collect();
        never_missed(&points, &[self.place().misses(&element)])
    }

    /// The elements that are touched, and whether one of them is touched twice.
    fn touched(&self) -> (BTreeSet<Vec<i64>>, bool) {
        let (mut out, mut twice) = (BTreeSet::new(), false);
        let [outer, threads] = [0, 1].map(|n: usize| self.loops[n].1.as_int().expect("a constant"));
        for (o, t) in (0..outer).flat_map(|o| (0..threads).map(move |t| (o, t))) {
            let value = |name: &Name| Some(if name.as_str() == "o" { o } else { t });
            let eval = |it: &Index| it.eval(&value).expect("a value");
            if eval(&self.guard.lhs) < eval(&self.guard.rhs) {
                twice |= !out.insert(self.indices.iter().map(eval).collect());
            }
        }
        (out, twice)
    }
}

#[test]
fn tiles_of_any_sides_are_filled_by_any_threads() {
    for threads in THREADS {
        for (rows, columns) in (1..=12).flat_map(|rows| (1..=12).map(move |columns| (rows, columns))) {
            let fill = Fill::of(&[format!("f/{columns}"), format!("f%{columns}")], &[rows, columns], threads);
            let case = format!("{rows} x {columns} by {threads}: {:?}", fill.indices);
            assert!(fill.tells_apart("t") && fill.tells_apart("o"), "{case} may write one element twice");
            assert!(fill.fills(&[rows, columns]), "{case} may leave one out");
        }
    }
}

#[test]
fn tiles_of_three_sides_are_filled_too() {
    for threads in THREADS {
        for sizes in [[6, 6, 3], [5, 7, 3], [3, 1, 5], [2, 9, 7], [1, 1, 10], [10, 11, 12]] {
            let [_, y, x] = sizes;
            let fill =
                Fill::of(&[format!("f/{}", y * x), format!("f/{x}%{y}"), format!("f%{x}")], &sizes, threads);
            let case = format!("{sizes:?} by {threads}: {:?}", fill.indices);
            assert!(fill.tells_apart("t") && fill.tells_apart("o"), "{case} may write one element twice");
            assert!(fill.fills(&sizes), "{case} may leave one out");
        }
    }
}

/// Digits that do not fit each other: what is claimed is true.
#[test]
fn digits_that_overlap_or_leave_gaps_are_found_out() {
    let mut found = [0, 0];
    for threads in [4, 8] {
        for (by, modulo) in (1..=6).flat_map(|by| (1..=6).map(move |modulo| (by, modulo))) {
            for (rows, columns) in [(2, 3), (4, 3), (3, 5), (2, 6)] {
                let fill = Fill::of(&[format!("f/{by}"), format!("f%{modulo}")], &[rows, columns], threads);
                let (elements, twice) = fill.touched();
                let case = format!("{rows} x {columns} as /{by} and %{modulo} by {threads}");
                if fill.tells_apart("t") && fill.tells_apart("o") {
                    assert!(!twice, "{case} writes one element twice");
                    found[0] += 1;
                }
                if fill.fills(&[rows, columns]) {
                    let is_in = |row, column| elements.contains(&vec![row, column]);
                    assert!((0..rows).all(|row| (0..columns).all(|column| is_in(row, column))), "{case}");
                    found[1] += 1;
                }
            }
        }
    }
    assert!(found.iter().all(|it| *it > 0), "{found:?}");
}

/// Rows of a symbolic number of columns: quotient and remainder are the fused loop again.
#[test]
fn a_symbolic_fused_loop_is_told_apart() {
    let name = Name::new;
    let place = AccessRelation {
        indices: vec![read("(o*256 + t)/n"), read("(o*256 + t)%n")],
        vars: vec![(name("o"), read("(m*n + 255)/256")), (name("t"), Index::int(256))],
        conditions: vec![Less::new(read("o*256 + t"), read("m*n"))],
    };
    let dims = [name("m"), name("n")];
    let conflict = with_itself(&place, &dims);
    assert!(conflict.has_same(&name("t")) && conflict.has_same(&name("o")));
    let short =
        AccessRelation { indices: vec![read("(o*256 + t)/n"), read("(o*256 + t)%m")], ..place.clone() };
    let conflict = with_itself(&short, &dims);
    assert!(!conflict.has_same(&name("t")));
}

/// Tiles that do not divide a matrix, each filled by a fused loop which is split over threads: as a whole they fill it.
#[test]
fn ragged_tiles_fill_a_matrix() {
    for (threads, rows, columns) in [(32, 6, 5), (12, 6, 5), (8, 3, 7), (96, 4, 4), (32, 1, 5), (7, 5, 1)] {
        for (height, width) in [(61, 47), (60, 45), (7, 100), (1, 3)] {
            let tile = Fill::of(&[format!("f/{columns}"), format!("f%{columns}")], &[rows, columns], threads);
            let tiles = |size: i64, of: i64| Index::int((size + of - 1) / of);
            let outer = [("io", tiles(height, rows)), ("jo", tiles(width, columns))];
            let mut loops = outer.map(|(name, count)| (Name::new(name), count)).to_vec();
            loops.extend(tile.loops);
            let mut bounds = Bounds::default();
            for (name, extent) in &loops {
                bounds.insert(name, extent);
            }
            let place = [(0, "io", rows), (1, "jo", columns)].map(|(at, name, by): (usize, _, i64)| {
                bounds.simplify(&(Index::var(&Name::new(name)) * by + tile.indices[at].clone()))
            });
            let inside =
                place.iter().zip([height, width]).map(|(it, size)| Less::new(it.clone(), Index::int(size)));
            let guards = inside.map(|it| bounds.simplify_less(&it)).chain([tile.guard]);
            let guards = guards.filter(|it| bounds.prove(it) != Some(true)).collect();
            let whole = AccessRelation { indices: place.to_vec(), vars: loops, conditions: guards };
            let element = ["y", "x"].map(|it| Index::var(&Name::new(it))).to_vec();
            let vars = vec![(Name::new("y"), Index::int(height)), (Name::new("x"), Index::int(width))];
            let read = AccessRelation { indices: element, vars, conditions: vec![] };
            let shape = [Index::int(height), Index::int(width)];
            let case = format!("{height} x {width} in tiles of {rows} x {columns} by {threads}: {whole:?}");
            assert!(covers(&[], &shape, &whole, &read, &|_| false), "{case} may leave one out");
            let more = [Index::int(height + 1), Index::int(width)];
            let beyond = AccessRelation {
                vars: vec![(Name::new("y"), more[0].clone()), read.vars[1].clone()],
                ..read
            };
            assert!(!covers(&[], &more, &whole, &beyond, &|_| false), "{case} has no more rows");
        }
    }
}
