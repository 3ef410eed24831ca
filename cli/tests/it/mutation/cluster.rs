//! Kernels of clusters in which blocks hear less of each other, one thing at a time, and what is said of each: by the proofs about
//! phases, and by the virtual GPU.

use std::{fmt::Write as _, path::Path};

use codegen::lower::{LowerError, PASSES, Pass, State, lower};
use indexmap::IndexMap;
use ir::{
    Arrival, BulkCopy, BulkKind, Coded, Index, Instr, Kernel, Mbarriers, Module, Name, Op, Target,
    ThreadAxis, Tile, axis_var,
};

use super::{
    caught,
    kernels::{Subject, run, scheduled},
};

/// The scripts of `tests/scripts`, with `m`, `n` and `k`: slots are filled again, and where the grid stays, it has more tiles than clusters.
const SCRIPTS: [(&str, [i64; 3]); 5] = [
    ("cluster_columns", [8, 272, 328]),
    // Tiles of fewer steps than there are slots, and of more.
    ("cluster_ping_pong", [136, 200, 72]),
    ("cluster_ping_pong", [136, 200, 264]),
    ("cluster_rows", [40, 8, 328]),
    ("cluster_square", [40, 200, 264]),
];

/// The pass that proves things about phases; mutants are made of what it sees.
const PROOFS: &str = "check_phases";

/// A kernel that lacks something.
struct Mutant {
    /// What was done to it.
    name: String,
    /// Whether it lacks a wait, at the end, of which another one may take the place: those who arrive for a slot come after those who
    /// arrive for the one before it, being the same threads or by their turn.
    is_covered: bool,
    module: Module,
}

/// A module after some passes.
fn passed<'a>(
    module: &Module,
    target: &Target,
    mut passes: impl Iterator<Item = &'a Pass>,
) -> Result<Module, LowerError> {
    let state = passes.try_fold(State::Module(module.clone()), |state, pass| pass.run(state, target))?;
    match state {
        State::Module(module) => Ok(module),
        State::Func(_) => unreachable!("a module stays one"),
    }
}

#[test]
fn every_mutant_of_a_cluster_is_caught() {
    let (mut told, mut survivors) = (String::new(), vec![]);
    for (name, [m, n, k]) in SCRIPTS {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/scripts/{name}.ron"));
        let (func, after, target) = scheduled(&path, &[("m", m), ("n", n), ("k", k)]);
        let mut seen = None;
        let module = lower(&after, &target, &mut |pass, state| match state {
            State::Module(it) if pass.name == PROOFS => seen = Some(it.clone()),
            State::Module(_) | State::Func(_) => {}
        });
        let runs = vec![run(&func, &IndexMap::new())];
        let subject = Subject { name: name.to_owned(), module: module.unwrap(), runs };
        assert_eq!(caught(&subject, &subject.module), None, "{name}");
        let all = mutants(&seen.unwrap());
        writeln!(told, "{name} m={m} n={n} k={k}: {} mutants", all.len()).unwrap();
        for Mutant { name: mutant, is_covered, module } in all {
            let proof = Pass::find(PROOFS).unwrap().run(State::Module(module.clone()), &target).err();
            let later = PASSES.iter().skip_while(|it| it.name != PROOFS).skip(1);
            let found = caught(&subject, &passed(&module, &target, later).unwrap());
            if proof.is_none() && found.is_none() && !is_covered {
                survivors.push(format!("{name}: {mutant}"));
            }
            let proof = proof.map_or_else(|| "nothing".to_owned(), |it| format!("{}: {it}", it.code()));
            writeln!(
                told,
                "  {mutant}\n    proofs: {proof}\n    virtual GPU: {}",
                found.unwrap_or("nothing")
            )
            .unwrap();
        }
    }
    assert!(survivors.is_empty(), "nobody misses these:\n{}\n{told}", survivors.join("\n"));
    insta::assert_snapshot!(told);
}

/// All mutants of the kernel of a module.
fn mutants(module: &Module) -> Vec<Mutant> {
    let kernel = &module.kernels[0];
    let mut out = vec![];
    let mut add = |name: String, is_covered: bool, kernel: Kernel| {
        let module = Module { kernels: vec![kernel], ..module.clone() };
        out.push(Mutant { name, is_covered, module });
    };
    for (name, it) in &kernel.mbarriers {
        let mut along = vec![];
        for op in &kernel.body {
            op.each_instr(&mut |instr| match instr {
                Instr::Arrive(it) if it.barrier == *name => along.clone_from(&it.along),
                _ => {}
            });
        }
        let blocks = kernel.blocks_along(&along);
        if blocks > 1 {
            let arrivals = it.arrivals / blocks;
            let mut with = kernel.clone();
            with.mbarriers[name] = Mbarriers { arrivals, ..it.clone() };
            add(format!("{name} counts the {arrivals} arrivals of one block"), false, with);
        }
    }
    for (name, is_covered, body) in variants(module, &kernel.body, false) {
        add(name, is_covered, Kernel { body, ..kernel.clone() });
    }
    out
}

