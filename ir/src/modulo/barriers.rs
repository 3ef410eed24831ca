//! How many barriers a step of a placement has.

use super::{
    placement::{Placement, positions},
    problem::Problem,
    work::Pace,
};
use crate::Mechanism;

/// The least number of barriers in a step between which every pair of components that meet in shared memory is kept apart. What the copy
/// engine fills has mbarriers instead.
pub(super) fn count(problem: &Problem, placement: &Placement) -> u32 {
    let count = i64::try_from(placement.order.len()).expect("a loop has few components");
    let position = positions(&placement.order);
    let time = |at: usize, iteration: i64| (placement.stages[at] + iteration) * count + position[at];
    let is_engine = |at: usize| matches!(problem.work[at].pace, Pace::Copy(Mechanism::Tma));
    let mut arcs = vec![];
    for (ring, slots) in problem.rings.iter().zip(&placement.slots).filter(|it| it.0.is_shared) {
        for &writer in ring.writers.iter().filter(|it| !is_engine(**it)) {
            for &user in ring.users.iter().filter(|it| **it != writer) {
                arcs.push(places(time(writer, 0), time(user, 0), count));
                arcs.push(places(time(user, 0), time(writer, *slots), count));
            }
        }
    }
    let serves = |set: u32| arcs.iter().all(|arc| arc & set != 0);
    let all = 0..1u32 << count.min(16);
    all.filter(|set| serves(*set)).map(u32::count_ones).min().unwrap_or(0)
}

/// The places of a step, as bits, before whose component a barrier may stand that is passed between two times.
fn places(from: i64, to: i64, count: i64) -> u32 {
    let bit = |time: i64| 1u32 << time.rem_euclid(count).min(31);
    (from + 1..=to.min(from + count)).fold(0, |all, time| all | bit(time))
}
