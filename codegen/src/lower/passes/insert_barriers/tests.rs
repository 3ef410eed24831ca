//! Random kernels: with the barriers that are inserted the virtual GPU finds nothing, and without any one of them it
//! does.

mod generate;
mod random;

use std::collections::BTreeSet;

use indexmap::IndexMap;
use ir::{
    Arch, Index, Instr, Module, Name, Op, Origin, Participants, Scope, Target, ThreadAxis, WarpRole,
    axis_var,
    intrin::{WARP, WARPGROUP},
};

use self::random::Random;
use super::{super::flatten, insert_barriers};
use crate::lower::Context;
use crate::vgpu::{self, Settings, ThreadOrder};

/// How many kernels are made.
const KERNELS: usize = 1000;

/// What is counted.
#[derive(Default, Debug)]
struct Tally {
    /// Kernels with barriers that cannot be placed: in loops that run differently often in different threads.
    refused: usize,
    kernels: usize,
    barriers: usize,
    /// Barriers without which the virtual GPU finds a race.
    needed: usize,
    /// Kernels with a race if there is no barrier at all.
    exchange: usize,
    unproved: usize,
}

#[test]
fn barriers_are_enough_and_needed() {
    let seed = std::env::var("TILEWRIGHT_SEED").ok().and_then(|it| it.parse().ok());
    let mut random = Random(seed.unwrap_or(3));
    let mut tally = Tally::default();
    for _ in 0..KERNELS {
        judge(generate::kernel(&mut random), &mut tally);
    }
    println!("{tally:?}");
    assert!(tally.refused * 10 < KERNELS, "{tally:?}");
    assert!(tally.exchange * 2 > KERNELS && tally.barriers > KERNELS, "{tally:?}");
    assert_eq!(tally.unproved, 0, "{tally:?}");
    assert!(tally.needed * 100 >= tally.barriers * 98, "{tally:?}");
}

/// The same kernels for two warpgroups of a role: dependences between them are served by barriers of the role, those within one by its own.
#[test]
fn barriers_of_warpgroups_are_enough() {
    let [of_role, of_groups] = barriers(7, in_role, [Participants::Role, Participants::Warpgroup]);
    assert!(of_role > 50 && of_groups > 50, "{of_role} {of_groups}");
}

/// The same for two warps of a block.
#[test]
fn barriers_of_warps_are_enough() {
    let [of_block, of_warps] = barriers(11, in_warps, [Participants::Block, Participants::Warp]);
    assert!(of_block > 50 && of_warps > 50, "{of_block} {of_warps}");
}

/// How many barriers of each kind random kernels get, made into ones of other threads; none of them has a finding.
fn barriers(seed: u64, made: impl Fn(Module) -> Option<Module>, kinds: [Participants; 2]) -> [usize; 2] {
    let mut random = Random(seed);
    let (mut kernels, mut counts) = (0, [0, 0]);
    for _ in 0..KERNELS {
        let Some(made) = made(generate::kernel(&mut random)) else { continue };
        let Ok(after) = insert_barriers(made) else { continue };
        kernels += 1;
        for op in &after.kernels[0].body {
            op.each_instr(&mut |it| {
                if let Instr::Barrier(it) = it {
                    counts = [0, 1].map(|at| counts[at] + usize::from(it.among == kinds[at]));
                }
            });
        }
        if let Some(found) = finding(&flat(after.clone())) {
            panic!("{found}\n{after}");
        }
    }
    println!("{kernels} kernels, {counts:?} barriers of {kinds:?}");
    assert!(kernels > 50, "{kernels}");
    counts
}

/// Whether a kernel has four times two threads.
fn has_four_by_two(module: &Module) -> bool {
    let launch = &module.kernels[0].launch;
    let is_fit = |axis, count| launch.get(&axis).and_then(Index::as_int) == Some(count);
    is_fit(ThreadAxis::ThreadX, 4) && is_fit(ThreadAxis::ThreadY, 2)
}

/// The statements of a kernel where so many lanes do what each thread along x did.
fn by_lanes(body: &[Op], each: i64) -> Vec<Op> {
    let lanes = axis_var(ThreadAxis::ThreadX);
    let team = |name: &Name| (*name == lanes).then(|| Index::var(&lanes).floor_div(&Index::int(each)));
    body.iter().map(|op| op.subst(&team)).collect()
}

/// A kernel of four times two threads with eight lanes of a warp in the place of each; none for other numbers of threads.
fn in_warps(mut module: Module) -> Option<Module> {
    if !has_four_by_two(&module) {
        return None;
    }
    let kernel = &mut module.kernels[0];
    kernel.launch.insert(ThreadAxis::ThreadX, Index::int(WARP));
    kernel.body = by_lanes(&kernel.body, WARP / 4);
    Some(module)
}

