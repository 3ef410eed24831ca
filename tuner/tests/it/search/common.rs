//! The shipped matrix product and its schedules.

use indexmap::IndexMap;
use ir::{Arch, Target};
use schedule::{Step, workload::Param};
use tilewright_tuner::build::Problem;

pub(crate) const MATMUL: &str = include_str!("../../../../workloads/matmul/matmul.ron");

pub(crate) fn hopper() -> Target {
    Target::Cuda(Arch::parse("sm_90a").unwrap())
}

pub(crate) fn matmul(params: &IndexMap<String, Param>) -> Problem {
    let func = schedule::workload::parse(MATMUL).unwrap().instantiate(params).unwrap();
    Problem::new(func, IndexMap::new(), 1, hopper()).unwrap()
}

/// The value of every parameter.
pub(crate) fn complete(params: &IndexMap<String, Param>) -> IndexMap<String, Param> {
    schedule::workload::parse(MATMUL).unwrap().complete(params).unwrap()
}

pub(crate) fn steps(texts: &[&str]) -> Vec<Step> {
    texts.iter().map(|it| Step::from_ron(it).unwrap()).collect()
}
