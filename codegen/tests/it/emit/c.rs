//! Emitted C as text.

use insta::assert_snapshot;
use ir::{Module, Target};
use tilewright_codegen::emit::emit;

use super::{build::*, programs};

fn c(module: Module) -> String {
    emit(&finish(module, &Target::Cpu), &Target::Cpu).unwrap()
}

#[test]
fn a_register_tile_becomes_variables() {
    assert_snapshot!(c(programs::tiled_matmul(64, 32, (2, 2, 4), false)));
}

#[test]
fn a_parallel_loop_becomes_a_function() {
    assert_snapshot!(c(programs::tiled_matmul(64, 32, (2, 1, 4), true)));
}

#[test]
fn a_guard_on_the_lane_splits_the_vector() {
    assert_snapshot!(c(programs::guarded_axpy()));
}

#[test]
fn negative_dividends_round_down() {
    assert_snapshot!(c(programs::padded()));
}

#[test]
fn narrow_floats_compute_in_f32() {
    assert_snapshot!(c(programs::narrow_floats(4)));
}

#[test]
fn loops_that_are_not_lanes_say_why() {
    assert_snapshot!(c(programs::not_lanes()));
}
