//! What the annotations of a pipeline are called, and what words they take.

/// The annotation that gives each statement its stage.
pub const STAGE: &str = "software_pipeline_stage";
/// The annotation that gives each statement its place in the new body.
pub const ORDER: &str = "software_pipeline_order";
/// The annotation that lists the stages whose statements copy asynchronously.
pub const ASYNC: &str = "software_pipeline_async_stages";
/// The annotation that lists further statements that do, each by one of its blocks.
pub const ASYNC_BLOCKS: &str = "software_pipeline_async_blocks";
/// The annotation that says by which mechanism they do, where a script forces one.
pub const MECHANISM: &str = "software_pipeline_mechanism";
/// The annotation with the loop around, whose iterations one run of the pipeline goes through.
pub const ACROSS: &str = "software_pipeline_across";
/// The annotation that says how prologue and epilogue are emitted: `peel`, `peel_prologue` or `predicate`.
pub const STYLE: &str = "software_pipeline_style";
/// The annotation with the blocks whose stores only the last iteration decides.
pub const BENIGN: &str = "software_pipeline_benign";
/// The annotation of a block whose buffer shall have two slots at least.
pub const DOUBLE: &str = "double_buffer_scope";
/// The annotation of a block whose buffer shall have that many slots at least.
pub const SLOTS: &str = "double_buffer_slots";

/// The note that says why stages, order and slots are as they are, where they were worked out.
pub const REASON: &str = "software_pipeline_reason";

/// The greatest stage: prologue and epilogue are written out that many times.
pub const LAST_STAGE: i64 = 16;

/// How the prologue and the epilogue are emitted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Style {
    /// Written out before and after the steady loop, which has no conditions.
    Peel,
    /// The prologue written out before a loop over all iterations, in which a statement that runs ahead has the condition that it has an
    /// iteration left.
    PeelPrologue,
    /// One loop over all times, each statement under the condition that it has an iteration to run.
    Predicate,
}

impl Style {
    /// The word in scripts.
    pub const fn as_str(self) -> &'static str {
        match self {
            Style::Peel => "peel",
            Style::PeelPrologue => "peel_prologue",
            Style::Predicate => "predicate",
        }
    }

    /// The style of a word.
    pub fn parse(text: &str) -> Option<Style> {
        [Style::Peel, Style::PeelPrologue, Style::Predicate].into_iter().find(|it| it.as_str() == text)
    }
}
