//! Which parts of a program each step made or changed.
//!
//! Identity is the name: a part is a buffer, a loop or a block, and is the same after a step if its name is. A step *touches* a
//! part that is new after it, one whose own lines read otherwise than before, and a loop or block that stands in another loop or
//! block, of those that were there before and still are, than before. What a later step removes is no step's any more, also where a part of that name comes
//! back.

use std::collections::{BTreeMap, BTreeSet};

use ir::{
    Func, Stmt,
    text::{Part, print},
};

/// The steps so far.
pub(crate) struct History {
    last: BTreeMap<Part, Own>,
    /// What is left of what each step touched.
    touched: Vec<BTreeSet<Part>>,
}

/// What is a part's own.
#[derive(Default)]
struct Own {
    /// Its lines without their indentation.
    text: String,
    /// The loops and blocks that it stands in, outermost first.
    around: Vec<Part>,
}

impl History {
    /// Before the first step.
    pub(crate) fn new(func: &Func) -> History {
        History { last: parts(func), touched: vec![] }
    }

    /// Adds a step, which made this program.
    pub(crate) fn step(&mut self, func: &Func) {
        let before = std::mem::replace(&mut self.last, parts(func));
        let after = &self.last;
        let place = |own: &Own| {
            let mut around = own.around.iter().rev();
            around.find(|it| before.contains_key(*it) && after.contains_key(*it)).cloned()
        };
        let is_touched = |part: &Part, own: &Own| {
            before.get(part).is_none_or(|old| old.text != own.text || place(old) != place(own))
        };
        let touched = after.iter().filter(|(part, own)| is_touched(part, own));
        let touched = touched.map(|it| it.0.clone()).collect();
        for it in &mut self.touched {
            it.retain(|part| after.contains_key(part));
        }
        self.touched.push(touched);
    }

    /// What each step touched and no later step removed.
    pub(crate) fn touched(&self) -> &[BTreeSet<Part>] {
        &self.touched
    }
}

fn parts(func: &Func) -> BTreeMap<Part, Own> {
    let mut out: BTreeMap<Part, Own> = BTreeMap::new();
    let listing = print(func);
    for (line, part) in listing.text.lines().zip(&listing.parts) {
        let Some(part) = part else { continue };
        let own = out.entry(part.clone()).or_default();
        own.text.push_str(line.trim_start());
        own.text.push('\n');
    }
    places(&func.body, &mut vec![], &mut out);
    out
}

fn places(stmt: &Stmt, around: &mut Vec<Part>, out: &mut BTreeMap<Part, Own>) {
    let part = match stmt {
        Stmt::Loop(it) => Part::Loop(it.var.clone()),
        Stmt::Block(it) => Part::Block(it.name.clone()),
        Stmt::Seq(_) | Stmt::Store(_) | Stmt::Instr(_) => {
            stmt.children().for_each(|it| places(it, around, out));
            return;
        }
    };
    out.entry(part.clone()).or_default().around.clone_from(around);
    around.push(part);
    stmt.children().for_each(|it| places(it, around, out));
    around.pop();
}
