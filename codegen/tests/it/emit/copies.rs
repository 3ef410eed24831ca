//! Asynchronous copies: what is left of them, as text, and as instructions through NVRTC.

use std::sync::Arc;

use insta::assert_snapshot;
use ir::{DType, Group, Instr, Module, Op, Scope, ThreadAxis, Value, Wait};
use tilewright_codegen::{
    device::{DeviceError, nvrtc},
    emit::emit,
};

use super::{
    build::*,
    cuda::{compile, cuda_source},
};

/// A pipeline of three slots by hand: each thread copies `lanes` elements a step ahead by two, and reads its own and
/// its neighbour's. Rows from `rows` on are zeros.
fn async_pipeline(dtype: DType, lanes: i64, rows: Option<i64>) -> Module {
    let slot = |step: ir::Index| step.floor_mod(&3.into()) * (32 * lanes);
    let copy = |step: ir::Index| {
        let value = load("A", (step.clone() * 32 + v("threadIdx_x")) * lanes + v("l"));
        let value = match rows {
            Some(rows) => {
                let cond = vec![less(step.clone() * 32 + v("threadIdx_x"), rows)];
                Value::Select(cond, Arc::new(value), Arc::new(constant(dtype, 0.0)))
            }
            None => value,
        };
        let place = at("A_shared", slot(step) + v("threadIdx_x") * lanes + v("l"));
        vectorized("l", lanes, vec![Op::from(Instr::AsyncCopy(place, value))])
    };
    let wait = |in_flight| Op::from(Instr::Wait(Wait::copies(in_flight, vec![n("A_shared")])));
    let read = |thread: ir::Index| load("A_shared", slot(v("k")) + thread * lanes + v("l"));
    let sum = add(read(v("threadIdx_x")), read((v("threadIdx_x") + 1).floor_mod(&32.into())));
    let out =
        vectorized("l", lanes, vec![store("C", (v("k") * 32 + v("threadIdx_x")) * lanes + v("l"), sum)]);
    let steady = vec![
        Op::If(vec![less(v("k"), 6)], vec![copy(v("k") + 2)]),
        Op::from(Instr::Commit(Group::CpAsync)),
        wait(2),
        Instr::barrier().into(),
        out,
        Instr::barrier().into(),
    ];
    let body = vec![
        alloc("A_shared", dtype, 3 * 32 * lanes, Scope::Shared),
        copy(0.into()),
        Op::from(Instr::Commit(Group::CpAsync)),
        copy(1.into()),
        Op::from(Instr::Commit(Group::CpAsync)),
        serial("k", 8, steady),
        wait(0),
    ];
    let args = [("A", dtype, (256 * lanes).into()), ("C+", dtype, (256 * lanes).into())];
    launched(module("async_pipeline", &[], &args, body), &[(ThreadAxis::ThreadX, 32.into())])
}

#[test]
fn copies_land_later() {
    assert_snapshot!(cuda_source(async_pipeline(DType::F16, 8, None)));
}

#[test]
fn copies_where_nothing_is_write_zeros() {
    assert_snapshot!(cuda_source(async_pipeline(DType::F32, 2, Some(200))));
}

/// What a loop that is written out adds to an address is said apart from what only threads and steps decide.
#[test]
fn copies_of_a_written_out_loop_differ_by_constants() {
    let place = at("A_shared", v("r") * 32 + v("threadIdx_x") + (v("k").floor_mod(&2.into())) * 128);
    let value = load("A", v("k") * 128 + v("threadIdx_x") * 4 + v("r"));
    let steady = vec![
        unrolled("r", 4, vec![Op::from(Instr::AsyncCopy(place, value))]),
        Op::from(Instr::Commit(Group::CpAsync)),
    ];
    let wait = Op::from(Instr::Wait(Wait::copies(0, vec![n("A_shared")])));
    let out = store("C", v("threadIdx_x"), load("A_shared", v("threadIdx_x")));
    let body = vec![
        alloc("A_shared", DType::F32, 256, Scope::Shared),
        serial("k", 8, steady),
        wait,
        Instr::barrier().into(),
        out,
    ];
    let args = [("A", DType::F32, 1024.into()), ("C+", DType::F32, 32.into())];
    let module = launched(module("rows", &[], &args, body), &[(ThreadAxis::ThreadX, 32.into())]);
    assert_snapshot!(cuda_source(module));
}

