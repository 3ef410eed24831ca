//! Programs as plans of no steps.

use std::path::Path;

use indexmap::IndexMap;
use schedule::{Decisions, script::Script, workload::Param};

use super::{Plan, read};
use crate::{
    diagnostic::Diagnostic, script_text::ScriptText, source::program_of, text_file::is_program,
    usage_error::UsageError,
};

impl Plan {
    /// A script, or a program as a script of no steps.
    pub(crate) fn load_any(path: &Path, params: &[(String, Param)]) -> Result<Plan, Diagnostic> {
        if !is_program(path) {
            return Plan::load(path, params);
        }
        if let Some((name, _)) = params.first() {
            let title = format!("a program has no parameters, and so no `{name}`");
            return Err(Diagnostic::usage(UsageError::TextParams, title));
        }
        let text = read(path)?;
        let func = program_of(path, &text)?;
        let mut script = Script::parse("schedule(workload: \"./program.tw\", steps: [])")
            .expect("a workload and no steps are a script");
        script.workload.value = func.name.to_string();
        let (params, all_params, dims) = (IndexMap::new(), IndexMap::new(), IndexMap::new());
        Ok(Plan {
            path: path.to_owned(),
            text: ScriptText::plain(&path.display().to_string(), &text),
            script,
            params,
            func,
            dims,
            steps: vec![],
            spans: vec![],
            decisions: Decisions::new(),
            all_params,
        })
    }
}
