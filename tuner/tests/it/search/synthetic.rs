//! Tables of invented results, of the shapes that spaces of schedules have: knobs that interact, some points that fail,
//! plateaus, optima in corners that are poor on average, and 1 % of noise.

use std::sync::Arc;

use tilewright_tuner::search::{Grid, Points, simulate::Table};

/// A space with a result for each point.
pub(crate) struct Synthetic {
    pub(crate) name: &'static str,
    pub(crate) points: Arc<Grid>,
    pub(crate) table: Table,
}

impl Synthetic {
    pub(crate) fn seconds(&self, index: u128) -> Option<f64> {
        self.table.result(index).flatten()
    }
}

/// A number of 0 to 1 that depends on others in no order.
pub(crate) fn hash(seed: u64, parts: &[usize]) -> f64 {
    let mut state = seed;
    for part in parts.iter().map(|it| *it as u64).chain([parts.len() as u64]) {
        state = (state ^ part).wrapping_add(0x9e37_79b9_7f4a_7c15);
        state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        state ^= state >> 31;
    }
    (state >> 11) as f64 / (1u64 << 53) as f64
}

type Rule<'a> = dyn Fn(&[usize]) -> f64 + 'a;

/// Seconds are `exp(cost)` with 1 % of noise; the quarter of the points with the highest `risk` fails.
fn synthetic(name: &'static str, seed: u64, points: Grid, cost: &Rule<'_>, risk: &Rule<'_>) -> Synthetic {
    let digits: Vec<_> = points.iter().map(|it| (it, points.digits(it))).collect();
    let mut risks: Vec<f64> = digits.iter().map(|(_, it)| risk(it)).collect();
    risks.sort_by(f64::total_cmp);
    let limit = risks[risks.len() * 3 / 4];
    let table = digits.iter().map(|(index, digits)| {
        let noise = 1.0 + 0.02 * (hash(seed ^ 1, digits) - 0.5);
        (*index, (risk(digits) < limit).then(|| 1e-4 * cost(digits).exp() * noise))
    });
    let table = table.collect();
    Synthetic { name, points: Arc::new(points), table }
}

fn f(digit: usize) -> f64 {
    digit as f64
}

/// Tiles of a matrix product: work per element of shared memory against occupancy, whole waves, and blocks that do not
/// fit.
fn tiles(seed: u64) -> Synthetic {
    let size = |digit: usize| (5.0 + f(digit)).exp2();
    let points = Grid::new(vec![4, 4, 3, 3, 3, 4, 2], &|it| {
        let threads = size(it[0]) * size(it[1]) / (f(it[3]) + 1.0).exp2() / (f(it[4]) + 1.0).exp2();
        (32.0..=1024.0).contains(&threads)
    });
    let tastes: Vec<f64> = (0..4).map(|it| hash(seed, &[it])).collect();
    let cost = move |it: &[usize]| {
        let [m, n, k] = [size(it[0]), size(it[1]), (3.0 + f(it[2])).exp2()];
        let [tm, tn] = [(1.0 + f(it[3])).exp2(), (1.0 + f(it[4])).exp2()];
        let threads = m * n / tm / tn;
        let shared = (m + n) * k * 4.0 * (f(it[5]) + 1.0);
        let resident =
            (230_000.0 / shared).min(65_536.0 / (threads * (tm * tn * 1.5 + 30.0))).floor().clamp(0.5, 16.0);
        let warps = (resident * threads / 32.0).min(64.0);
        let waves = 2048.0 * 2048.0 / (m * n) / (132.0 * resident);
        let quantized = waves.ceil() / waves;
        let reads = 1.0 + (3.0 + tastes[0]) * (tm + tn) / (tm * tn);
        let latency = 1.0 + (6.0 + 6.0 * tastes[1]) / (warps * (f(it[5]) + 1.0) * tm.min(tn));
        let traffic = 1.0 + (40.0 + 40.0 * tastes[2]) * (1.0 / m + 1.0 / n);
        let unrolled = if it[6] == 1 { if k > 16.0 { 0.08 } else { -0.1 } } else { 0.0 };
        (quantized * (reads * latency).max(traffic)).ln()
            + unrolled
            + 0.1 * (hash(seed, &[it[2], it[5]]) - 0.5)
    };
    let risk = |it: &[usize]| {
        (size(it[0]) + size(it[1])) * (f(it[2]) + 3.0).exp2() * (f(it[5]) + 1.0) + 300.0 * f(it[3]) * f(it[4])
    };
    synthetic("tiles", seed, points, &cost, &risk)
}