#[test]
fn before_sm_80_copies_are_stores() {
    let target = cuda("sm_75");
    let module = finish(async_pipeline(DType::F32, 1, None), &target);
    assert_snapshot!(emit(&module, &target).unwrap());
}

/// The PTX of a module for an architecture, if there is NVRTC.
fn ptx(name: &str, module: &Module, arch: &str) -> Option<String> {
    let target = cuda(arch);
    let source = emit(&finish(module.clone(), &target), &target).unwrap();
    let ir::Target::Cuda(arch) = &target else { unreachable!() };
    match nvrtc::compile(&source, name, arch, &[]) {
        Ok(it) => Some(it.ptx),
        Err(DeviceError::Missing { .. }) => {
            compile(name, module, &["sm_80"]);
            None
        }
        Err(err) => panic!("{err}\n{source}"),
    }
}

#[test]
fn nvrtc_takes_copies_of_every_width() {
    let cases = [
        (DType::F16, 2, "cp.async.ca.shared.global", ", 4"),
        (DType::F32, 1, "cp.async.ca.shared.global", ", 4"),
        (DType::F32, 2, "cp.async.ca.shared.global", ", 8"),
        (DType::F64, 1, "cp.async.ca.shared.global", ", 8"),
        (DType::U8, 16, "cp.async.cg.shared.global", ", 16"),
        (DType::Bf16, 8, "cp.async.cg.shared.global", ", 16"),
        (DType::F32, 4, "cp.async.cg.shared.global", ", 16"),
    ];
    for (dtype, lanes, instruction, bytes) in cases {
        for arch in ["sm_80", "sm_86", "sm_89", "sm_90a"] {
            for rows in [None, Some(200)] {
                let module = async_pipeline(dtype, lanes, rows);
                let Some(ptx) = ptx("copies", &module, arch) else { return };
                let copies: Vec<_> = ptx.lines().filter(|it| it.contains(".shared.global")).collect();
                assert!(copies.len() >= 3, "{ptx}");
                for copy in &copies {
                    assert!(copy.contains(instruction) && copy.contains(bytes), "{copy}");
                }
                // The conditions before the loop always hold.
                let with_size = copies.iter().filter(|it| it.matches(',').count() == 3).count();
                assert_eq!(with_size > 0, rows.is_some(), "{copies:?}");
                for word in ["cp.async.commit_group;", "cp.async.wait_group 2;", "cp.async.wait_group 0;"] {
                    assert!(ptx.contains(word), "{word}\n{ptx}");
                }
            }
        }
    }
}

/// Copies of `lanes` elements a thread to each of some buffers, which are then read back.
fn copies(buffers: &[(&str, DType)], copy: &dyn Fn(&str, DType) -> Op, wait: &[&str]) -> Module {
    let mut body: Vec<_> = buffers
        .iter()
        .map(|(name, dtype)| alloc(&format!("{name}_shared"), *dtype, 256, Scope::Shared))
        .collect();
    body.extend(buffers.iter().map(|(name, dtype)| copy(name, *dtype)));
    let buffers_waited = wait.iter().map(|it| n(it)).collect();
    body.extend([
        Op::from(Instr::Commit(Group::CpAsync)),
        Op::from(Instr::Wait(Wait::copies(0, buffers_waited))),
        Instr::barrier().into(),
    ]);
    let outputs: Vec<_> = buffers.iter().map(|(name, _)| format!("{name}_out+")).collect();
    body.extend(buffers.iter().map(|(name, _)| {
        store(
            &format!("{name}_out"),
            v("threadIdx_x"),
            load(&format!("{name}_shared"), ir::Index::from(31) - v("threadIdx_x")),
        )
    }));
    let mut args: Vec<_> = buffers.iter().map(|(name, dtype)| (*name, *dtype, 256.into())).collect();
    args.extend(outputs.iter().zip(buffers).map(|(name, (_, dtype))| (name.as_str(), *dtype, 32.into())));
    launched(module("copies", &[], &args, body), &[(ThreadAxis::ThreadX, 32.into())])
}

