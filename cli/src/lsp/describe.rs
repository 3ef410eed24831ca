//! Loops, blocks and buffers in words, and the part of a program that they stand in.

use ir::{Block, Buffer, Func, Loop, LoopKind, Name, Role, Stmt};
use schedule::Thing;

/// The most lines of a program that are shown at once.
const MOST_LINES: usize = 60;

/// What a name means in a program, where a thing of that sort is looked for before others.
pub(super) fn describe(func: &Func, name: &Name, thing: Option<Thing>) -> Option<String> {
    let of_loop = || func.find_loop(name).map(loop_words);
    let of_block = || func.find_block(name).map(|it| block_words(func, it));
    let of_buffer = || func.buffers.get(name).map(|it| buffer_words(name, it));
    let wanted = match thing {
        Some(Thing::Loop) => of_loop(),
        Some(Thing::Block) => of_block(),
        Some(Thing::Buffer) => of_buffer(),
        Some(_) | None => None,
    };
    wanted.or_else(of_loop).or_else(of_block).or_else(of_buffer)
}

/// `loop i: 1024 iterations, bound to blockIdx.x`.
fn loop_words(it: &Loop) -> String {
    let how = match it.kind {
        LoopKind::Serial => String::new(),
        LoopKind::Parallel => ", parallel".to_owned(),
        LoopKind::Vectorized => ", vectorized".to_owned(),
        LoopKind::Unrolled => ", unrolled".to_owned(),
        LoopKind::Bound(axis) => format!(", bound to {}", axis.as_str()),
    };
    let iterations = if it.extent.as_int() == Some(1) { "iteration" } else { "iterations" };
    let blocks: Vec<_> = it.body.blocks().iter().map(|it| format!("`{}`", it.name)).collect();
    format!("**loop** `{}`: {} {iterations}{how}; around {}", it.var, it.extent, blocks.join(", "))
}

fn block_words(func: &Func, block: &Block) -> String {
    let name = &block.name;
    let names = |all: Vec<&ir::Access>| {
        let mut names: Vec<_> = all.into_iter().map(|it| format!("`{}`", it.buffer)).collect();
        names.sort();
        names.dedup();
        if names.is_empty() { "nothing".to_owned() } else { names.join(", ") }
    };
    let loops = func.loops_of(name).expect("the block was found in the program");
    let loops: Vec<_> = loops.iter().map(|it| format!("`{}`", it.var)).collect();
    let within = if loops.is_empty() { "no loop".to_owned() } else { loops.join(", ") };
    format!(
        "**block** `{name}`: reads {}, writes {}; in {within}",
        names(block.reads()),
        names(block.writes())
    )
}

fn buffer_words(name: &Name, it: &Buffer) -> String {
    let role = match it.role {
        Role::Input => "an input",
        Role::Output => "an output",
        Role::Temp => "a temporary",
    };
    let shape: Vec<_> = it.shape.iter().map(ToString::to_string).collect();
    format!("**buffer** `{name}`: {}[{}] in {} memory, {role}", it.dtype, shape.join(", "), it.scope.as_str())
}

/// The outermost loops and blocks that names stand in, as the text form prints them; all of a program if there are no names.
pub(super) fn nest(func: &Func, names: &[Name]) -> String {
    let outermost = match &func.body {
        Stmt::Seq(stmts) => stmts.as_slice(),
        it @ (Stmt::Loop(_) | Stmt::Block(_) | Stmt::Store(_) | Stmt::Instr(_)) => std::slice::from_ref(it),
    };
    let kept = outermost.iter().filter(|it| names.is_empty() || names.iter().any(|name| mentions(it, name)));
    let shown = Func { body: Stmt::seq(kept.cloned()), buffers: ir::Buffers::default(), ..func.clone() };
    let text = ir::text::print(&shown).text;
    // The first line names the program, and those behind it are inside.
    let lines: Vec<_> = text.lines().skip(1).map(|it| it.strip_prefix("  ").unwrap_or(it)).collect();
    let more = lines.len().saturating_sub(MOST_LINES);
    let rest = if more > 0 { format!("\n… {more} lines more") } else { String::new() };
    format!("```tilewright\n{}{rest}\n```", lines[..lines.len() - more].join("\n"))
}

fn mentions(stmt: &Stmt, name: &Name) -> bool {
    let mut found = false;
    stmt.walk(&mut |it| match it {
        Stmt::Loop(it) => found |= it.var == *name,
        Stmt::Block(it) => {
            let touched = it.reads().into_iter().chain(it.writes());
            found |= it.name == *name || touched.into_iter().any(|it| it.buffer == *name);
        }
        Stmt::Seq(_) | Stmt::Store(_) | Stmt::Instr(_) => {}
    });
    found
}

/// The names of a sort that a program has.
pub(super) fn names_of(func: &Func, thing: Thing) -> Vec<Name> {
    match thing {
        Thing::Loop => func.loops().iter().map(|it| it.var.clone()).collect(),
        Thing::Block => func.body.blocks().iter().map(|it| it.name.clone()).collect(),
        Thing::Buffer => func.buffers.keys().cloned().collect(),
        _ => vec![],
    }
}
