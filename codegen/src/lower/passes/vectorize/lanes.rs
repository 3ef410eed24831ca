//! One statement of a vectorised loop as a statement on lanes, or the reason why it cannot be one.

use std::sync::Arc;

use ir::{Access, For, ForKind, Index, Instr, Less, Name, Op, Participants, Value, arith::Bounds};

/// A width to try on the statements of a loop whose variable has been replaced by a place plus the lane.
pub(super) struct Lanes {
    /// The number of lanes.
    pub(super) width: u32,
    /// The variable that stands for the lane.
    pub(super) lane: Name,
    /// What is known, the lane's range included.
    pub(super) bounds: Bounds,
    /// Whether accesses must start at a multiple of the width.
    pub(super) aligned: bool,
    /// Whether a guard may be split into lanes that all pass and the rest.
    pub(super) splits_guards: bool,
}

impl Lanes {
    /// The statement on lanes.
    pub(super) fn op(&mut self, op: &Op) -> Result<Vec<Op>, String> {
        match op {
            Op::Alloc(it) => Err(format!("`{}` is private to each iteration", it.name)),
            Op::Instr(it, origin) => Ok(vec![Op::Instr(self.instr(it)?, origin.clone())]),
            Op::If(cond, body) => self.guarded(cond, body),
            Op::Leader(..) | Op::Role(..) => Err("one thread does something for others in it".to_owned()),
            Op::For(it) => {
                let inner = &it.var;
                match it.kind {
                    ForKind::Vectorized => return Err(format!("`{inner}` in it does")),
                    ForKind::Parallel => return Err(format!("`{inner}` in it runs on several threads")),
                    ForKind::Serial | ForKind::Unrolled => {}
                }
                let why = || format!("the extent of `{inner}` differs between its iterations");
                let extent = self.constant(&it.extent).ok_or_else(why)?;
                let outside = self.bounds.clone();
                self.bounds.insert(inner, &extent);
                let body = self.ops(&it.body);
                self.bounds = outside;
                Ok(vec![Op::For(Arc::new(For { extent, body: body?, ..For::clone(it) }))])
            }
        }
    }

    fn instr(&self, it: &Instr) -> Result<Instr, String> {
        let effects = it.effects();
        match effects.participants {
            Participants::Block | Participants::Cluster => {
                return Err("threads wait for each other in it".to_owned());
            }
            of @ (Participants::Warp | Participants::Warpgroup | Participants::Role) => {
                return Err(format!("a {} does `{}` in it together", of.as_str(), it.word()));
            }
            Participants::Thread => {}
        }
        match it.assignment() {
            Some((place, value)) => Ok(it.with_assignment(self.place(place)?, self.value(value)?)),
            None if it.is_remark() => Ok(it.clone()),
            None => Err("copies are waited for in it".to_owned()),
        }
    }

    fn ops(&mut self, ops: &[Op]) -> Result<Vec<Op>, String> {
        let ops = ops.iter().map(|op| self.op(op)).collect::<Result<Vec<_>, _>>()?;
        Ok(ops.into_iter().flatten().collect())
    }

    /// The coefficient of the lane in the place of an element, and the place of lane 0. All lanes are in one block's part of memory.
    fn subscript(&self, access: &Access) -> Option<(i64, Vec<Index>)> {
        let (last, block) = access.indices.split_last()?;
        let (stride, start) = self.bounds.linear_in(last, &self.lane)?;
        let block = block.iter().map(|it| self.constant(it)).collect::<Option<Vec<_>>>()?;
        Some((stride, block.into_iter().chain([start]).collect()))
    }

    /// The index, if it is the same in all lanes.
    fn constant(&self, index: &Index) -> Option<Index> {
        if !index.any_var(&|it| *it == self.lane) {
            return Some(index.clone());
        }
        self.bounds.linear_in(index, &self.lane).filter(|it| it.0 == 0).map(|it| it.1)
    }

    fn wide(&self, access: &Access, start: Vec<Index>) -> Result<Access, String> {
        let is_aligned = |it: &Index| self.bounds.divides(i64::from(self.width), it);
        if self.aligned && !start.last().is_some_and(is_aligned) {
            return Err(format!(
                "accesses of `{}` are not aligned to {} elements",
                access.buffer, self.width
            ));
        }
        Ok(Access { buffer: access.buffer.clone(), indices: start, lanes: self.width })
    }

