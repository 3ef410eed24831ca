//! Programs of several parts, such as attention, each of which a rule knows: the parts are scheduled apart, and run one after the other.
//!
//! A part is a program of its own: what it reads of earlier ones are inputs, and what later ones read of it are outputs. The steps that a rule writes
//! for it are then taken over one by one, with other names where those are taken ([`Merged`]).

use indexmap::{IndexMap, IndexSet};
use ir::{Func, Mode, Name, Role, Stmt};
use schedule::{Session, Step, primitive::CacheRead};

use super::{Draft, Form, Request, anything, drafts_of_rules};

/// What the rule is called.
pub(super) const RULE: &str = "parts";

/// The most stages that one part has: no rule knows longer ones.
const MOST_STAGES: usize = 16;

/// What says whether a draft for a program is legal, and which plain steps it stands for.
pub type Check<'a> = dyn FnMut(&Request<'_>, &Draft) -> Option<Vec<Step>> + 'a;

/// The program part by part, if it has several and a rule knows one of them. The longest parts that a rule knows are taken, from the first stage on.
pub(super) fn draft(request: &Request<'_>, check: &mut Check<'_>) -> Option<Draft> {
    let Stmt::Seq(stages) = &request.func.body else { return None };
    let mut merged = Merged::new(request);
    let mut at = 0;
    let mut is_known = false;
    while at < stages.len() {
        let last = stages.len().min(at + MOST_STAGES);
        let taken = (at + 1..=last).rev().find_map(|end| {
            // The whole program is what its rules have been asked about before.
            let is_all = at == 0 && end == stages.len();
            let part = part(request.func, at, end).filter(|_| !is_all)?;
            let inner = Request { func: &part, form: Form::Script, ..*request };
            merged.take_first(&inner, drafts_of_rules(&inner), check).then_some(end)
        });
        is_known |= taken.is_some();
        if taken.is_none() {
            let part = part(request.func, at, at + 1)?;
            let inner = Request { func: &part, form: Form::Script, ..*request };
            if !merged.take_first(&inner, vec![anything::draft(&inner)], check) {
                return None;
            }
        }
        at = taken.unwrap_or(at + 1);
    }
    is_known.then_some(merged.out)
}

/// Some stages of a program as a program of its own.
fn part(func: &Func, start: usize, end: usize) -> Option<Func> {
    let Stmt::Seq(stages) = &func.body else { return None };
    let body = Stmt::seq(stages[start..end].to_vec());
    let others: Vec<_> = [&stages[..start], &stages[end..]].concat();
    let (own, elsewhere) = (Uses::of(std::slice::from_ref(&body)), Uses::of(&others));
    let mut out = Func { body, ..func.clone() };
    let mut tables = out.tables();
    tables.retain(|it| !own.read.contains(it));
    out.buffers
        .retain(|name, _| own.read.contains(name) || own.written.contains(name) || tables.contains(name));
    for (name, buffer) in &mut out.buffers {
        buffer.role = match (own.written.contains(name), elsewhere.read.contains(name)) {
            (false, _) => Role::Input,
            (true, true) => Role::Output,
            (true, false) => buffer.role,
        };
    }
    // A buffer that is filled in two parts is nobody's own.
    let is_shared = own.written.iter().any(|it| elsewhere.written.contains(it));
    let rank = |it: Role| [Role::Input, Role::Output, Role::Temp].iter().position(|role| *role == it);
    out.buffers.sort_by(|_, a, _, b| rank(a.role).cmp(&rank(b.role)));
    (!is_shared && ir::verify(&out).is_ok()).then_some(out)
}

/// The buffers that statements read, and those that they write.
#[derive(Default)]
struct Uses {
    read: IndexSet<Name>,
    written: IndexSet<Name>,
}

impl Uses {
    fn of(stmts: &[Stmt]) -> Uses {
        let mut out = Uses::default();
        for stmt in stmts {
            stmt.each_access(&mut |access, mode| {
                let known = if mode == Mode::Read { &mut out.read } else { &mut out.written };
                known.insert(access.buffer.clone());
            });
        }
        out
    }
}

/// The parts so far, as one schedule of the whole program.
struct Merged {
    session: Session,
    out: Draft,
    /// How many parts there are.
    count: usize,
}

impl Merged {
    fn new(request: &Request<'_>) -> Merged {
        let about =
            "The program in parts, each by the rule that knows it, one kernel after the other.".to_owned();
        let session = Session::new(request.func.clone(), Some(request.target.clone()));
        Merged { session, out: Draft::new(RULE, about, &[], request), count: 0 }
    }

    /// Adds the first draft for a part that is legal, and whose steps the whole program takes as well.
    fn take_first(&mut self, part: &Request<'_>, drafts: Vec<Draft>, check: &mut Check<'_>) -> bool {
        drafts.into_iter().any(|draft| {
            let Some(steps) = check(part, &draft) else { return false };
            // Names that are taken are found one by one; what steps make of a name by themselves is not, and then all are made others.
            let replayed = [false, true].into_iter().find_map(|all| self.replayed(part, &steps, all));
            let Some((session, steps, is_renamed)) = replayed else { return false };
            self.session = session;
            self.count += 1;
            self.add(part, draft, &steps, is_renamed);
            true
        })
    }

