//! Steps that have nothing to do with each other, in any order.
//!
//! A script in `tests/scripts` may have comments `// chain` among its steps. Those up to the first come first; each chain
//! keeps its own order, and between the chains there is none. `TILEWRIGHT_SEED` chooses other orders.

use std::fs;

use schedule::Step;

use super::scripts::{cases, folder};

/// How many orders of each script are tried.
const ORDERS: usize = 40;

/// Random numbers: splitmix64.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % end as u64).unwrap()
    }

    /// The steps of all chains, the first one's before all others.
    fn order(&mut self, chains: &[Vec<Step>]) -> Vec<Step> {
        let (first, others) = chains.split_first().unwrap();
        let mut left: Vec<_> = others.iter().map(|it| it.iter()).collect();
        let mut out = first.clone();
        while !left.is_empty() {
            let at = self.below(left.len());
            match left[at].next() {
                Some(step) => out.push(step.clone()),
                None => drop(left.remove(at)),
            }
        }
        out
    }
}

#[test]
fn steps_of_different_chains_come_in_any_order() {
    let mut random = Random(std::env::var("TILEWRIGHT_SEED").map_or(1, |it| it.parse().unwrap()));
    let mut scripts = 0;
    let mut paths: Vec<_> = fs::read_dir(folder()).unwrap().map(|it| it.unwrap().path()).collect();
    paths.sort();
    for path in paths {
        let text = fs::read_to_string(&path).unwrap();
        if !text.contains("// chain\n") {
            continue;
        }
        scripts += 1;
        for case in cases(&path) {
            let mut chains: Vec<Vec<Step>> = vec![];
            for step in case.steps() {
                let chain = text[..step.span.start].matches("// chain\n").count();
                chains.resize(chains.len().max(chain + 1), vec![]);
                chains[chain].push(step.value);
            }
            for _ in 0..ORDERS {
                let scheduled = case.schedule_steps(random.order(&chains));
                case.lower(&scheduled.after, &scheduled.target);
            }
        }
    }
    assert!(scripts >= 3, "{scripts} scripts have chains");
}
