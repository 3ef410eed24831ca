//! Which copies a wait is the first to find landed.

use ir::{Effect, Group, Index, Instr, Less, Name, Op, Proxy, SyncKind, Wait};

use crate::lower::analysis::kernel_accesses::{KernelAccess, KernelFacts};

/// So many iterations of a loop are looked at: no pipeline runs further ahead.
const MOST_TRIPS: i64 = 20;

/// For each wait of a kernel, in program order: what copies touch that may have been under way until then.
///
/// A copy that a later wait in its own list, or in one around it, surely covers is over after that one: other waits
/// find it landed only if they come before. What is under way when a loop ends was copied in its last iterations, if
/// the loop itself waits.
pub(crate) fn completions(walk: &KernelFacts, body: &[Op]) -> Vec<Vec<KernelAccess>> {
    let mut scan = Scan { walk, copies: vec![], waits: vec![] };
    scan.list(body, &mut Position { path: vec![], lists: vec![], around: vec![] });
    let Scan { copies, waits, .. } = scan;
    // Where a copy has landed does not depend on the wait that is asked about.
    let copies: Vec<_> = copies.into_iter().map(|it| (it.landed(), it)).collect();
    let landing = |(path, wait): &(Vec<usize>, &Wait)| {
        let mut out = Vec::new();
        let waited = |it: &&(_, Copied<'_>)| it.1.group == wait.group && wait.buffers.contains(&it.1.buffer);
        for (landed, copy) in copies.iter().filter(waited) {
            out.extend(copy.landing_at(path, *landed));
        }
        out
    };
    waits.iter().map(landing).collect()
}

struct Scan<'a> {
    walk: &'a KernelFacts,
    copies: Vec<Copied<'a>>,
    /// The waits with their paths.
    waits: Vec<(Vec<usize>, &'a Wait)>,
}

/// Where a statement stands.
struct Position<'a> {
    /// Its place in each list around it, outermost first.
    path: Vec<usize>,
    /// Those lists.
    lists: Vec<&'a [Op]>,
    /// The statements around it, without those inside them.
    around: Vec<Op>,
}

struct Copied<'a> {
    group: Group,
    buffer: Name,
    path: Vec<usize>,
    lists: Vec<&'a [Op]>,
    touches: Vec<KernelAccess>,
    dims: &'a [Name],
}

impl<'a> Scan<'a> {
    fn list(&mut self, ops: &'a [Op], at: &mut Position<'a>) {
        at.lists.push(ops);
        for (number, op) in ops.iter().enumerate() {
            at.path.push(number);
            match op {
                Op::Instr(it, _) => self.instr(it, op, at),
                Op::For(_) | Op::If(..) | Op::Leader(..) | Op::Role(..) => {
                    at.around.push(op.head());
                    self.list(op.children(), at);
                    at.around.pop();
                }
                Op::Alloc(_) => {}
            }
            at.path.pop();
        }
        at.lists.pop();
    }

    fn instr(&mut self, it: &'a Instr, op: &Op, at: &Position<'a>) {
        let effects = it.effects();
        if let Some(SyncKind::Wait(it)) = effects.sync {
            self.waits.push((at.path.clone(), it));
        }
        if let Some(group) = effects.completion.group() {
            let touches = self.walk.touches(op, &at.around);
            // A copy has been read by the time the thread goes on; what reads by itself goes on reading.
            let is_late = |it: &&Effect<'_>| it.mode.writes() || it.proxy == Proxy::Async;
            for late in effects.accesses.iter().filter(is_late) {
                let (path, lists) = (at.path.clone(), at.lists.clone());
                let (buffer, touches, dims) =
                    (late.access.buffer.clone(), touches.clone(), &self.walk.dims[..]);
                self.copies.push(Copied { group, buffer, path, lists, touches, dims });
            }
        }
    }
}

/// What a statement itself orders.
fn sync(op: &Op) -> Option<SyncKind<'_>> {
    op.instr().and_then(Instr::sync)
}

/// The same of what one thread does for all.
fn led(op: &Op) -> Option<SyncKind<'_>> {
    match op {
        Op::Leader(_, body) => body.iter().find_map(sync),
        op => sync(op),
    }
}

