//! Schedules written in Rust make the programs of the scripts that ship, and what is refused reads as on the command line.

#![expect(clippy::unwrap_used, reason = "a test may stop")]

use ir::{Arch, Target};
use schedule::{procedure::Definitions, script::Script};
use tilewright::{Argument, Arguments, Diagnostic, Plan, Schedule, schedule::primitive::CacheRead};

/// Every script that ships with its name: rungs, spaces, and the examples of procedures.
fn scripts() -> Vec<(String, String)> {
    let find = |name: &str, _: &str| {
        let it = workloads::find_library(name).ok_or("it does not ship")?;
        Ok((it.name.to_owned(), it.text.to_owned()))
    };
    let rungs = workloads::ladders().iter().flat_map(|it| it.rungs);
    let mut out: Vec<_> = rungs.map(|it| (it.name.to_owned(), it.text.to_owned())).collect();
    out.extend(workloads::spaces().iter().map(|it| (it.name.to_owned(), it.text.to_owned())));
    for library in workloads::libraries() {
        let definitions = Definitions::of_library(library.name, library.text, &find).unwrap();
        out.extend(definitions.own().map(|it| (it.name.to_string(), it.example.clone().unwrap())));
    }
    out
}

#[test]
fn scripts_that_ship_are_schedules_in_rust() {
    let mut count = 0;
    for (name, text) in scripts() {
        let plan = Plan::parse(name.as_ref(), &text, &[]).unwrap();
        let target = plan.target(None, None);
        let session = plan.schedule(&target, None).unwrap();
        let expanded = tilewright::expand(name.as_ref(), &text).unwrap();
        let script = Script::parse(&expanded).unwrap();
        let made = Schedule::with_params(&script.workload.value, script.params.value, target);
        let mut made = made.unwrap_or_else(|err| panic!("{name}: {err}"));
        for step in session.trace() {
            made.apply(step).unwrap_or_else(|err| panic!("{name}: {err}"));
        }
        assert_eq!(made.func(), session.func(), "{name}");
        assert_eq!(made.steps().count(), session.trace().count(), "{name}");
        count += 1;
    }
    assert!(count > 50, "{count}");
}

#[test]
fn procedures_are_called_as_scripts_call_them() {
    let script = r#"schedule(
        use: ["std/mma"], workload: "matmul", target: "cuda:sm_80",
        params: {"m": 32, "n": 32, "k": 32, "dtype": "f16", "out": "f16"},
        steps: [
            mma_tile(block: "C_acc", inline: ["C_acc_unpad"], m: 32, n: 16, k: 32, warps_m: 2, warps_n: 1),
            bind(loop: "by", axis: "blockIdx.y"),
            bind(loop: "bx", axis: "blockIdx.x"),
            mma_fetch(y: 1, z: 2),
            mma_products(block: "C_acc", intrin: "mma_m16n8k16_f16_f32"),
            mma_store(block: "C", at: "bx", n: 16, y: 1, z: 2),
        ],
    )"#;
    let plan = Plan::parse("script.ron".as_ref(), script, &[]).unwrap();
    let target = Target::Cuda(Arch::parse("sm_80").unwrap());
    let expected = plan.schedule(&target, None).unwrap();

    let made = in_rust(target).unwrap();
    assert_eq!(made.func(), expected.func());
    // The script that it stands for needs no library.
    assert!(!made.script().contains("use:"));
    assert_eq!(made.plan().unwrap().schedule(&plan.target(None, None), None).unwrap().func(), made.func());
}

fn in_rust(target: Target) -> Result<Schedule, Diagnostic> {
    let params = Script::parse(
        r#"(workload: "", params: {"m": 32, "n": 32, "k": 32, "dtype": "f16", "out": "f16"}, steps: [])"#,
    );
    let mut made = Schedule::with_params("matmul", params.unwrap().params.value, target)?;
    let tile = Arguments::new().with("block", "C_acc").with("inline", ["C_acc_unpad"]);
    let tile = tile.with("m", 32).with("n", 16).with("k", 32).with("warps_m", 2).with("warps_n", 1);
    made.use_library("std/mma")?.call("mma_tile", &tile)?;
    made.bind("by", "blockIdx.y")?.bind("bx", "blockIdx.x")?;
    let threads = || Arguments::new().with("y", 1).with("z", 2);
    made.call("mma_fetch", &threads())?;
    let products = Arguments::new().with("block", "C_acc").with("intrin", "mma_m16n8k16_f16_f32");
    made.call("mma_products", &products)?;
    made.call("mma_store", &threads().with("block", "C").with("at", "bx").with("n", 16))?;
    Ok(made)
}

#[test]
fn refusals_point_at_the_step_and_change_nothing() {
    let mut made = Schedule::new("matmul", [("m", 32), ("n", 64), ("k", 20)], Target::Cpu).unwrap();
    let before = made.to_string();
    let mut refused = vec![
        made.reorder(["i", "kk"]).unwrap_err(),
        made.parallel("k").unwrap_err(),
        made.split("i", [("a", None), ("a", Some(4))]).unwrap_err(),
        made.apply(CacheRead::new("C", "A", "shared").with_readers(["D"])).unwrap_err(),
        made.call("cpu_tile", &Arguments::new()).unwrap_err(),
        made.use_library("std/cpuu").unwrap_err(),
    ];
    made.use_library("std/cpu").unwrap();
    let odd = Argument::Map(vec![("a\"b".to_owned(), true.into())]);
    refused.push(made.call("cpu_tile", &Arguments::new().with("rows", odd)).unwrap_err());
    // Some steps of the procedure are done before one is refused.
    let tile = Arguments::new().with("block", "C").with("out", "C_local").with("rows", 8).with("columns", 16);
    refused.push(made.call("cpu_tile", &tile).unwrap_err());
    assert_eq!(made.to_string(), before);
    assert_eq!(made.steps().count(), 0);
    let texts: Vec<_> = refused.iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(texts.join("\n"));
}