/// A list with one statement less, or one that fewer blocks hear of; and whether it is a wait that another one covers.
fn variants(module: &Module, ops: &[Op], in_loop: bool) -> Vec<(String, bool, Vec<Op>)> {
    let mut out = vec![];
    for (at, op) in ops.iter().enumerate() {
        let replaced = |with: Vec<Op>| [&ops[..at], &with, &ops[at + 1..]].concat();
        if let Op::Instr(it, origin) = op {
            let waited = waits_for(op);
            if is_heard_elsewhere(it) || waited.is_some() {
                let again = ops.get(at + 1).and_then(waits_for);
                let is_covered = !in_loop && waited.is_some() && waited == again;
                out.push((format!("without `{}`", words(it)), is_covered, replaced(vec![])));
            }
            for with in changed(module, it, &ops[at + 1..]) {
                let what = format!("`{}` as `{}`", words(it), words(&with));
                out.push((what, false, replaced(vec![Op::Instr(with, origin.clone())])));
            }
        }
        let in_loop = in_loop || matches!(op, Op::For(_));
        for (what, is_covered, body) in variants(module, op.children(), in_loop) {
            let around = op.clone().map_children(&mut |_| body.clone());
            out.push((what, is_covered, replaced(vec![around])));
        }
    }
    out
}

/// The mbarriers that a statement waits for.
fn waits_for(op: &Op) -> Option<&Name> {
    match op {
        Op::Instr(Instr::Await(it), _) => Some(&it.barrier),
        _ => None,
    }
}

/// An instruction as the text has it, without where it comes from.
fn words(it: &Instr) -> String {
    Op::from(it.clone()).to_string().trim_end().to_owned()
}

/// Whether it does something in other blocks of the cluster.
fn is_heard_elsewhere(it: &Instr) -> bool {
    match it {
        Instr::Arrive(it) => !it.along.is_empty(),
        Instr::Bulk(it) => matches!(it.kind, BulkKind::Load { along: Some(_), .. }),
        _ => false,
    }
}

/// What may stand in the place of an instruction, before these.
fn changed(module: &Module, it: &Instr, then: &[Op]) -> Vec<Instr> {
    match it {
        Instr::Arrive(it @ Arrival { bytes: Some(bytes), .. }) => {
            let own = Index::int(own_bytes(module, it, then));
            let with = Instr::Arrive(Arrival { bytes: Some(own.clone()), ..it.clone() });
            if own == *bytes { vec![] } else { vec![with] }
        }
        Instr::Arrive(it) => {
            let along = |along: Vec<ThreadAxis>| Instr::Arrive(Arrival { along, ..it.clone() });
            // In none of the others, or in those along one axis less.
            let fewer = (0..it.along.len()).map(|n| [&it.along[..n], &it.along[n + 1..]].concat());
            let none = (it.along.len() > 1).then(Vec::new);
            fewer.chain(none).map(along).collect()
        }
        Instr::Bulk(it) => match &it.kind {
            BulkKind::Load { barrier, slot, along: Some(axis), .. } => {
                let to = |along: Option<ThreadAxis>| {
                    let kind = BulkKind::Load {
                        barrier: barrier.clone(),
                        slot: slot.clone(),
                        along,
                        at_first: false,
                    };
                    Instr::Bulk(BulkCopy { kind, ..it.clone() })
                };
                let launch = module.kernels[0].launch.keys().copied();
                let others = launch.filter(|it| it.is_cluster() && it != axis).map(Some);
                // Each block puts its part where the first one does.
                let place = |name: &Name| (*name == axis_var(*axis)).then(|| Index::int(0));
                let first = it.shared.first.map_indices(&mut |it| it.subst(&place));
                let shared = Tile { first, ..it.shared.clone() };
                let moved = Instr::Bulk(BulkCopy { shared, ..it.clone() });
                [None].into_iter().chain(others).map(to).chain([moved]).collect()
            }
            _ => vec![],
        },
        _ => vec![],
    }
}

/// The bytes that the block itself copies for the phase that an arrival opens.
fn own_bytes(module: &Module, arrival: &Arrival, then: &[Op]) -> i64 {
    let mut bytes = 0;
    let mut count = |it: &BulkCopy| {
        let is_meant = matches!(&it.kind, BulkKind::Load { barrier, .. } if *barrier == arrival.barrier);
        let element = module.args[&it.global.buffer].dtype.bytes_i64();
        bytes += it.shared.extents.iter().product::<i64>() * element * i64::from(is_meant);
    };
    for op in then {
        op.each_instr(&mut |it| {
            if let Instr::Bulk(it) = it {
                count(it);
            }
        });
    }
    bytes
}