    fn place(&self, access: &Access) -> Result<Access, String> {
        match self.subscript(access) {
            Some((1, start)) => self.wide(access, start),
            Some((0, _)) => Err(format!("all its iterations write the same element of `{}`", access.buffer)),
            Some((stride, _)) => Err(format!("`{}` is written with a stride of {stride}", access.buffer)),
            None => Err(format!("`{}` is written at places that are not evenly spaced", access.buffer)),
        }
    }

    fn load(&self, access: &Access) -> Result<Access, String> {
        match self.subscript(access) {
            Some((1, start)) => self.wide(access, start),
            Some((0, start)) => Ok(Access { indices: start, ..access.clone() }),
            Some((stride, _)) => Err(format!("`{}` is read with a stride of {stride}", access.buffer)),
            None => Err(format!("`{}` is read at places that are not evenly spaced", access.buffer)),
        }
    }

    fn value(&self, value: &Value) -> Result<Value, String> {
        Ok(match value {
            Value::Const(_) => value.clone(),
            Value::Load(access) => Value::Load(self.load(access)?),
            Value::Index(dtype, index) => {
                let why = || "it computes with the number of the iteration".to_owned();
                Value::Index(*dtype, self.constant(index).ok_or_else(why)?)
            }
            Value::Cast(dtype, a) => Value::Cast(*dtype, Arc::new(self.value(a)?)),
            Value::Unary(op, a) => Value::Unary(*op, Arc::new(self.value(a)?)),
            Value::Binary(op, a, b) => Value::binary(*op, self.value(a)?, self.value(b)?),
            Value::Where(cond, a, b) => Value::choice(self.value(cond)?, self.value(a)?, self.value(b)?),
            Value::Select(cond, a, b) => {
                let why = || "a choice differs between its iterations".to_owned();
                let cond =
                    cond.iter().map(|it| self.condition(it).ok_or_else(why)).collect::<Result<_, _>>()?;
                Value::Select(cond, Arc::new(self.value(a)?), Arc::new(self.value(b)?))
            }
        })
    }

    /// The condition, if it has the same answer in all lanes.
    fn condition(&self, less: &Less) -> Option<Less> {
        let less = if self.mentions(less) { self.bounds.simplify_less(less) } else { less.clone() };
        Some(Less::new(self.constant(&less.lhs)?, self.constant(&less.rhs)?))
    }

    fn mentions(&self, less: &Less) -> bool {
        let is_lane = |it: &Name| *it == self.lane;
        less.lhs.any_var(&is_lane) || less.rhs.any_var(&is_lane)
    }

    fn guarded(&mut self, cond: &[Less], body: &[Op]) -> Result<Vec<Op>, String> {
        let (mut same, mut differ) = (Vec::new(), Vec::new());
        for less in cond {
            match self.condition(less) {
                Some(less) => same.push(less),
                None => differ.push(less),
            }
        }
        let outside = self.bounds.clone();
        for less in &same {
            self.bounds.assume(less);
        }
        let inner = self.ops(body);
        self.bounds = outside;
        match differ[..] {
            [] => Ok(vec![Op::If(same, inner?)]),
            [less] if self.splits_guards => self.split(&same, less, inner?, body),
            _ => Err("a guard differs between its iterations".to_owned()),
        }
    }

    /// Lanes where the guard holds for all of them, one iteration after the other where it does not.
    fn split(&self, same: &[Less], less: &Less, lanes: Vec<Op>, body: &[Op]) -> Result<Vec<Op>, String> {
        let difference = self.bounds.linear_in(&(&less.lhs - &less.rhs), &self.lane);
        let (stride, _) = difference.ok_or("a guard of it is not linear")?;
        let last = Index::from(if stride > 0 { i64::from(self.width) - 1 } else { 0 });
        let all = less.subst(&|name| (*name == self.lane).then(|| last.clone()));
        let not_all = Less::new(all.rhs.clone(), &all.lhs + 1);
        let tail = For {
            var: self.lane.clone(),
            extent: Index::from(i64::from(self.width)),
            kind: ForKind::Serial,
            counters: vec![],
            independent: ir::Independence::Unknown,
            body: vec![Op::If(vec![less.clone()], body.to_vec())],
        };
        let with = |less| same.iter().cloned().chain([less]).collect();
        Ok(vec![Op::If(with(all), lanes), Op::If(with(not_all), vec![Op::For(Arc::new(tail))])])
    }
}
