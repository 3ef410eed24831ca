//! How much of a space constraints and inactive knobs leave.

use super::{Permutation, Refusal, Space};

/// What is refused of a space and what remains.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pruning {
    /// All points.
    pub size: u128,
    /// How many of them were looked at. If not all, the other numbers are estimates.
    pub looked_at: u128,
    /// Points that make the same steps as another, because a knob that decides nothing has not its first choice.
    pub inactive: u128,
    /// What each constraint refuses of the rest.
    pub constraints: Vec<Pruned>,
    /// The points that remain.
    pub admitted: u128,
}

/// What a constraint refuses.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Pruned {
    /// The points for which it does not hold.
    pub alone: u128,
    /// Those of them for which all other constraints hold.
    pub only: u128,
}

/// The largest space of which every point is looked at.
const ALL: u128 = 1 << 22;
/// How many points are drawn of a larger one.
const SAMPLES: u128 = 1 << 16;

impl Pruning {
    /// Whether the numbers are exact.
    pub fn is_exact(&self) -> bool {
        self.looked_at == self.size
    }

    pub(super) fn of(space: &Space) -> Pruning {
        let size = space.size();
        let all = size <= ALL;
        let looked_at = if all { size } else { SAMPLES };
        let order = Permutation::new(if all { 0 } else { size }, 0);
        let rules = &space.0.rules;
        let mut out = Pruning {
            size,
            looked_at,
            inactive: 0,
            constraints: vec![Pruned::default(); rules.len()],
            admitted: 0,
        };
        let mut digits = space.digits(0);
        for at in 0..looked_at {
            space.put_digits(if all { at } else { order.at(at) }, &mut digits);
            if space.first_inactive(&digits).is_some() {
                out.inactive += 1;
                continue;
            }
            let mut broken =
                rules.iter().enumerate().filter(|(_, it)| !space.holds(it, &digits)).map(|it| it.0);
            let Some(first) = broken.next() else {
                out.admitted += 1;
                continue;
            };
            out.constraints[first].alone += 1;
            let mut only = true;
            for other in broken {
                out.constraints[other].alone += 1;
                only = false;
            }
            out.constraints[first].only += u128::from(only);
        }
        out.scaled()
    }

    /// Counts among samples as shares of the whole.
    fn scaled(mut self) -> Pruning {
        if self.is_exact() {
            return self;
        }
        let (size, of) = (self.size, self.looked_at);
        // Rounding to a multiple of the scale keeps large sizes from overflowing.
        let scale = |it: &mut u128| *it = size / of * *it + size % of * *it / of;
        scale(&mut self.inactive);
        scale(&mut self.admitted);
        for it in &mut self.constraints {
            scale(&mut it.alone);
            scale(&mut it.only);
        }
        self
    }
}

/// Why points are refused, for tables.
impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Refusal::Constraint(at) => write!(f, "constraint {}", at + 1),
            Refusal::Inactive(name) => write!(f, "inactive knob `{name}`"),
        }
    }
}