fn commits(group: Group, ops: &[Op]) -> u32 {
    let one = |op: &Op| match op {
        Op::Leader(_, body) => commits(group, body),
        op => u32::from(sync(op) == Some(SyncKind::Commit(group))),
    };
    ops.iter().map(one).sum()
}

impl Copied<'_> {
    /// What it touches, if it may have been under way until a wait; `landed` is what [`Copied::landed`] has found.
    fn landing_at(&self, wait: &[usize], landed: Option<(usize, usize)>) -> Vec<KernelAccess> {
        if let Some((depth, last)) = landed {
            let passes = wait.get(depth).is_some_and(|it| (self.path[depth]..=last).contains(it));
            if !passes || !wait.starts_with(&self.path[..depth]) {
                return vec![];
            }
        }
        let mut touches = self.touches.clone();
        let mut common = Vec::new();
        for depth in 0..self.path.len() {
            let Op::For(it) = &self.lists[depth][self.path[depth]] else { continue };
            // Copy and wait are in one run of the list in which the copy lands, and of all around it.
            if landed.is_some_and(|(list, _)| depth < list) {
                common.push(it.var.clone());
            }
            if !wait.starts_with(&self.path[..=depth])
                && let Some(later) = self.iterations_until_landed(depth + 1)
            {
                let last = Less::new(&it.extent - &Index::int(later + 1), Index::var(&it.var));
                touches = touches.into_iter().map(|touch| touch.where_holds(&it.var, &last)).collect();
            }
        }
        touches.iter().map(|it| it.in_any_iteration(&common)).collect()
    }

    /// The first statement with a wait that surely covers it, by the depth of its list and its place there.
    fn landed(&self) -> Option<(usize, usize)> {
        let mut closed = 0;
        for (depth, (list, &own)) in self.lists.iter().zip(&self.path).enumerate().rev() {
            for (at, op) in list.iter().enumerate().skip(own + 1) {
                if self.lands_in(op, &mut closed) {
                    return Some((depth, at));
                }
            }
        }
        None
    }

    /// Whether a wait in a statement surely covers it, where so many groups have been closed since; counts on.
    fn lands_in(&self, op: &Op, closed: &mut u32) -> bool {
        match op {
            Op::Instr(it, _) => match it.sync() {
                Some(SyncKind::Commit(group)) if group == self.group => {
                    *closed += 1;
                    false
                }
                Some(SyncKind::Wait(it)) if it.group == self.group => {
                    *closed > it.in_flight && it.buffers.contains(&self.buffer)
                }
                Some(_) | None => false,
            },
            Op::For(it) => {
                let trips = it.extent.as_int().unwrap_or_else(|| i64::from(self.is_dim(&it.extent)));
                for _ in 0..trips.min(MOST_TRIPS) {
                    let before = *closed;
                    if it.body.iter().any(|op| self.lands_in(op, closed)) {
                        return true;
                    }
                    // An iteration that closes no group leaves all as it was for the next one.
                    if *closed == before {
                        break;
                    }
                }
                false
            }
            // Who leads does it every time.
            Op::Leader(_, body) => body.iter().any(|op| self.lands_in(op, closed)),
            Op::Alloc(_) | Op::If(..) | Op::Role(..) => false,
        }
    }

    /// Whether an extent is a dimension of the program, which is at least 1.
    fn is_dim(&self, extent: &Index) -> bool {
        extent.as_var().is_some_and(|it| self.dims.contains(it))
    }

    /// How many iterations later, one at least, a wait in the body of a loop around it has surely covered it.
    fn iterations_until_landed(&self, depth: usize) -> Option<i64> {
        let body = *self.lists.get(depth)?;
        let rests = self.lists.iter().zip(&self.path).skip(depth);
        let after: u32 = rests.map(|(list, own)| commits(self.group, &list[own + 1..])).sum();
        let each = commits(self.group, body);
        let later = body.iter().enumerate().filter_map(|(at, op)| match led(op) {
            Some(SyncKind::Wait(it)) if it.group == self.group && it.buffers.contains(&self.buffer) => {
                let missing = (it.in_flight + 1).saturating_sub(after + commits(self.group, &body[..at]));
                let more = if missing == 0 { 0 } else { missing.div_ceil(Some(each).filter(|it| *it > 0)?) };
                Some(i64::from(more) + 1)
            }
            Some(_) | None => None,
        });
        later.min()
    }
}
