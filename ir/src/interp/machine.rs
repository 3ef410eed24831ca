//! Runs resolved code over buffers in memory.

use super::{
    InterpError, Site,
    code::{AccessCode, BlockCode, Fault, LessCode, Memory, StmtCode},
    unflatten,
};
use crate::{Func, Name};

/// The bits of an element that nothing has written: a NaN that no arithmetic makes, since NaNs of inputs are
/// replaced by the usual one.
pub(super) const POISON: u64 = 0x7ff8_dead_beef_dead;

/// Variables and buffers of a run.
pub(super) struct Machine {
    env: Vec<i64>,
    data: Buffers,
}

struct Buffers {
    elements: Vec<Vec<f64>>,
    fault: Option<Fault>,
}

/// A fault and what is known of where it happened; blocks and loops add themselves on the way out.
pub(super) struct Stopped {
    fault: Fault,
    block: Option<Name>,
    at: Vec<(Name, i64)>,
}

impl Memory for Buffers {
    type Number = f64;

    #[inline]
    fn load(&mut self, access: &AccessCode, env: &[i64]) -> f64 {
        let Some(offset) = access.offset(env) else {
            self.fail(access.fault(env, false));
            return 0.0;
        };
        let it = self.elements[access.buffer][offset];
        if it.to_bits() == POISON {
            self.fail(Fault::Unwritten { buffer: access.buffer, offset });
        }
        it
    }

    fn carried(&self) -> f64 {
        f64::NAN // Code for the machine has no carried values; see `Resolver::carried`.
    }

    #[cold]
    fn fail(&mut self, fault: Fault) {
        self.fault.get_or_insert(fault);
    }
}

impl Machine {
    /// A machine with these contents of the variables and of the buffers.
    pub(super) fn new(env: Vec<i64>, elements: Vec<Vec<f64>>) -> Machine {
        Machine { env, data: Buffers { elements, fault: None } }
    }

    /// Runs to the end and gives the contents of the buffers.
    pub(super) fn run(mut self, code: &StmtCode) -> Result<Vec<Vec<f64>>, Box<Stopped>> {
        self.stmt(code).map(|()| self.data.elements)
    }

    fn stmt(&mut self, code: &StmtCode) -> Result<(), Box<Stopped>> {
        match code {
            StmtCode::Loop { name, slot, extent, lets, body } => {
                let extent = extent.eval(&self.env).ok_or(Fault::BadIndex)?;
                for value in 0..extent {
                    self.env[*slot as usize] = value;
                    lets.iter().for_each(|it| it.run(&mut self.env));
                    self.stmt(body).map_err(|mut it| {
                        it.at.push((name.clone(), value));
                        it
                    })?;
                }
                Ok(())
            }
            StmtCode::Block(block) => self.block(block).map_err(|mut it| {
                it.block.get_or_insert_with(|| block.name.clone());
                it
            }),
            StmtCode::Seq(stmts) => stmts.iter().try_for_each(|it| self.stmt(it)),
            StmtCode::Store(place, value) => {
                let value = value.eval(&self.env, &mut self.data);
                if let Some(fault) = self.data.fault.take() {
                    return Err(fault.into());
                }
                let offset = place.offset(&self.env).ok_or_else(|| place.fault(&self.env, true))?;
                self.data.elements[place.buffer][offset] = value;
                Ok(())
            }
        }
    }

    fn block(&mut self, block: &BlockCode) -> Result<(), Box<Stopped>> {
        if !LessCode::all(&block.guards, &self.env).ok_or(Fault::BadIndex)? {
            return Ok(());
        }
        let mut starts = true;
        for it in &block.iters {
            let value = it.binding.eval(&self.env).ok_or(Fault::BadIndex)?;
            let extent = it.extent.eval(&self.env).ok_or(Fault::BadIndex)?;
            if value < 0 || value >= extent {
                return Err(Fault::OutsideDomain { iter: it.name.clone(), value, extent }.into());
            }
            self.env[it.slot as usize] = value;
            starts &= !it.is_reduce || value == 0;
        }
        block.lets.iter().for_each(|it| it.run(&mut self.env));
        if let Some(init) = block.init.as_ref().filter(|_| starts) {
            self.stmt(init)?;
        }
        self.stmt(&block.body)
    }
}

impl From<Fault> for Box<Stopped> {
    #[cold]
    fn from(fault: Fault) -> Box<Stopped> {
        Box::new(Stopped { fault, block: None, at: Vec::new() })
    }
}

impl Stopped {
    /// The error in the program's own words.
    pub(super) fn explain(self, func: &Func, shapes: &[Vec<usize>]) -> InterpError {
        let at = self.at.into_iter().rev().collect();
        self.fault.explain(Site { block: self.block, at }, func, shapes)
    }
}

impl Fault {
    /// The error in the program's own words.
    pub(crate) fn explain(self, site: Site, func: &Func, shapes: &[Vec<usize>]) -> InterpError {
        let name =
            |at: usize| func.buffers.get_index(at).map_or_else(|| "?".into(), |(name, _)| name.clone());
        match self {
            Fault::OutOfBounds { buffer, index, write } => {
                let shape = shapes[buffer].clone();
                InterpError::OutOfBounds { buffer: name(buffer), index, shape, write, site }
            }
            Fault::Unwritten { buffer, offset } => {
                let index = unflatten(offset, &shapes[buffer]);
                InterpError::Unwritten { buffer: name(buffer), index, site }
            }
            Fault::OutsideDomain { iter, value, extent } => {
                InterpError::OutsideDomain { iter, value, extent, site }
            }
            Fault::BadIndex => InterpError::BadIndex { site },
            Fault::DivisionByZero => InterpError::DivisionByZero { site },
        }
    }
}
