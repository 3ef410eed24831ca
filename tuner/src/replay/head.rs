//! What was tuned, read from the head of a run.

use schedule::{ScriptError, script::Script, workload::Param};

use crate::{
    Space,
    build::Problem,
    log::Run,
    protocol::{MessageError, ProblemText},
};

/// Why the head of a run does not tell what was tuned.
#[derive(Debug, thiserror::Error)]
pub enum HeadError {
    /// Its script cannot be read, or spans no such space.
    #[error("its script: {0}")]
    Script(#[from] ScriptError),
    /// A parameter is no parameter.
    #[error("its parameter `{name}`: {reason}")]
    Param {
        /// The parameter.
        name: String,
        /// What the parser says.
        reason: String,
    },
    /// Its workload or its target cannot be read.
    #[error("its workload: {0}")]
    Problem(#[from] MessageError),
}

ir::codes!(HeadError {
    Script = 4201,
    Param = 4201,
    Problem = 4201,
});

impl Run {
    /// What was tuned.
    pub fn problem(&self) -> Result<Problem, HeadError> {
        let text = ProblemText {
            program: self.workload.program.clone(),
            dims: self.workload.dims.clone(),
            seed: self.seed,
            target: self.target.clone(),
        };
        Ok(text.problem()?)
    }

    /// The space as it was: that of the script, with the choices that knobs had.
    pub fn space(&self) -> Result<Space, HeadError> {
        let script = Script::parse(&self.script.text)?;
        let params = self.script.params.iter().map(|(name, it)| {
            let value = serde_json::from_value::<Param>(it.clone());
            let value =
                value.map_err(|err| HeadError::Param { name: name.clone(), reason: err.to_string() })?;
            Ok((name.clone(), value))
        });
        let params = params.collect::<Result<_, HeadError>>()?;
        Ok(Space::of(&script, &params)?.with_choices(&self.script.knobs)?)
    }
}
