//! A kernel in its text form on the virtual GPU: alone, or beside the program that it computes.

use std::path::Path;

use indexmap::IndexMap;
use ir::{Arg, Index, Module, Name, Role};
use schedule::workload::Param;
use tuner::{Case, Tensor};

use super::{Inspected, VirtualRun, against, inspect};
use crate::{
    diagnostic::Diagnostic,
    measuring::case,
    plan::{Plan, no_value, read},
    source::place,
    term::shell::Shell,
    term::table::counted,
    usage_error::UsageError,
};

/// `run KERNEL.tw --target vgpu`.
pub(crate) struct Kernel<'a> {
    pub(crate) path: &'a Path,
    /// The values of symbolic dimensions, of the kernel's and of the reference's.
    pub(crate) dims: &'a IndexMap<Name, i64>,
    /// The parameters of the reference.
    pub(crate) params: &'a [(String, Param)],
    pub(crate) seed: u64,
    /// What tells its numbers: a script, or a program in the text form.
    pub(crate) reference: Option<&'a Path>,
}

impl Kernel<'_> {
    pub(crate) fn run(&self, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
        let name = self.path.display().to_string();
        let text = read(self.path)?;
        let module = ir::text::parse_module(&text).map_err(|err| {
            let span = place(&text, err.line, err.column);
            Diagnostic::failed(&err.kind, err.kind.to_string()).at(self.path, &text, span)
        })?;
        let it = match self.reference {
            Some(reference) => self.beside(reference, &name, module, shell)?,
            None => self.alone(&name, module, shell)?,
        };
        let beside = self.reference.map(|it| format!(", beside {}", it.display())).unwrap_or_default();
        let heading = format!("kernel     {name}{beside}, on inputs drawn from seed {}", self.seed);
        shell.report(&VirtualRun { heading, ..it.report(&name, "virtual GPU") })?;
        it.verdict(&name).map_or(Ok(()), Err)
    }

    /// Nothing tells what its numbers must be.
    fn alone(&self, name: &str, module: Module, shell: &mut Shell<'_>) -> Result<Inspected, Diagnostic> {
        if let Some((name, _)) = self.params.first() {
            let title = format!("a kernel in its text form has no parameters, and so no `{name}`");
            return Err(Diagnostic::usage(UsageError::TextParams, title));
        }
        let mut inputs = IndexMap::new();
        for (n, (buffer, arg)) in (0..).zip(module.args.iter().filter(|(_, it)| it.role == Role::Input)) {
            let len = self.len(buffer, arg)?;
            let below = arg.below.as_ref().and_then(|it| it.eval(&|dim| self.dims.get(dim).copied()));
            inputs.insert(
                buffer.clone(),
                Tensor::random_below(arg.dtype, &[len], below, self.seed, n).to_f64(),
            );
        }
        inspect(name, module, self.dims, &inputs, self.seed, None, shell)
    }

    /// The reference tells them.
    fn beside(
        &self,
        reference: &Path,
        name: &str,
        module: Module,
        shell: &mut Shell<'_>,
    ) -> Result<Inspected, Diagnostic> {
        let mut plan = Plan::load_any(reference, self.params)?;
        let is_own = |it: &Name| plan.func.dims.contains(it) || !module.dims.contains(it);
        plan.dims =
            self.dims.iter().filter(|it| is_own(it.0)).map(|(name, it)| (name.clone(), *it)).collect();
        plan.expect_dims()?;
        let case = case(&plan, self.seed, true)?;
        self.expect_fit(&module, &case)?;
        against(&case, name, module, Some(self.dims), shell)
    }

    /// Refuses a kernel whose inputs and outputs are not those of the reference: by name, role, type and number of elements.
    fn expect_fit(&self, module: &Module, case: &Case) -> Result<(), Diagnostic> {
        let refuse = |title: String| Diagnostic::usage(UsageError::Reference, title);
        let theirs = || case.func.buffers.iter().filter(|it| it.1.role != Role::Temp);
        let ours = || module.args.iter().filter(|it| it.1.role != Role::Temp);
        for (name, arg) in ours() {
            let Some(buffer) = case.func.buffers.get(name).filter(|it| it.role == arg.role) else {
                let near = theirs().filter(|it| it.1.role == arg.role && !module.args.contains_key(it.0));
                let near: Vec<_> = near.map(|it| format!("`{}`", it.0)).collect();
                let help =
                    (!near.is_empty()).then(|| format!("what the kernel lacks is {}", near.join(", ")));
                let title = format!("the reference has no {} `{name}`", role(arg.role));
                return Err(refuse(title).help(help));
            };
            if buffer.dtype != arg.dtype {
                let (ours, theirs) = (arg.dtype, buffer.dtype);
                return Err(refuse(format!(
                    "`{name}` is {ours} in the kernel and {theirs} in the reference"
                )));
            }
            let value = |it: &Index| it.eval(&|it| case.dims.get(it).copied());
            let shape: Option<Vec<i64>> = buffer.shape.iter().map(value).collect();
            let shape = shape.unwrap_or_default();
            let (ours, theirs) = (self.len(name, arg)?, shape.iter().product::<i64>());
            if usize::try_from(theirs) != Ok(ours) {
                let shape: Vec<_> = shape.iter().map(ToString::to_string).collect();
                let (ours, shape) = (counted(ours, "element"), shape.join("x"));
                let title =
                    format!("`{name}` has {ours} in the kernel and {theirs} in the reference ({shape})");
                let help = "the sizes of the reference are its own, or `--param` and `--dim`";
                return Err(refuse(title).help(help.to_owned()));
            }
        }
        match theirs().find(|it| !module.args.contains_key(it.0)) {
            Some((name, it)) => Err(refuse(format!("the kernel has no {} `{name}`", role(it.role)))),
            None => Ok(()),
        }
    }

    /// How many elements an argument has.
    fn len(&self, buffer: &Name, arg: &Arg) -> Result<usize, Diagnostic> {
        if let Some(dim) = arg.elements().vars().into_iter().find(|it| !self.dims.contains_key(it)) {
            return Err(no_value(&dim));
        }
        let count = arg.elements().eval(&|it| self.dims.get(it).copied());
        let len = count.and_then(|it| usize::try_from(it).ok()).filter(|it| *it <= 1 << 30);
        len.ok_or_else(|| {
            let count = count.map_or_else(|| arg.elements().to_string(), |it| it.to_string());
            let title =
                format!("{} `{buffer}` would have {count} elements, and 2^30 is the most", role(arg.role));
            let help = (!self.dims.is_empty()).then(|| "give the dimensions smaller values".to_owned());
            Diagnostic::usage(UsageError::Huge, title).help(help)
        })
    }
}

/// What a buffer is to whoever calls a program.
fn role(it: Role) -> &'static str {
    match it {
        Role::Input => "input",
        Role::Output => "output",
        Role::Temp => "temporary",
    }
}