/// Each knob's effect depends on two others, and neighbouring choices have nothing in common.
fn rugged(seed: u64) -> Synthetic {
    let points = Grid::new(vec![4, 4, 5, 4, 4, 2], &|_| true);
    let cost = move |it: &[usize]| {
        (0..6).map(|knob| hash(seed, &[knob, it[knob], it[(knob + 1) % 6], it[(knob + 3) % 6]])).sum::<f64>()
            * 0.8
    };
    let risk =
        move |it: &[usize]| hash(seed ^ 7, &it[..2]) + hash(seed ^ 9, &it[3..5]) + 0.3 * hash(seed ^ 8, it);
    synthetic("rugged", seed, points, &cost, &risk)
}

/// A bowl whose axes are not those of the knobs, beside a cliff.
fn ridge(seed: u64) -> Synthetic {
    let points = Grid::new(vec![8, 8, 8, 5], &|_| true);
    let centre: Vec<f64> = (0..4).map(|it| 1.0 + 5.0 * hash(seed, &[it])).collect();
    let cost = move |it: &[usize]| {
        let d: Vec<f64> = it.iter().zip(&centre).map(|(a, b)| f(*a) - b).collect();
        let along = d[0] + d[1] - d[2];
        0.08 * (d[0] - d[1]).powi(2)
            + 0.05 * (d[1] + d[2]).powi(2)
            + 0.01 * along.powi(2)
            + 0.15 * (d[3] - 0.3 * d[0]).abs()
    };
    let risk = move |it: &[usize]| f(it[0]) + f(it[1]) * 0.7 + f(it[3]) + 2.0 * hash(seed, it);
    synthetic("ridge", seed, points, &cost, &risk)
}

/// Few levels: most changes do nothing, and the best level needs four knobs to be right.
fn plateaus(seed: u64) -> Synthetic {
    let points = Grid::new(vec![4, 3, 4, 3, 3, 3, 2], &|_| true);
    let right: Vec<usize> =
        [4, 3, 4, 3].iter().enumerate().map(|(knob, it)| (hash(seed, &[knob]) * f(*it)) as usize).collect();
    let cost = move |it: &[usize]| {
        let level = it.iter().zip(&right).take_while(|(a, b)| a == b).count();
        let others = it.iter().zip(&right).filter(|(a, b)| a == b).count();
        1.6 - 0.3 * f(level) - 0.1 * f(others) - if it[6] == 1 && level >= 2 { 0.05 } else { 0.0 }
    };
    let risk = move |it: &[usize]| {
        hash(seed ^ 3, &[it[0], it[4]]) + hash(seed ^ 4, &[it[2], it[5]]) + 0.5 * hash(seed ^ 5, it)
    };
    synthetic("plateaus", seed, points, &cost, &risk)
}

/// Three structures with knobs of their own; the one that is best at last is the worst on average.
fn structures(seed: u64) -> Synthetic {
    let points = Grid::new(vec![3, 6, 5, 4, 4, 3], &|it| it[0] == 2 || it[5] == 0);
    let cost = move |it: &[usize]| {
        let s = it[0];
        let at = |knob: usize, radix: usize| hash(seed, &[s, knob]) * f(radix - 1);
        let off: f64 = [(1, 6), (2, 5), (3, 4), (4, 4)]
            .iter()
            .map(|(knob, radix)| (f(it[*knob]) - at(*knob, *radix)).abs())
            .sum();
        let tied = hash(seed, &[s, it[1], it[3]]) + hash(seed, &[s, it[2], it[4]]);
        match s {
            0 => 0.5 + 0.05 * off + 0.2 * tied,
            1 => 0.7 + 0.08 * off + 0.3 * tied,
            _ => 0.16 * off + 0.35 * tied + 0.2 * (f(it[5]) - 1.0).abs(),
        }
    };
    let risk = move |it: &[usize]| {
        hash(seed ^ 3, &[it[0], it[1], it[2]]) + 0.1 * f(it[0]) + 0.5 * hash(seed ^ 5, it)
    };
    synthetic("structures", seed, points, &cost, &risk)
}

/// Many switches, each of which matters with some of the others.
fn switches(seed: u64) -> Synthetic {
    let points = Grid::new(vec![2, 2, 2, 2, 2, 2, 2, 2, 2, 5], &|_| true);
    let cost = move |it: &[usize]| {
        let mut sum = 0.0;
        for a in 0..10 {
            sum += 0.3 * hash(seed, &[a, it[a]]);
            for b in 0..a {
                if hash(seed ^ 2, &[a, b]) < 0.3 {
                    sum += 0.5 * hash(seed, &[a, b, it[a], it[b]]);
                }
            }
        }
        sum
    };
    let risk =
        move |it: &[usize]| hash(seed ^ 3, &it[..3]) + hash(seed ^ 4, &it[5..8]) + 0.2 * hash(seed ^ 5, it);
    synthetic("switches", seed, points, &cost, &risk)
}

/// One table of each shape.
pub(crate) fn all(seed: u64) -> Vec<Synthetic> {
    [tiles, rugged, ridge, plateaus, structures, switches].map(|it| it(seed)).into()
}
