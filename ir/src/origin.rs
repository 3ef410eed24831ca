//! `Origin`: where an instruction of a kernel comes from.

use std::{
    fmt::{self, Display, Formatter},
    sync::Arc,
};

use crate::{Name, pipeline::Section};

/// Where an instruction comes from: the block of the scheduled program that it is of, and its place in each software
/// pipeline around it.
///
/// Passes hand it on from what they rewrite to what they make of it; none asks it what to do. It is for those who explain a
/// kernel: in texts of kernels, in timelines, and on the page of a schedule. In texts it reads
/// `C @ko steady 0 component 1`. One origin is shared by all instructions that have it, so that a copy costs no memory.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Origin(Option<Arc<Source>>);

#[derive(PartialEq, Eq, Debug)]
struct Source {
    block: Option<Name>,
    steps: Vec<PipelineStep>,
}

/// A place in the steps of an expanded software pipeline.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PipelineStep {
    /// The pipelined loop, by the name that it has in the scheduled program.
    pub var: Name,
    /// The part of its expansion.
    pub section: Section,
    /// The step of that part, from zero.
    pub step: usize,
    /// The component that runs there, by its place in the pipeline. What orders steps stands before this one, or,
    /// where there is none, after all.
    pub component: Option<usize>,
}

impl Origin {
    fn new(block: Option<Name>, steps: Vec<PipelineStep>) -> Origin {
        let is_known = block.is_some() || !steps.is_empty();
        Origin(is_known.then(|| Arc::new(Source { block, steps })))
    }

    /// Of a block, in no pipeline.
    pub fn of(block: &Name) -> Origin {
        Origin::new(Some(block.clone()), vec![])
    }

    /// Whether nothing is known.
    pub const fn is_unknown(&self) -> bool {
        self.0.is_none()
    }

    /// The block of the scheduled program, by the name that it has there; none where lowering put something in that
    /// computes nothing.
    pub fn block(&self) -> Option<&Name> {
        self.0.as_ref()?.block.as_ref()
    }

    /// The places in the pipelines around it, outer ones first.
    pub fn steps(&self) -> &[PipelineStep] {
        self.0.as_ref().map_or(&[], |it| &it.steps)
    }

    /// Its place in the pipeline of a loop.
    pub fn step_of(&self, var: &Name) -> Option<&PipelineStep> {
        self.steps().iter().find(|it| it.var == *var)
    }

    /// The same in a step of a pipeline around all that is known so far.
    #[must_use]
    pub fn inside(&self, step: PipelineStep) -> Origin {
        let steps = [step].into_iter().chain(self.steps().iter().cloned()).collect();
        Origin::new(self.block().cloned(), steps)
    }

    /// The same at the place of another instruction in the same pipelines.
    #[must_use]
    pub fn moved_to(&self, other: &Origin) -> Origin {
        let steps = self.steps().iter().map(|it| other.step_of(&it.var).unwrap_or(it).clone());
        Origin::new(self.block().cloned(), steps.collect())
    }

    /// Reads what is printed.
    ///
    /// # Errors
    /// What should stand there, in words.
    pub fn parse(text: &str) -> Result<Origin, String> {
        let mut parts = text.split('@').map(str::trim);
        let block = parts.next().filter(|it| !it.is_empty()).map(Name::new);
        let steps = parts.map(PipelineStep::parse).collect::<Option<Vec<_>>>();
        match (block, steps) {
            (block, Some(steps)) if block.as_ref().is_none_or(Name::is_valid) => {
                Ok(Origin::new(block, steps))
            }
            (_, _) => Err("an origin such as `C @ko steady 0 component 1`".to_owned()),
        }
    }
}

impl PipelineStep {
    fn parse(text: &str) -> Option<PipelineStep> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let (&[var, section, step], rest) = words.split_first_chunk()?;
        let component = match rest {
            [] => None,
            ["component", number] => Some(number.parse().ok()?),
            _ => return None,
        };
        let var = Some(Name::new(var)).filter(Name::is_valid)?;
        Some(PipelineStep { var, section: Section::parse(section)?, step: step.parse().ok()?, component })
    }
}

impl Display for Origin {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut blank = "";
        if let Some(block) = self.block() {
            write!(f, "{block}")?;
            blank = " ";
        }
        for step in self.steps() {
            write!(f, "{blank}{step}")?;
            blank = " ";
        }
        Ok(())
    }
}

impl Display for PipelineStep {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "@{} {} {}", self.var, self.section.as_str(), self.step)?;
        self.component.map_or(Ok(()), |it| write!(f, " component {it}"))
    }
}
