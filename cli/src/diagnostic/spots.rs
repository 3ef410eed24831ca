//! The parts of a diagnostic, for those who show it in another way than as text: editors.

use std::ops::Range;

use ir::Name;

use super::{Diagnostic, clamp};

/// A place that a diagnostic points at.
#[derive(Clone, Debug)]
pub(crate) struct Spot<'a> {
    /// The path of a file, the name of a library, or what else the text is.
    pub(crate) source: &'a str,
    /// The text.
    pub(crate) text: &'a str,
    /// The place in it, in bytes.
    pub(crate) span: Range<usize>,
    /// What happens there.
    pub(crate) label: Option<&'a str>,
    /// Whether it is what is wrong, and not what that has to do with.
    pub(crate) is_primary: bool,
    /// Whether it is a call of the procedure in which something is wrong.
    pub(crate) is_call: bool,
}

impl Diagnostic {
    /// What is wrong, one thing after the other.
    pub(crate) fn each(&self) -> Vec<&Diagnostic> {
        let mut out = vec![self];
        out.extend(self.more.iter().flat_map(Diagnostic::each));
        out
    }

    /// The first of these things as text for people.
    pub(crate) fn render_alone(&self, columns: usize) -> String {
        self.render_one(false, columns)
    }

    /// The places of the first of these things, the one that is to blame before others.
    pub(crate) fn spots(&self) -> impl Iterator<Item = Spot<'_>> {
        self.texts.iter().flat_map(|text| {
            text.marks.iter().map(|it| Spot {
                source: &text.name,
                text: &text.text,
                span: clamp(&it.span, &text.text),
                label: it.label.as_deref(),
                is_primary: it.primary,
                is_call: it.is_call,
            })
        })
    }

    /// The first place in a text of that name, a call before what is wrong in its procedure.
    pub(crate) fn place_in(&self, own: &str) -> Option<Range<usize>> {
        let own: Vec<_> = self.spots().filter(|it| it.source == own).collect();
        let call = own.iter().rfind(|it| it.is_call);
        call.or(own.iter().find(|it| it.is_primary)).or(own.first()).map(|it| it.span.clone())
    }

    /// What to try instead.
    pub(crate) fn advice(&self) -> Option<&str> {
        self.help.as_deref()
    }

    /// What in a program it is about, the culprit first.
    pub(crate) fn names(&self) -> impl Iterator<Item = &Name> {
        self.texts.iter().flat_map(|it| &it.names)
    }
}
