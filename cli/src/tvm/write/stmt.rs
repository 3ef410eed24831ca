//! Loops, blocks and stores.

use ir::{Annotation, Annotations, Block, IterKind, Loop, LoopKind, Name, Role, Stmt};

use super::{Unwritable, expr::Printer, head::line, quoted, word};
use crate::tvm::read::{VIRTUAL_THREAD, axis_word};

/// Writes a statement.
pub(super) fn write(
    printer: &Printer<'_>,
    stmt: &Stmt,
    depth: usize,
    out: &mut String,
) -> Result<(), Unwritable> {
    match stmt {
        Stmt::Loop(it) => nest(&printer.about(&it.var), it, depth, out),
        Stmt::Block(it) => block(&printer.about(&it.name), it, depth, out),
        Stmt::Seq(all) => all.iter().try_for_each(|it| write(printer, it, depth, out)),
        Stmt::Store(it) => {
            let place = printer.access(&it.place)?;
            line(out, depth, &format!("{place} = {}", printer.value(&it.value)?));
            Ok(())
        }
        Stmt::Instr(_) => Err(printer.unwritable("an instruction of a lowered program".to_owned())),
    }
}

/// A loop; plain ones that are directly nested are a grid.
fn nest(printer: &Printer<'_>, outer: &Loop, depth: usize, out: &mut String) -> Result<(), Unwritable> {
    if !is_plain(outer) {
        let head = head(printer, outer)?;
        line(out, depth, &format!("for {} in {head}:", word(&outer.var)));
        return write(printer, &outer.body, depth + 1, out);
    }
    let (mut vars, mut extents, mut body): (Vec<&Name>, _, _) =
        (vec![&outer.var], vec![printer.index(&outer.extent)?], &outer.body);
    while let Stmt::Loop(it) = body
        && is_plain(it)
        && !it.extent.any_var(&|var| vars.contains(&var))
    {
        vars.push(&it.var);
        extents.push(printer.about(&it.var).index(&it.extent)?);
        body = &it.body;
    }
    let words: Vec<_> = vars.iter().map(|it| word(it)).collect();
    let over = if vars.len() == 1 { "range" } else { "T.grid" };
    line(out, depth, &format!("for {} in {over}({}):", words.join(", "), extents.join(", ")));
    write(printer, body, depth + 1, out)
}

fn is_plain(it: &Loop) -> bool {
    it.kind == LoopKind::Serial && it.attrs.is_empty()
}

fn head(printer: &Printer<'_>, it: &Loop) -> Result<String, Unwritable> {
    let extent = printer.index(&it.extent)?;
    let mut entries = it.attrs.entries();
    let (kind, thread) = match it.kind {
        LoopKind::Serial => match entries.shift_remove(VIRTUAL_THREAD) {
            Some(Annotation::Text(axis)) => ("thread_binding", Some(axis)),
            Some(other) => {
                entries.insert(VIRTUAL_THREAD.to_owned(), other);
                ("serial", None)
            }
            None => ("serial", None),
        },
        LoopKind::Parallel => ("parallel", None),
        LoopKind::Vectorized => ("vectorized", None),
        LoopKind::Unrolled => ("unroll", None),
        LoopKind::Bound(axis) => ("thread_binding", Some(axis_word(axis))),
    };
    let thread = thread.map_or_else(String::new, |it| format!(", thread={}", quoted(&it)));
    let notes =
        if entries.is_empty() { String::new() } else { format!(", annotations={}", dictionary(&entries)) };
    Ok(format!("T.{kind}({extent}{thread}{notes})"))
}

fn block(printer: &Printer<'_>, it: &Block, depth: usize, out: &mut String) -> Result<(), Unwritable> {
    line(out, depth, &format!("with T.sblock({}):", quoted(it.name.as_str())));
    let inside = depth + 1;
    for iter in &it.iters {
        let kind = match iter.kind {
            IterKind::Spatial => "spatial",
            IterKind::Reduce => "reduce",
        };
        let (extent, binding) = (printer.index(&iter.extent)?, printer.index(&iter.binding)?);
        line(out, inside, &format!("{} = T.axis.{kind}({extent}, {binding})", word(&iter.var)));
    }
    if !it.guards.is_empty() {
        line(out, inside, &format!("T.where({})", printer.conditions(&it.guards)?));
    }
    let mut entries: Vec<_> = it.attrs.entries().iter().map(entry).collect();
    entries.extend(aligns(printer, it));
    if !entries.is_empty() {
        line(out, inside, &format!("T.sblock_attr({{{}}})", entries.join(", ")));
    }
    if let Some(init) = &it.init {
        line(out, inside, "with T.init():");
        write(printer, init, inside + 1, out)?;
    }
    write(printer, &it.body, inside, out)
}

/// `buffer_dim_align` of the first block that writes a buffer with strides that were asked for.
fn aligns(printer: &Printer<'_>, block: &Block) -> Option<String> {
    let mut written: Vec<&Name> = vec![];
    for access in block.writes() {
        if !written.contains(&&access.buffer) {
            written.push(&access.buffer);
        }
    }
    let is_first =
        |buffer: &Name| printer.func.writers(buffer).first().is_some_and(|it| it.name == block.name);
    let mut rows = vec![];
    for (at, buffer) in written.into_iter().enumerate().filter(|it| is_first(it.1)) {
        let declared = printer.func.buffers.get(buffer).filter(|it| it.role == Role::Temp);
        for it in declared.into_iter().flat_map(|it| &it.layout.align) {
            rows.push(format!("[{at}, {}, {}, {}]", it.axis, it.factor, it.offset));
        }
    }
    (!rows.is_empty()).then(|| format!("\"buffer_dim_align\": [{}]", rows.join(", ")))
}

fn dictionary(entries: &Annotations) -> String {
    format!("{{{}}}", entries.iter().map(entry).collect::<Vec<_>>().join(", "))
}

fn entry((key, value): (&String, &Annotation)) -> String {
    format!("{}: {}", quoted(key), annotation(value))
}

fn annotation(value: &Annotation) -> String {
    match value {
        Annotation::Int(it) => it.to_string(),
        Annotation::Text(it) => quoted(it),
        Annotation::List(list) => {
            format!("[{}]", list.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))
        }
        Annotation::Map(map) => {
            let entries = map.iter().map(|(name, it)| format!("{}: {it}", quoted(name.as_str())));
            format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
        }
        Annotation::Words(map) => {
            let entries = map.iter().map(|(name, it)| format!("{}: {}", quoted(name.as_str()), quoted(it)));
            format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
        }
    }
}
