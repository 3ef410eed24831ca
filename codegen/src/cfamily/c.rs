//! C: how a kernel begins, and how its loops run on several threads.
//!
//! The body of a parallel loop becomes a function of its own. What it uses from around it, variables by value and
//! private arrays by address, travels in a struct on the caller's stack.

use std::collections::BTreeSet;

use ir::{Alloc, For, Kernel, Name, Op};

use super::{Printer, helper::Helper, names::identifier};

impl Printer<'_> {
    /// A kernel with the interface that [`crate::device::CPU_ABI_HEADER`] describes.
    pub(super) fn c_kernel(&mut self, kernel: &Kernel) {
        self.frame.args.clone_from(&kernel.args);
        let head = format!(
            "void {}(void *const *buffers, const int64_t *dims, const tw_runtime *rt)",
            self.frame.symbol
        );
        let body = Used::by(&kernel.body);
        self.nest(&head, |printer| {
            printer.parameters(&body, "");
            printer.ops(&kernel.body);
        });
        let function = std::mem::take(&mut self.out);
        self.functions.function(function);
    }

    /// Gives the buffers and dimensions that a function uses their names.
    fn parameters(&mut self, used: &Used, from: &str) {
        for (at, (name, is_written)) in self.frame.args.clone().iter().enumerate() {
            let Some(arg) = self.module.args.get(name).filter(|_| used.buffers.contains(name)) else {
                continue;
            };
            self.require(Helper::Type(arg.dtype, 1));
            let (pointer, name) = (self.pointer(arg.dtype, *is_written), identifier(name));
            self.line(&format!("{pointer}restrict {name} = {from}buffers[{at}];"));
        }
        for (at, name) in self.module.dims.iter().enumerate() {
            if used.vars.contains(name) {
                self.line(&format!("const int64_t {} = {from}dims[{at}];", identifier(name)));
            }
        }
    }

    /// A loop whose iterations the runtime hands to threads.
    pub(super) fn parallel_loop(&mut self, it: &For) {
        self.bodies += 1;
        // The number comes last: whatever underscores the names have, no two functions get the same name.
        let function = format!("tw_{}_{}_{}", self.frame.symbol, it.var, self.bodies);
        let used = Used::by(&it.body);
        let loops: Vec<_> = self.frame.loops.iter().filter(|it| used.vars.contains(*it)).cloned().collect();
        let in_scope = self.frame.allocs.iter();
        let allocs: Vec<_> = in_scope.filter(|it| used.buffers.contains(&it.name)).cloned().collect();

        self.outline(&function, it, &used, (&loops, &allocs));
        let extent = self.index(&it.extent);
        let mut captured = vec!["buffers".to_owned(), "dims".to_owned()];
        captured.extend(
            loops.iter().chain(allocs.iter().map(|it| &it.name)).map(|it| identifier(it).into_owned()),
        );
        self.nest("", |printer| {
            printer.line(&format!("struct {function} ctx = {{{}}};", captured.join(", ")));
            printer.line(&format!("rt->parallel(rt, {extent}, {function}, &ctx);"));
        });
    }

    /// The struct of what the body captures, and the function that runs one iteration.
    fn outline(&mut self, function: &str, it: &For, used: &Used, (loops, allocs): (&[Name], &[Alloc])) {
        let caller = std::mem::take(&mut self.out);
        let depth = std::mem::take(&mut self.depth);
        let arrays: Vec<_> = allocs
            .iter()
            .map(|it| (self.pointer(it.dtype, true), identifier(&it.name).into_owned()))
            .collect();

        self.nest(&format!("struct {function}"), |printer| {
            printer.line("void *const *buffers;\nconst int64_t *dims;");
            for name in loops {
                printer.line(&format!("int64_t {};", identifier(name)));
            }
            for (pointer, name) in &arrays {
                printer.line(&format!("{pointer}{name};"));
            }
        });
        self.out.end_declaration();
        let var = identifier(&it.var).into_owned();
        self.nest(&format!("static void {function}(void *tw_ctx, int64_t {var})"), |printer| {
            printer.line(&format!("const struct {function} *const ctx = tw_ctx;"));
            printer.parameters(used, "ctx->");
            for name in loops.iter().map(identifier) {
                printer.line(&format!("const int64_t {name} = ctx->{name};"));
            }
            for (pointer, name) in &arrays {
                printer.line(&format!("{pointer}restrict {name} = ctx->{name};"));
            }
            printer.frame.is_parallel = true;
            printer.inside(it, |printer| printer.ops(&it.body));
            printer.frame.is_parallel = false;
        });

        let outlined = std::mem::replace(&mut self.out, caller);
        self.depth = depth;
        self.functions.function(outlined);
    }
}

/// The names that statements use.
struct Used {
    buffers: BTreeSet<Name>,
    vars: BTreeSet<Name>,
}

impl Used {
    fn by(ops: &[Op]) -> Used {
        let mut used = Used { buffers: BTreeSet::new(), vars: BTreeSet::new() };
        for op in ops {
            op.each_access(&mut |access, _| {
                used.buffers.insert(access.buffer.clone());
            });
            op.each_index(&mut |index| used.vars.extend(index.vars()));
            op.tables(&mut used.buffers);
        }
        used
    }
}