/// A kernel of four times two threads with a warp in the place of each, all of one role; none for other numbers of threads.
fn in_role(mut module: Module) -> Option<Module> {
    if !has_four_by_two(&module) {
        return None;
    }
    let kernel = &mut module.kernels[0];
    kernel.launch.retain(|axis, _| !axis.is_thread());
    let axes = IndexMap::from([(ThreadAxis::ThreadX, WARPGROUP), (ThreadAxis::ThreadY, 2)]);
    let role = Name::new("all");
    kernel.roles.insert(role.clone(), WarpRole { axes, registers: None });
    let is_shared = |op: &Op| matches!(op, Op::Alloc(it) if it.scope == Scope::Shared);
    let (memory, body): (Vec<Op>, Vec<Op>) =
        std::mem::take(&mut kernel.body).into_iter().partition(is_shared);
    kernel.body = [memory, vec![Op::Role(role, by_lanes(&body, WARP))]].concat();
    Some(module)
}

#[test]
fn kernels_are_read_back_as_they_were_printed() {
    let mut random = Random(5);
    for _ in 0..KERNELS {
        let made = generate::kernel(&mut random);
        let Ok(module) = insert_barriers(made) else { continue };
        let flat = flat(module.clone());
        let moved = module.clone().map_bodies(&mut |_, body| from_anywhere(body, &mut random));
        for module in [module, flat, moved] {
            let text = module.to_string();
            assert_eq!(ir::text::parse_module(&text).as_ref(), Ok(&module), "{text}");
        }
    }
}

/// The statements as if each instruction came from somewhere else.
fn from_anywhere(ops: Vec<Op>, random: &mut Random) -> Vec<Op> {
    const ORIGINS: [&str; 7] = [
        "",
        "C",
        "of",
        "C @ko steady 0 component 1",
        "@ko prologue 2",
        "of @of epilogue 1 @ki steady 0",
        "C @ko epilogue 0 component 12 @ki steady 1 component 0",
    ];
    let one = |op| match op {
        Op::Instr(it, _) => {
            Op::Instr(it, Origin::parse(random.pick(&ORIGINS)).expect("each of them is an origin"))
        }
        op => op.map_children(&mut |body| from_anywhere(body, random)),
    };
    ops.into_iter().map(one).collect()
}

fn flat(module: Module) -> Module {
    let target = Target::Cuda(Arch { sm: 80, suffix: None });
    flatten::flatten(module, &mut Context::new(&target)).expect("nothing here is swizzled")
}

fn judge(before: Module, tally: &mut Tally) {
    let Ok(after) = insert_barriers(before) else {
        tally.refused += 1;
        return;
    };
    let text = after.to_string();
    tally.unproved += text.matches("no proof").count();
    let after = flat(after);
    tally.kernels += 1;
    if let Some(found) = finding(&after) {
        panic!("{found}\n{text}");
    }
    let without = |which: Option<usize>| {
        let mut left = which;
        after.clone().map_bodies(&mut |_, body| cut(&body, which.is_none(), &mut left))
    };
    tally.exchange += usize::from(finding(&without(None)).is_some());
    // The first is the generator's own.
    for which in 1..count(&after) {
        tally.barriers += 1;
        if finding(&without(Some(which))).is_some() {
            tally.needed += 1;
        } else if std::env::var("TILEWRIGHT_SHOW").is_ok() {
            println!("barrier {which} is not needed in\n{text}");
        }
    }
}

/// What the virtual GPU says of a kernel, in several orders of threads and for several sizes.
fn finding(module: &Module) -> Option<String> {
    for n in [1, 2, 3, 5] {
        let order = [ThreadOrder::Forward, ThreadOrder::Reversed, ThreadOrder::Shuffled]
            [usize::try_from(n % 3).unwrap()];
        let dims = IndexMap::from([(Name::new("n"), n)]);
        let len = module.args[&Name::new("A")].elements().as_int().unwrap();
        let mut memory = IndexMap::from([(Name::new("A"), (0..len).map(|it| it as f64).collect())]);
        let settings = Settings { order, ..Settings::default() };
        let resumed = vgpu::run_on(module, &dims, &mut memory.clone(), &settings, &mut |_| {}, true).unwrap();
        let report = vgpu::run(module, &dims, &mut memory, &settings).unwrap();
        let of = |report: &vgpu::Report| -> BTreeSet<&str> {
            report.findings.iter().map(|it| it.finding.title()).collect()
        };
        assert_eq!(of(&resumed), of(&report), "both engines of the virtual GPU say the same of\n{module}");
        if let Some(it) = report.findings.first() {
            return Some(format!("n = {n}: {it}"));
        }
    }
    None
}

fn count(module: &Module) -> usize {
    let mut out = 0;
    for op in &module.kernels[0].body {
        op.walk(&mut |op| out += usize::from(matches!(op, Op::Instr(Instr::Barrier(_), _))));
    }
    out
}

/// The statements without all barriers, or without the one at a place among them.
fn cut(ops: &[Op], all: bool, which: &mut Option<usize>) -> Vec<Op> {
    let mut out = Vec::new();
    for op in ops {
        out.push(match op {
            Op::Instr(Instr::Barrier(_), _) => {
                let here = all || *which == Some(0);
                *which = which.and_then(|it| it.checked_sub(1));
                if here {
                    continue;
                }
                op.clone()
            }
            _ => op.clone().map_children(&mut |body| cut(&body, all, which)),
        });
    }
    out
}
