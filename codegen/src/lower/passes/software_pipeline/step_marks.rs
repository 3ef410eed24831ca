//! Marks in a kernel that tell where the statements of a pipeline begin and its steps end. Only timelines want them.

use ir::{
    Instr, Mark,
    pipeline::{Emission, EmissionPoint, Insertions, PipelinePlan, Section},
};

use crate::lower::marks;

/// Adds a mark before each statement and after each step.
pub(crate) fn add(marks: &mut Insertions, plan: &PipelinePlan, emission: &Emission) {
    let steady = emission.steady.as_ref().map_or(&[][..], |it| &it.steps);
    let sections = [
        (Section::Prologue, &emission.prologue[..]),
        (Section::Steady, steady),
        (Section::Epilogue, &emission.epilogue),
    ];
    for (section, steps) in sections {
        for (number, step) in steps.iter().enumerate() {
            for at in 0..=step.len() {
                let component = step.get(at).map(|it| it.component);
                let mark = Mark { var: plan.var.clone(), section, step: number, component };
                let place = EmissionPoint { section, step: number, at };
                marks.entry(place).or_default().push(marks::instruction("pipeline_note", Instr::Mark(mark)));
            }
        }
    }
}
