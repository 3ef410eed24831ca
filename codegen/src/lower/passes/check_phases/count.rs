//! How often something has been done before a statement, as an expression over the loops around it.
//!
//! A statement in a loop is done once an iteration for which the conditions around it hold: those that say from which or to
//! which iteration make a shorter loop of it, and others are factors of zero or one. So counts are exact, and whatever cannot
//! be counted is not guessed.

use ir::{Index, Instr, Less, Name, Op, arith::Bounds};

use super::program::Program;

/// How much an instruction adds to a count.
pub(super) type Weight<'w> = &'w dyn Fn(&Instr) -> i64;

/// What is added where all conditions hold.
struct Part {
    when: Vec<Less>,
    count: Index,
}

impl Program<'_> {
    /// What has been counted before a statement; `None` if that cannot be said.
    pub(super) fn before(&self, node: usize, weight: Weight<'_>, bounds: &Bounds) -> Option<Index> {
        self.until((self.parent(node), self.earlier(node).len()), weight, bounds)
    }

    /// What has been counted before a place in the list of a statement, or at the top.
    pub(super) fn until(
        &self,
        (list, place): (Option<usize>, usize),
        weight: Weight<'_>,
        bounds: &Bounds,
    ) -> Option<Index> {
        let mut done = vec![];
        // What this iteration of the innermost loop has been through, and what is left of it.
        let (mut passed, mut left) = (vec![], vec![]);
        let split =
            |list: &[usize], place: usize, rest: usize, passed: &mut Vec<Part>, left: &mut Vec<Part>| {
                list[..place].iter().try_for_each(|it| self.parts(*it, weight, bounds, passed))?;
                list[rest..].iter().try_for_each(|it| self.parts(*it, weight, bounds, left))
            };
        split(self.children(list), place, place, &mut passed, &mut left)?;
        let mut at = list;
        while let Some(node) = at {
            match self.op(node) {
                Op::If(conditions, _) => {
                    self.under(conditions, &mut passed);
                    self.under(conditions, &mut left);
                }
                Op::For(it) => {
                    let var = Index::var(&it.var);
                    let times = |end: &Index| smaller(end, &it.extent, bounds);
                    for (parts, end) in [(&mut passed, times(&(&var + 1))), (&mut left, times(&var))] {
                        for part in parts.drain(..) {
                            done.push(part.over(&it.var, &end, self.known(), bounds)?);
                        }
                    }
                    self.parts(node, weight, bounds, &mut left)?;
                }
                Op::Alloc(_) | Op::Leader(..) | Op::Role(..) | Op::Instr(..) => {}
            }
            let place = self.earlier(node).len();
            split(self.children(self.parent(node)), place, place + 1, &mut passed, &mut left)?;
            at = self.parent(node);
        }
        done.extend(passed);
        Some(sum(done, bounds))
    }

    /// What has been counted when the program ends.
    pub(super) fn total(&self, weight: Weight<'_>) -> Option<Index> {
        let mut parts = vec![];
        for it in self.children(None) {
            self.parts(*it, weight, self.known(), &mut parts)?;
        }
        Some(sum(parts, self.known()))
    }

    fn parts(&self, node: usize, weight: Weight<'_>, bounds: &Bounds, out: &mut Vec<Part>) -> Option<()> {
        match self.op(node) {
            Op::Instr(it, _) => {
                let count = weight(it);
                if count != 0 {
                    out.push(Part { when: vec![], count: Index::int(count) });
                }
            }
            Op::For(it) => {
                let first = out.len();
                for it in self.children(Some(node)) {
                    self.parts(*it, weight, bounds, out)?;
                }
                for part in &mut out[first..] {
                    *part = part.over(&it.var, &it.extent, self.known(), bounds)?;
                }
            }
            Op::If(conditions, _) => {
                let first = out.len();
                for it in self.children(Some(node)) {
                    self.parts(*it, weight, bounds, out)?;
                }
                self.under(conditions, &mut out[first..]);
            }
            Op::Leader(..) | Op::Role(..) => {
                for it in self.children(Some(node)) {
                    self.parts(*it, weight, bounds, out)?;
                }
            }
            Op::Alloc(_) => {}
        }
        Some(())
    }

    /// Puts parts under conditions. Of threads, those are counted that come.
    fn under(&self, conditions: &[Less], parts: &mut [Part]) {
        let conditions: Vec<_> = conditions.iter().filter(|it| !self.tells_threads(it)).cloned().collect();
        for part in parts {
            part.when.extend(conditions.iter().cloned());
        }
    }
}

impl Part {
    /// The part, added up over the iterations of a loop before one. What `bounds` know of the variable of a loop around is of the
    /// iteration at hand, and nothing is `known` of it in the others.
    fn over(&self, var: &Name, end: &Index, known: &Bounds, bounds: &Bounds) -> Option<Part> {
        let is_var = |name: &Name| name == var;
        if self.count.any_var(&is_var) {
            return None;
        }
        let (own, when): (Vec<_>, Vec<_>) =
            self.when.iter().cloned().partition(|it| it.lhs.any_var(&is_var) || it.rhs.any_var(&is_var));
        let (mut first, mut end) = (Index::int(0), end.clone());
        for it in own {
            // by*var + rest > 0.
            let (by, rest) = known.linear_in(&(&it.rhs - &it.lhs), var)?;
            match by {
                0 => return None,
                1.. => first = larger(&first, &(rest.negated().floor_div(&Index::int(by)) + 1), bounds),
                _ => end = smaller(&end, &((rest + -1).floor_div(&Index::int(-by)) + 1), bounds),
            }
        }
        let trips = larger(&bounds.simplify(&(&end - &first)), &Index::int(0), bounds);
        Some(Part { when, count: &trips * &self.count })
    }
}

fn sum(parts: Vec<Part>, bounds: &Bounds) -> Index {
    let one = |part: Part| part.when.iter().fold(part.count, |count, it| count * truth(it, bounds));
    let out = parts.into_iter().map(one).fold(Index::int(0), |out, it| out + it);
    bounds.simplify(&out)
}

/// One where a condition holds, and zero elsewhere.
fn truth(it: &Less, bounds: &Bounds) -> Index {
    match bounds.prove(it) {
        Some(holds) => Index::int(holds.into()),
        None => (&it.rhs - &it.lhs).minimum(&Index::int(1)).maximum(&Index::int(0)),
    }
}

fn larger(a: &Index, b: &Index, bounds: &Bounds) -> Index {
    match bounds.prove(&Less::new(a.clone(), b + 1)) {
        Some(true) => b.clone(),
        _ if bounds.prove(&Less::new(b.clone(), a + 1)) == Some(true) => a.clone(),
        _ => a.maximum(b),
    }
}

fn smaller(a: &Index, b: &Index, bounds: &Bounds) -> Index {
    match bounds.prove(&Less::new(a.clone(), b + 1)) {
        Some(true) => a.clone(),
        _ if bounds.prove(&Less::new(b.clone(), a + 1)) == Some(true) => b.clone(),
        _ => a.minimum(b),
    }
}
