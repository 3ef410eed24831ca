//! CUDA C++: how a kernel begins.

use ir::{Arch, Index, Kernel, Name, Op, ThreadAxis, axis_var, text::LineSource};

use crate::{launch::shared_alignment, shared_layout};

use super::{Printer, helper::Helper, names::identifier, ptx::Ptx, team::thread_axis};

/// The threads of a block of a kernel, where the launch says so with constants.
fn thread_count(kernel: &Kernel) -> Option<i64> {
    if !kernel.roles.is_empty() {
        return Some(kernel.threads());
    }
    let threads = kernel.launch.iter().filter(|(axis, _)| axis.is_thread());
    threads.map(|(_, extent)| extent.as_int()).product()
}

impl Printer<'_> {
    /// A kernel whose parameters are its tensor maps, its buffers and then all symbolic dimensions as 64-bit integers.
    pub(super) fn cuda_kernel(&mut self, kernel: &Kernel) {
        let (offsets, bytes) = shared_layout(kernel);
        self.frame.shared_offsets = offsets;
        let threads = thread_count(kernel).unwrap_or_else(|| Arch::MAX_THREADS.into());
        let parameters = self.cuda_parameters(kernel).join(", ");
        // Without a number of blocks the compiler leaves the registers of roles as they are.
        let resident = kernel.blocks_per_sm.or((!kernel.roles.is_empty()).then_some(1));
        let resident = resident.map(|it| format!(", {it}")).unwrap_or_default();
        let head = format!(
            "extern \"C\" __global__ void {}__launch_bounds__({threads}{resident}) {}({parameters})",
            self.frame.cluster.attribute(),
            self.frame.symbol,
        );
        self.nest(&head, |printer| {
            if bytes > 0 {
                let align = shared_alignment(kernel);
                printer.line(&format!("extern __shared__ __align__({align}) unsigned char tw_shared[];"));
            }
            printer.tensor_maps(kernel);
            printer.warp_number(kernel);
            for axis in ThreadAxis::ALL {
                let var = axis_var(axis);
                let leads = axis == ThreadAxis::ClusterX && kernel.multiplies_in_pairs();
                // The first block of a cluster claims.
                let leads = leads || kernel.claims.is_some() && axis.is_cluster();
                let is_used = leads || mentions(&kernel.body, &var) || printer.frame.cluster.is_crossed(axis);
                if kernel.launch.contains_key(&axis) && is_used {
                    let of = printer.index_type(printer.frame.wide);
                    printer.line_source = Some(LineSource::Axis(printer.at.0, axis));
                    // A block that takes over others has another place in the grid then.
                    let moves = kernel.claims.is_some() && !axis.is_thread() && !axis.is_cluster();
                    let fixed = if moves { "" } else { "const " };
                    printer.line(&format!("{fixed}{of} {var} = {};", printer.axis(kernel, axis)));
                    printer.line_source = None;
                    printer.frame.axes.push(axis);
                }
            }
            printer.claims(kernel);
            printer.mbarriers(kernel);
            printer.begin_tensor_memory(kernel);
            printer.programmatic_launch(kernel);
            printer.ops(&kernel.body);
            printer.end_tensor_memory(kernel);
        });
        let function = std::mem::take(&mut self.out);
        self.functions.function(function);
    }

    /// CUDA's expression for an axis.
    fn axis(&self, kernel: &Kernel, axis: ThreadAxis) -> String {
        if axis.is_thread() { thread_axis(kernel, axis) } else { self.frame.cluster.block_axis(axis) }
    }

    /// Lets the next kernel start where this one sets itself up, and waits for the one before, whose results it reads and whose reads
    /// it may not overtake. All threads wait: each touches global memory, or comes behind one that does.
    fn programmatic_launch(&mut self, kernel: &Kernel) {
        if kernel.programmatic_launch {
            for it in [Ptx::LaunchDependents, Ptx::AwaitPrerequisites] {
                let name = self.require(Helper::Ptx(it));
                self.line(&format!("{name}();"));
            }
        }
    }

    fn cuda_parameters(&mut self, kernel: &Kernel) -> Vec<String> {
        let mut out = self.map_parameters(kernel);
        for (name, is_written) in &kernel.args {
            let Some(arg) = self.module.args.get(name) else { continue };
            self.require(Helper::Type(arg.dtype, 1));
            out.push(format!("{}__restrict__ {}", self.pointer(arg.dtype, *is_written), identifier(name)));
        }
        out.extend(self.module.dims.iter().map(|it| format!("const long long {}", identifier(it))));
        out
    }
}

/// Whether a variable stands in statements.
pub(super) fn mentions(ops: &[Op], var: &Name) -> bool {
    let mut found = false;
    for op in ops {
        // The rewriting is the identity; it is here for its visits of extents and conditions.
        let _ = op.map_indices(&mut |index: &Index| {
            found |= index.any_var(&|it| it == var);
            index.clone()
        });
    }
    found
}
