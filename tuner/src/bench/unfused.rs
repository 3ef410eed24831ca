//! The baseline of a fused workload on a machine: see [`Unfused`].

use codegen::device::{DeviceError, Part, Program, ProgramId};

use super::{Bench, Loaded, fault::is_sticky};
use crate::{baseline::Unfused, case::Param};

impl Bench<'_> {
    /// Loads a matrix product, which is already loaded itself and then belongs to the sequence, and the kernels after it.
    pub(super) fn load_unfused(
        &mut self,
        unfused: &Unfused,
        product: ProgramId,
        programs: &[Program],
    ) -> Result<Loaded, DeviceError> {
        let buffers = self.kept.buffers.values().copied().collect();
        // Until there is a sequence, the product stands for it: then all is given back in one way.
        let mut loaded = Loaded::library(self.case, product, buffers);
        match self.join(unfused, &mut loaded, programs) {
            Ok(()) => Ok(loaded),
            Err(err) => {
                self.kept.lost |= is_sticky(&err.clone().into());
                self.release(loaded);
                Err(err)
            }
        }
    }

    fn join(
        &mut self,
        unfused: &Unfused,
        loaded: &mut Loaded,
        programs: &[Program],
    ) -> Result<(), DeviceError> {
        let mut sizes: Vec<usize> = self.case.params().values().map(Param::bytes).collect();
        for bytes in &unfused.temps {
            self.add_workspace(loaded, *bytes, false)?;
            sizes.push(*bytes);
        }
        let mut parts = vec![Part { program: loaded.program, buffers: unfused.operands.clone() }];
        for (kernel, program) in unfused.kernels.iter().zip(programs) {
            let program = self.machine.load(program)?;
            loaded.parts.push(program);
            parts.push(Part { program, buffers: kernel.buffers.clone() });
        }
        let sequence = self.machine.load_sequence(&parts, &sizes)?;
        loaded.parts.push(std::mem::replace(&mut loaded.program, sequence));
        Ok(())
    }
}
