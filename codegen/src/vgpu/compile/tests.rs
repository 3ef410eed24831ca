//! Sites and lines.

use std::sync::Arc;

use indexmap::IndexMap;
use ir::{For, ForKind, Origin, Value};

use super::*;

/// Sites know the lines of the printed kernel.
#[test]
fn sites_know_their_lines() {
    let store = Op::from(Instr::Store(
        Access::new(&"X".into(), vec![Index::int(0)]),
        Value::load(&"X".into(), vec![Index::int(1)]),
    ));
    let inner = Op::For(Arc::new(For {
        var: "i".into(),
        extent: Index::int(4),
        kind: ForKind::Serial,
        counters: vec![],
        independent: ir::Independence::Unknown,
        body: vec![Op::comment("two\nlines", Origin::default()), store.clone(), Instr::barrier().into()],
    }));
    let kernel = Kernel {
        body: vec![
            Op::Alloc(ir::Alloc::new("X".into(), DType::F32, 4, Space::Shared)),
            inner,
            Op::comment("one", Origin::default()),
            Op::If(vec![], vec![Op::from(Instr::Commit(Group::CpAsync))]),
            store,
        ],
        ..Kernel::new("k".into(), IndexMap::new())
    };
    let module = Module { name: "m".into(), dims: vec![], args: IndexMap::new(), kernels: vec![] };
    let program = Program::new(&module, &kernel, &HashMap::new(), &[], &Arc::default()).unwrap();
    let lines: Vec<_> = program.sites.iter().map(|it| program.lines[it.line - 1].as_str()).collect();
    let stored = "X[0] = X[1]";
    assert_eq!(
        lines,
        ["alloc X: f32[4] @shared", "for i in 0..4", stored, "barrier", "if true", "commit", stored]
    );
    assert_eq!(program.sites[2].loops, [("i".into(), 2)]);
}
