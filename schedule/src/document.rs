//! What a text in RON is: a script, a workload, a library, or none of tilewright's.

use crate::{
    ron_letters::field,
    ron_tokens::{TokenKind, tokens},
};

/// The sorts of texts in RON that tilewright reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Document {
    /// `schedule(…)`: [`crate::Script`].
    Script,
    /// `workload(…)`: [`crate::workload`].
    Workload,
    /// `library(…)`: [`crate::procedure`].
    Library,
}

impl Document {
    /// The sort of a text: what its first word says, or where it has none which fields it has. Broken texts have one, too, while
    /// somebody is writing them; none is told of RON that is clearly something else.
    pub fn of(text: &str) -> Option<Document> {
        let is_attribute = |it: &str| it.starts_with("#!");
        let first = tokens(text)
            .into_iter()
            .find(|it| !it.kind.is_comment() && !is_attribute(&text[it.span.clone()]))?;
        let named = match &text[first.span] {
            "schedule" => Some(Document::Script),
            "workload" => Some(Document::Workload),
            "library" => Some(Document::Library),
            _ => None,
        };
        if named.is_some() || first.kind != TokenKind::Open {
            return named;
        }
        let has = |key: &str| field(text, key).is_some();
        if has("workload") && has("steps") {
            Some(Document::Script)
        } else if has("tensors") && has("stages") {
            Some(Document::Workload)
        } else {
            (has("define") && !has("steps")).then_some(Document::Library)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Document::{self, Library, Script, Workload};

    #[test]
    fn texts_are_told_by_their_first_word_or_their_fields() {
        let of = |text: &str| Document::of(text);
        assert_eq!(of("// mine\n#![enable(implicit_some)]\nschedule(steps: ["), Some(Script));
        assert_eq!([of("workload("), of("library")], [Some(Workload), Some(Library)]);
        assert_eq!(of("(workload: \"matmul\", steps: [])"), Some(Script));
        assert_eq!(of("(tensors: {}, stages: [])"), Some(Workload));
        assert_eq!(of("(define: {})"), Some(Library));
        for other in ["", "()", "Config(steps: [])", "[1, 2]", "\"schedule\"", "(steps: [], define: {})"] {
            assert_eq!(of(other), None, "{other}");
        }
    }
}
