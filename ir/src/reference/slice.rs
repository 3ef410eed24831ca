//! The backward slice of a program: which of its stores some elements depend on.
//!
//! The program is walked from its end, every loop from its last iteration, with the set of the elements whose values are
//! wanted. A store to one of them is kept; the element is then wanted no more, and what the store reads is. So
//! a temporary that iterations refill, a second writer, and a reduction that begins anew are each told apart by when they are,
//! and guards are asked with the values of the loops around them. Stretches of a loop that cannot write a wanted
//! element are passed over: they are halved until nothing of them is left, or one iteration.

use std::collections::BTreeSet;

use super::span::writes_wanted;
use crate::{
    Name,
    interp::{
        code::{AccessCode, BlockCode, Fault, LessCode, StmtCode, ValueCode},
        span::Span,
    },
};

/// The most stores of a slice.
const MAX_STEPS: usize = 1 << 23;

/// A store that runs.
pub(super) struct Step<'p> {
    pub(super) place: &'p AccessCode,
    pub(super) value: &'p ValueCode,
    pub(super) block: Option<&'p Name>,
    /// Where in [`Slice::env`] the values of its variables are.
    pub(super) env: usize,
}

/// Why there is no slice.
pub(super) enum NoSlice<'p> {
    /// It has too many steps.
    TooLong,
    /// A store cannot run.
    Fault(Fault, Option<&'p Name>),
}

/// The stores that some elements depend on, the last one first.
#[derive(Default)]
pub(super) struct Slice<'p> {
    pub(super) steps: Vec<Step<'p>>,
    pub(super) env: Vec<i64>,
}

/// A walk from the end of a program.
struct Walk<'p> {
    env: Vec<i64>,
    spans: Vec<Span>,
    wanted: Vec<BTreeSet<usize>>,
    block: Option<&'p Name>,
    slice: Slice<'p>,
}

/// The slice of a program with so many variables, for wanted elements of each buffer.
pub(super) fn slice(
    code: &StmtCode,
    slots: usize,
    wanted: Vec<BTreeSet<usize>>,
) -> Result<Slice<'_>, NoSlice<'_>> {
    let (env, spans) = (vec![0; slots], vec![[0, 0]; slots]);
    let mut walk = Walk { env, spans, wanted, block: None, slice: Slice::default() };
    walk.stmt(code)?;
    Ok(walk.slice)
}

impl<'p> Walk<'p> {
    fn stmt(&mut self, code: &'p StmtCode) -> Result<(), NoSlice<'p>> {
        match code {
            StmtCode::Loop { slot, extent, body, .. } => {
                let extent = extent.eval(&self.env).ok_or(NoSlice::Fault(Fault::BadIndex, self.block))?;
                self.stretch(*slot, body, 0, extent)
            }
            StmtCode::Block(block) => {
                let outer = self.block.replace(&block.name);
                self.block(block)?;
                self.block = outer;
                Ok(())
            }
            StmtCode::Seq(stmts) => stmts.iter().rev().try_for_each(|it| self.stmt(it)),
            StmtCode::Store(place, value) => self.store(place, value),
        }
    }

    /// The iterations `from..to` of a loop.
    fn stretch(&mut self, slot: u32, body: &'p StmtCode, from: i64, to: i64) -> Result<(), NoSlice<'p>> {
        if from >= to {
            return Ok(());
        }
        for (span, value) in self.spans.iter_mut().zip(&self.env) {
            *span = [*value; 2];
        }
        self.spans[slot as usize] = [from, to - 1];
        if !writes_wanted(body, &mut self.spans, &self.wanted) {
            return Ok(());
        }
        if to - from == 1 {
            self.env[slot as usize] = from;
            return self.stmt(body);
        }
        let middle = from + (to - from) / 2;
        self.stretch(slot, body, middle, to)?;
        self.stretch(slot, body, from, middle)
    }

    fn block(&mut self, block: &'p BlockCode) -> Result<(), NoSlice<'p>> {
        let fault = |it: Fault| NoSlice::Fault(it, Some(&block.name));
        let index = || fault(Fault::BadIndex);
        if !LessCode::all(&block.guards, &self.env).ok_or_else(index)? {
            return Ok(());
        }
        let mut starts = true;
        for it in &block.iters {
            let value = it.binding.eval(&self.env).ok_or_else(index)?;
            let extent = it.extent.eval(&self.env).ok_or_else(index)?;
            if value < 0 || value >= extent {
                return Err(fault(Fault::OutsideDomain { iter: it.name.clone(), value, extent }));
            }
            self.env[it.slot as usize] = value;
            starts &= !it.is_reduce || value == 0;
        }
        self.stmt(&block.body)?;
        block.init.as_ref().filter(|_| starts).map_or(Ok(()), |it| self.stmt(it))
    }

    fn store(&mut self, place: &'p AccessCode, value: &'p ValueCode) -> Result<(), NoSlice<'p>> {
        let Some(offset) = place.offset(&self.env) else {
            return Err(NoSlice::Fault(place.fault(&self.env, true), self.block));
        };
        if !self.wanted[place.buffer].remove(&offset) {
            return Ok(());
        }
        if self.slice.steps.len() >= MAX_STEPS {
            return Err(NoSlice::TooLong);
        }
        let env = self.slice.env.len();
        self.slice.env.extend_from_slice(&self.env);
        self.slice.steps.push(Step { place, value, block: self.block, env });
        self.want(value, (place.buffer, offset))
    }

    /// Wants what a value reads; `own` is the element that stands for a running value.
    fn want(&mut self, value: &'p ValueCode, own: (usize, usize)) -> Result<(), NoSlice<'p>> {
        match value {
            ValueCode::Const(_) | ValueCode::Index(..) => Ok(()),
            ValueCode::Carried => {
                self.wanted[own.0].insert(own.1);
                Ok(())
            }
            ValueCode::Load(access) => {
                // What lies outside its buffer is found when the value is computed.
                if let Some(offset) = access.offset(&self.env) {
                    self.wanted[access.buffer].insert(offset);
                }
                Ok(())
            }
            ValueCode::Cast(_, _, a) | ValueCode::Unary(_, _, a) => self.want(a, own),
            ValueCode::Binary(_, _, operands) => operands.iter().try_for_each(|it| self.want(it, own)),
            ValueCode::Where(operands) => operands.iter().try_for_each(|it| self.want(it, own)),
            ValueCode::Select(conditions, operands) => match LessCode::all(conditions, &self.env) {
                Some(holds) => self.want(&operands[usize::from(!holds)], own),
                None => Err(NoSlice::Fault(Fault::BadIndex, self.block)),
            },
        }
    }
}
