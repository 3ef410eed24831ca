//! The function and its buffers.

use std::fmt::Write;

use ir::{Buffer, Layout, Name, Role, Scope};

use super::{Unwritable, expr::Printer, other_words, quoted, tuple, word};
use crate::tvm::read::{BELOW, LAYOUT, NAMES, TOLERANCE, dtype_word};

/// Writes everything above the statements.
pub(super) fn write(printer: &Printer<'_>, out: &mut String) -> Result<(), Unwritable> {
    let func = printer.func;
    let is_param = |it: &(&Name, &Buffer)| it.1.role != Role::Temp;
    let params: Vec<_> = func.buffers.iter().filter(is_param).collect();
    // Where sizes are open, they are declared before the shapes that speak of them.
    let is_open = !func.dims.is_empty();
    let mut heads = vec![];
    for (name, buffer) in &params {
        heads.push(if is_open {
            format!("var_{name}: T.handle")
        } else {
            format!("{}: T.Buffer({})", word(name), declared(printer, name, buffer)?)
        });
    }
    line(out, 0, &format!("def {}({}):", word(&func.name), heads.join(", ")));
    attributes(printer, out);
    for dim in &func.dims {
        line(out, 1, &format!("{} = T.int32()", word(dim)));
    }
    for (name, buffer) in params.iter().filter(|_| is_open) {
        let declared = declared(printer, name, buffer)?;
        line(out, 1, &format!("{} = T.match_buffer(var_{name}, {declared})", word(name)));
    }
    for (name, buffer) in func.buffers.iter().filter(|it| !is_param(it)) {
        let declared = declared(printer, name, buffer)?;
        let scope = match buffer.scope {
            Scope::Global => String::new(),
            scope => format!(", scope={}", quoted(scope.as_str())),
        };
        line(out, 1, &format!("{} = T.sblock_alloc_buffer({declared}{scope})", word(name)));
    }
    Ok(())
}

fn declared(printer: &Printer<'_>, name: &Name, buffer: &Buffer) -> Result<String, Unwritable> {
    let printer = printer.about(name);
    let dtype = dtype_word(buffer.dtype)
        .ok_or_else(|| printer.unwritable(format!("TVM has no elements of type {}", buffer.dtype)))?;
    let shape = buffer.shape.iter().map(|it| printer.index(it)).collect::<Result<Vec<_>, _>>()?;
    Ok(format!("{}, {}", tuple(&shape), quoted(dtype)))
}

/// What is true of the whole program, and of buffers, that TVM has no words for.
fn attributes(printer: &Printer<'_>, out: &mut String) {
    let func = printer.func;
    let mut entries = vec![];
    if let Some(tolerance) = func.tolerance {
        entries.push(format!("{}: T.float64({:?})", quoted(TOLERANCE), tolerance.to_f64()));
    }
    let mut layouts = vec![];
    let mut bounds = vec![];
    for (name, buffer) in &func.buffers {
        // Alignments are annotations of the block that writes the buffer.
        let rest = Layout { align: vec![], ..buffer.layout.clone() };
        if rest != Layout::default() {
            layouts.push(format!("{}: {}", quoted(name.as_str()), quoted(rest.to_string().trim())));
        }
        if let Some(Ok(below)) = buffer.below.as_ref().map(|it| printer.index(it)) {
            bounds.push(format!("{}: {}", quoted(name.as_str()), quoted(&below)));
        }
    }
    let words = other_words(func);
    let names = words.iter().map(|(word, name)| format!("{}: {}", quoted(word), quoted(name.as_str())));
    for (key, all) in [(NAMES, names.collect()), (LAYOUT, layouts), (BELOW, bounds)] {
        if !all.is_empty() {
            entries.push(format!("{}: {{{}}}", quoted(key), all.join(", ")));
        }
    }
    if !entries.is_empty() {
        line(out, 1, &format!("T.func_attr({{{}}})", entries.join(", ")));
    }
}

/// Adds a line.
pub(super) fn line(out: &mut String, depth: usize, text: &str) {
    writeln!(out, "{:1$}{text}", "", depth * 4).expect("writing to a string does not fail");
}
