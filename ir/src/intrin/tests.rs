use std::collections::BTreeSet;

use super::*;
use crate::{Index, text};

fn maps() -> Vec<&'static LaneMap> {
    let mut out: Vec<&'static LaneMap> = Vec::new();
    for it in ALL {
        let found = match it.instruction {
            Instruction::Mma { c, a, b, .. } => vec![c, a, b],
            Instruction::Wgmma { sum, left, .. } => [Some(sum), left].into_iter().flatten().collect(),
            Instruction::TensorLoad(map) | Instruction::Lanes(map) => vec![map],
            Instruction::Ldmatrix { .. }
            | Instruction::Stmatrix { .. }
            | Instruction::Tcgen05(_)
            | Instruction::TensorCopy => vec![],
        };
        out.extend(found);
    }
    out
}

#[test]
fn maps_are_bijections_and_know_their_inverse() {
    for map in maps() {
        let (mut seen, mut table) = (BTreeSet::new(), map.table().iter());
        assert_eq!(map.elements() * map.lanes, map.tile[0] * map.tile[1], "{}", map.name);
        for lane in 0..map.lanes {
            for place in 0..map.elements() {
                let [i, j] = map.element_at(lane, place);
                assert!((0..map.tile[0]).contains(&i) && (0..map.tile[1]).contains(&j), "{}", map.name);
                assert!(seen.insert((i, j)), "{}: ({i}, {j}) twice", map.name);
                assert_eq!(table.next().map(|it| it.map(|it| i64::try_from(it).unwrap())), Some([i, j]));
                let (own, at) = map.position(&Index::int(i), &Index::int(j));
                let found = (own.eval(&|_| None), at.eval(&|_| None));
                assert_eq!(found, (Some(lane), Some(place)), "{} ({i}, {j})", map.name);
            }
        }
    }
}

#[test]
fn descriptions_are_blocks_over_their_operands() {
    for it in ALL.iter().filter(|it| !it.description.is_empty()) {
        let func = text::parse(&it.description.replace(": T[", ": f16[")).expect(it.name);
        let blocks = func.body.blocks();
        assert_eq!(blocks.len(), 1, "{}", it.name);
        assert!(blocks[0].iters.is_empty(), "{}", it.name);
        assert_eq!(blocks[0].writes()[0].buffer.as_str(), func.buffers.keys().next().unwrap().as_str());
    }
}

#[test]
fn intrinsics_are_found_by_name_and_listed_in_order() {
    let names: Vec<_> = ALL.iter().map(|it| it.name).collect();
    assert!(names.is_sorted(), "{names:?}");
    for it in ALL {
        assert_eq!(find(it.name), Some(*it));
        assert!(crate::Name::new(it.name).is_valid(), "{}", it.name);
    }
}

fn row_of(rows: &Rows, lane: i64) -> [i64; 2] {
    let value = |it: &Index| it.eval(&|_| Some(lane)).unwrap();
    [value(&rows.start[0]), value(&rows.start[1])]
}

#[test]
fn matrix_loads_address_the_rows_that_their_fragments_need() {
    let a = rows(find("ldmatrix_x4").unwrap(), &lane_map::A_16X16, [16, 16], 1, 1, 2).unwrap();
    assert_eq!([0, 7, 8, 16, 31].map(|it| row_of(&a, it)), [[0, 0], [7, 0], [8, 0], [0, 8], [15, 8]]);
    // B with rows along k in memory: transposed, and two tiles of 8 columns side by side.
    let b = rows(find("ldmatrix_x4_trans").unwrap(), &lane_map::B_16X8, [16, 16], 1, 1, 2).unwrap();
    assert_eq!([0, 8, 16, 31].map(|it| row_of(&b, it)), [[0, 0], [8, 0], [0, 8], [15, 8]]);
    // B with columns along k in memory: as it lies.
    let b = rows(find("ldmatrix_x4").unwrap(), &lane_map::B_16X8, [16, 16], 0, 1, 2).unwrap();
    assert_eq!([0, 8, 16, 31].map(|it| row_of(&b, it)), [[0, 0], [8, 0], [0, 8], [8, 15]]);
    let wrong = rows(find("ldmatrix_x4").unwrap(), &lane_map::B_16X8, [16, 16], 1, 1, 2).unwrap_err();
    assert!(matches!(wrong, LdmatrixError::Order { .. }), "{wrong}");
    let s8 = rows(find("ldmatrix_x4").unwrap(), &lane_map::A_16X32, [16, 32], 1, 1, 1).unwrap();
    assert_eq!(row_of(&s8, 24), [8, 16]);
    let tf32 = rows(find("ldmatrix_x4").unwrap(), &lane_map::A_16X8, [16, 8], 1, 1, 4).unwrap();
    assert_eq!(row_of(&tf32, 17), [1, 4]);
}
