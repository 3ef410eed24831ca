//! What follows from few statements can be reckoned by hand.

use super::{Bound, Candidate, Resource, assess, candidates};
use crate::{Arch, Func, Name, pipeline::PipelineError, text};

/// A tile of 64 rows and columns that 256 threads multiply, so many steps of k at a time.
fn product(steps: i64) -> Func {
    let (trips, rows) = (4096 / steps, steps / 4);
    let source = format!(
        "
func product()
  in A: f32[4096, 4096]
  in B: f32[4096, 4096]
  out C: f32[4096, 4096]
  temp A_shared: f32[4096, 4096] @shared
  temp B_shared: f32[4096, 4096] @shared
  temp sums: f32[4096, 4096] @local

  for by in 0..64 @blockIdx.y
    for bx in 0..64 @blockIdx.x
      for ty in 0..16 @threadIdx.y
        for tx in 0..16 @threadIdx.x
          for ko in 0..{trips}
            for ar in 0..{rows} @unrolled
              for ay in 0..16 @threadIdx.y
                for ax in 0..16 @threadIdx.x
                  block A_shared(i: 4096 = by*64 + (ar*256 + ay*16 + ax) floordiv {steps}, k: 4096 = ko*{steps} + (ar*256 + ay*16 + ax) mod {steps})
                    A_shared[i, k] = A[i, k]
            for br in 0..{rows} @unrolled
              for bty in 0..16 @threadIdx.y
                for btx in 0..16 @threadIdx.x
                  block B_shared(k_1: 4096 = ko*{steps} + (br*256 + bty*16 + btx) floordiv 64, j: 4096 = bx*64 + (br*256 + bty*16 + btx) mod 64)
                    B_shared[k_1, j] = B[k_1, j]
            for ki in 0..{steps}
              for im in 0..4 @unrolled
                for jm in 0..4 @unrolled
                  block sums(i_1: 4096 = by*64 + ty*4 + im, j_1: 4096 = bx*64 + tx*4 + jm, k_2: reduce 4096 = ko*{steps} + ki)
                    init
                      sums[i_1, j_1] = 0.0f32
                    sums[i_1, j_1] = sums[i_1, j_1] + A_shared[i_1, k_2] * B_shared[k_2, j_1]
          for ci in 0..4
            for cj in 0..4
              block C(i_2: 4096 = by*64 + ty*4 + ci, j_2: 4096 = bx*64 + tx*4 + cj)
                C[i_2, j_2] = sums[i_2, j_2]
"
    );
    text::parse(&source).unwrap()
}

fn arch() -> Arch {
    Arch::parse("sm_80").unwrap()
}

fn of(func: &Func, most_slots: i64) -> Result<Vec<Candidate>, PipelineError> {
    candidates(func, &Name::new("ko"), &arch(), most_slots)
}

#[test]
fn copies_run_as_far_ahead_as_their_latency_asks() {
    for steps in [8, 16, 32] {
        let best = of(&product(steps), 16).unwrap().remove(0);
        let latency = best.reason.latency.unwrap();
        assert!(
            best.reason.ahead as f64 >= (latency / best.reason.interval).floor(),
            "{steps}: {}",
            best.reason
        );
        assert_eq!(best.asynchronous, ["A_shared", "B_shared"].map(Name::new), "{steps}");
    }
}

#[test]
fn no_ring_has_more_slots_than_allowed() {
    let func = product(16);
    for it in of(&func, 2).unwrap() {
        let stages: Vec<_> = it.stages.values().copied().collect();
        assert!(stages[2] - stages[0] <= 2, "{stages:?}");
    }
    let err = of(&func, 0).unwrap_err();
    assert!(matches!(err, PipelineError::NotWorkedOut { .. }), "{err}");
}

#[test]
fn what_is_found_is_assessed_alike() {
    let func = product(16);
    for it in of(&func, 16).unwrap() {
        let mut annotated = func.clone();
        super::candidate::annotate(&mut annotated, &Name::new("ko"), &it);
        let again = assess(&annotated, &Name::new("ko"), &arch()).unwrap().unwrap();
        assert!((again.cycles - it.reason.cycles).abs() < 1.0, "{again}, and {}", it.reason);
    }
}

/// 64 rows and columns in 16 steps are 65536 products, of which a multiprocessor does 64 in a cycle.
#[test]
fn the_busiest_part_bounds_the_interval() {
    let best = of(&product(16), 16).unwrap().remove(0);
    assert!(matches!(best.reason.bound, Bound::Resource(_) | Bound::Latency), "{}", best.reason);
    assert!(best.reason.interval >= 65_536.0 / 64.0, "{}", best.reason);
    assert_ne!(best.reason.bound, Bound::Resource(Resource::Tensor));
}

#[test]
fn work_that_is_not_known_is_refused() {
    let source = "
func copied(n)
  in A: f32[8, n]
  out C: f32[8, n]
  temp B: f32[8, n] @shared

  for k in 0..8
    for i in 0..n
      block B(v: 8 = k, w: n = i)
        B[v, w] = A[v, w]
    for j in 0..n
      block C(v_1: 8 = k, w_1: n = j)
        C[v_1, w_1] = B[v_1, w_1]
";
    let func = text::parse(source).unwrap();
    let err = candidates(&func, &Name::new("k"), &arch(), 16).unwrap_err();
    assert!(matches!(err, PipelineError::NotWorkedOut { .. }), "{err}");
}