    /// Writes down a part: as the rule wrote it, or step by step where names had to be others.
    fn add(&mut self, part: &Request<'_>, draft: Draft, steps: &[Step], is_renamed: bool) {
        let blocks = part.func.body.blocks();
        let stages: Vec<_> = blocks.iter().map(|it| it.name.as_str()).collect();
        let by = if draft.is_last() { String::new() } else { format!(" (`{}`)", draft.rule) };
        self.out.reason(format!("{}: {}{by}", stages.join(", "), draft.about));
        if is_renamed {
            for step in steps {
                self.out.step(step.to_ron().trim());
            }
            return;
        }
        for library in draft.uses {
            if !self.out.uses.contains(&library) {
                self.out.uses.push(library);
            }
        }
        self.out.lines.extend(draft.lines);
    }

    /// The whole program after the steps for a part, those steps as the whole program has to be told, and whether they differ.
    fn replayed(&self, part: &Request<'_>, steps: &[Step], all: bool) -> Option<(Session, Vec<Step>, bool)> {
        let mut alone = Session::new(part.func.clone(), Some(part.target.clone()));
        let mut whole = self.session.clone();
        let mut renamed: IndexMap<Name, Name> = IndexMap::new();
        let mut out = vec![];
        for step in steps {
            let before = [&alone, &whole].map(|it| names(it.func()));
            let iters = iterators(step, alone.func(), whole.func(), &renamed);
            let step = &for_own_readers(step, alone.func(), whole.func(), &renamed);
            alone.apply(step).ok()?;
            let made = new_names(&before[0], alone.func());
            let text = step.to_ron();
            for name in made.iter().filter(|it| mentions(&text, it) && (all || before[1].contains(*it))) {
                let number = if all { (self.count + 1).to_string() } else { String::new() };
                let free = Name::nth(&format!("{name}{number}"), |it| whole.func().is_taken(it));
                renamed.insert(name.clone(), free);
            }
            let with = |name: &Name| {
                let found = iters.get(name).or_else(|| renamed.get(name)).cloned();
                found.or_else(|| (!before[0].contains(name)).then(|| derived(name, &renamed))?)
            };
            let step = Step::from_ron(&with_names(&text, &with)).ok()?;
            whole.apply(&step).ok()?;
            let theirs = new_names(&before[1], whole.func());
            if theirs.len() != made.len() {
                return None;
            }
            // What a primitive calls things by itself comes in the same order in both.
            for (own, theirs) in made.into_iter().zip(theirs) {
                if own == theirs {
                    renamed.shift_remove(&own);
                } else {
                    renamed.insert(own, theirs);
                }
            }
            out.push(step);
        }
        let is_renamed = out != *steps;
        Some((whole, out, is_renamed))
    }
}

/// The step, where it is a copy for all who read a buffer, as one for those of the part: others read the buffer itself. Their names are those in the
/// part.
fn for_own_readers(step: &Step, alone: &Func, whole: &Func, renamed: &IndexMap<Name, Name>) -> Step {
    let Step::CacheRead(copy) = step else { return step.clone() };
    let own: Vec<_> = alone.readers(&copy.buffer).into_iter().map(|it| it.name.clone()).collect();
    let all = whole.readers(renamed.get(&copy.buffer).unwrap_or(&copy.buffer));
    let readers = copy.readers.clone().or_else(|| (all.len() > own.len()).then_some(own));
    Step::CacheRead(CacheRead { readers, ..copy.clone() })
}

/// What the iterators of the blocks that a step names are called in the whole program. Other blocks may have others of these names.
fn iterators(
    step: &Step,
    alone: &Func,
    whole: &Func,
    renamed: &IndexMap<Name, Name>,
) -> IndexMap<Name, Name> {
    let text = step.to_ron();
    let mut out = IndexMap::new();
    for block in alone.body.blocks().into_iter().filter(|it| mentions(&text, &it.name)) {
        let Some(theirs) = whole.find_block(renamed.get(&block.name).unwrap_or(&block.name)) else {
            continue;
        };
        for (own, other) in block.iters.iter().zip(&theirs.iters) {
            out.insert(own.var.clone(), other.var.clone());
        }
    }
    out
}

/// The names of loops, blocks and buffers of a program, in order.
fn names(func: &Func) -> IndexSet<Name> {
    let mut out: IndexSet<Name> = IndexSet::new();
    func.body.walk(&mut |stmt| match stmt {
        Stmt::Loop(it) => {
            out.insert(it.var.clone());
        }
        Stmt::Block(it) => {
            out.insert(it.name.clone());
        }
        Stmt::Seq(_) | Stmt::Store(_) | Stmt::Instr(_) => {}
    });
    out.extend(func.buffers.keys().cloned());
    out
}

/// What is called after something that has another name: `ki_body`, which is a component of a pipeline.
fn derived(name: &Name, renamed: &IndexMap<Name, Name>) -> Option<Name> {
    renamed.iter().find_map(|(own, other)| {
        let rest = name.as_str().strip_prefix(own.as_str())?;
        rest.starts_with('_').then(|| Name::new(format!("{other}{rest}")))
    })
}

/// Those that a program has and had not before.
fn new_names(before: &IndexSet<Name>, func: &Func) -> Vec<Name> {
    names(func).into_iter().filter(|it| !before.contains(it)).collect()
}

/// Whether a step says a name.
fn mentions(step: &str, name: &Name) -> bool {
    step.split('"').skip(1).step_by(2).any(|it| it == name.as_str())
}

/// The step with other names: those are quoted, and nothing else in a step is with a quotation mark inside.
fn with_names(step: &str, with: &dyn Fn(&Name) -> Option<Name>) -> String {
    let parts = step.split('"').enumerate().map(|(at, text)| {
        let other = if at % 2 == 1 { with(&Name::new(text)) } else { None };
        other.map_or_else(|| text.to_owned(), |it| it.to_string())
    });
    parts.collect::<Vec<_>>().join("\"")
}