fn copy(name: &str, index: ir::Index) -> Op {
    Op::from(Instr::AsyncCopy(at(&format!("{name}_shared"), index.clone()), load(name, index)))
}

fn selected(module: Module) -> String {
    pass("select_copies", module, &cuda("sm_80")).to_string()
}

#[test]
fn a_copy_of_two_bytes_is_a_store_and_nobody_waits() {
    let module = copies(&[("A", DType::F16)], &|name, _| copy(name, v("threadIdx_x")), &["A_shared"]);
    assert_snapshot!(selected(module));
}

#[test]
fn waits_are_for_what_is_still_copied() {
    let buffers = [("A", DType::F16), ("B", DType::F32)];
    let module = copies(&buffers, &|name, _| copy(name, v("threadIdx_x")), &["A_shared", "B_shared"]);
    assert_snapshot!(selected(module));
}

#[test]
fn a_copy_that_nobody_waits_for_is_a_store() {
    let buffers = [("A", DType::F32), ("B", DType::F32)];
    let module = copies(&buffers, &|name, _| copy(name, v("threadIdx_x")), &["B_shared"]);
    assert_snapshot!(selected(module));
}

#[test]
fn copies_that_are_no_instruction_are_stores() {
    let four = |place: ir::Index, from: ir::Index| {
        let (mut place, mut from) = (at("A_shared", place), at("A", from));
        (place.lanes, from.lanes) = (4, 4);
        (place, Value::Load(from))
    };
    let t = || v("threadIdx_x") * 4;
    let one = constant(DType::F32, 1.0);
    let cases = [
        four(t() + 1, t()),
        four(t(), t() + 2),
        (at("A_shared", t()), add(load("A", t()), one.clone())),
        (at("A_shared", t()), Value::Select(vec![less(t(), 9)], Arc::new(load("A", t())), Arc::new(one))),
        (at("A_shared", t()), load("A_shared", t() + 1)),
        (
            at("A_shared", t()),
            Value::Select(vec![less(t(), 9)], Arc::new(load("A", t())), Arc::new(constant(DType::F32, -0.0))),
        ),
        (at("A_shared", t()), constant(DType::F32, 0.0)),
    ];
    let found = cases.map(|(place, value)| {
        let copy = Op::from(Instr::AsyncCopy(place, value));
        let text = selected(copies(&[("A", DType::F32)], &|_, _| copy.clone(), &["A_shared"]));
        let line = text.lines().find(|it| it.contains("//")).expect("a comment says why").trim().to_owned();
        assert!(!text.contains("<-") && !text.contains("wait"), "{text}");
        line
    });
    assert_snapshot!(found.join("\n"));
}

#[test]
fn a_guard_on_the_lane_leaves_single_elements() {
    let i = v("threadIdx_x") * 8 + v("l");
    let guarded = |name: &str, _| {
        vectorized("l", 8, vec![Op::If(vec![less(i.clone(), 203)], vec![copy(name, i.clone())])])
    };
    let module = copies(&[("A", DType::F16)], &guarded, &["A_shared"]);
    compile("guarded", &module, &["sm_80", "sm_90a"]);
    assert_snapshot!(finish(module, &cuda("sm_80")).to_string());
}

#[test]
fn in_c_copies_are_stores() {
    let copy = |name: &str, _| serial("threadIdx_x", 32, vec![copy(name, v("threadIdx_x"))]);
    let module = copies(&[("A", DType::F32)], &copy, &["A_shared"]);
    let target = ir::Target::Cpu;
    assert_snapshot!(pass("select_copies", module, &target).to_string());
}
