//! Where the parts of an expansion come from.

use std::{ops::Range, sync::Arc};

use crate::ScriptError;

/// A text with procedures: the script, or a library.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct SourceText {
    /// Its path, or the name of a library.
    pub name: Arc<str>,
    pub text: Arc<str>,
}

/// A place in one of the texts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Site {
    /// The number of the text; 0 is the script.
    pub source: usize,
    pub span: Range<usize>,
    /// The call whose expansion it belongs to.
    pub call: Option<usize>,
}

/// A call of a procedure, or a repetition.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Call {
    /// Where it stands.
    pub site: Site,
    /// What is called.
    pub procedure: Arc<str>,
}

/// A piece of an expansion and the piece of a text that it stands for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Piece {
    /// Where it begins in the expansion.
    pub start: usize,
    /// What it was made of.
    pub site: Site,
    /// Where the argument was given that it was made of; none if it was copied.
    pub argument: Option<Site>,
}

/// A script in which plain steps stand in place of calls of procedures.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Expanded {
    pub(super) text: Arc<str>,
    pub(super) sources: Vec<SourceText>,
    pub(super) pieces: Vec<Piece>,
    pub(super) calls: Vec<Call>,
}

/// A place in a script or in a library, as readers of an error are shown it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Frame {
    /// The path of the script, or the name of the library.
    pub source: Arc<str>,
    /// The text of the script or the library.
    pub text: Arc<str>,
    /// The place, in bytes of the text.
    pub span: Range<usize>,
    /// The procedure that is called there, if it is a call.
    pub calls: Option<Arc<str>>,
}

/// Procedures that cannot be expanded.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[error("{error}")]
pub struct ProcedureError {
    /// What is wrong, placed in the text of the first frame.
    pub error: ScriptError,
    /// Where, and the calls around it from the inside out.
    pub frames: Vec<Frame>,
}

impl Expanded {
    /// A text that is its own expansion.
    pub fn plain(name: &str, text: &str) -> Expanded {
        let source = SourceText { name: name.into(), text: text.into() };
        let site = Site { source: 0, span: 0..text.len(), call: None };
        Expanded {
            text: source.text.clone(),
            sources: vec![source],
            pieces: vec![Piece { start: 0, site, argument: None }],
            calls: vec![],
        }
    }

    /// The text of the expansion: a script without procedures.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The text that was expanded.
    pub fn original(&self) -> &str {
        &self.sources[0].text
    }

    /// The procedures that were called, and `for_each` with what it took, in the order of their expansion.
    pub fn called(&self) -> impl Iterator<Item = &str> {
        self.calls.iter().map(|it| &*it.procedure)
    }

    /// The libraries that were read, in order.
    pub fn libraries(&self) -> impl Iterator<Item = &str> {
        self.sources.iter().skip(1).map(|it| &*it.name)
    }

    /// What stands behind a place in the expansion: the line of the script or of the definition, and then the calls around
    /// it, from the inside out.
    pub fn frames(&self, place: &Range<usize>) -> Vec<Frame> {
        let last = place.end.saturating_sub(1).max(place.start);
        let (first, last) = (self.site_of(place.start, false), self.site_of(last, true));
        // A span over several calls is one of the script around them.
        let depth = |site: &Site| self.chain(site).len();
        let (mut first, mut last) = (first, last);
        while (first.source, first.call) != (last.source, last.call) {
            let deeper = if depth(&first) >= depth(&last) { &mut first } else { &mut last };
            let Some(call) = deeper.call else { break };
            *deeper = self.calls[call].site.clone();
        }
        let span = first.span.start..last.span.end.max(first.span.start);
        let mut out = frames(&self.sources, &self.calls, &Site { span, ..first });
        if let Some(argument) = self.argument_of(place) {
            // Of the call only what it gives is of interest.
            let name = &self.sources[argument.source].name;
            let is_around = |it: &&mut Frame| {
                it.source == *name && it.span.start <= argument.span.start && argument.span.end <= it.span.end
            };
            if let Some(call) = out.iter_mut().skip(1).find(is_around) {
                call.span = argument.span.clone();
            }
        }
        out
    }

    /// The argument that all of a place was made of.
    fn argument_of(&self, span: &Range<usize>) -> Option<&Site> {
        let n = self.pieces.partition_point(|it| it.start <= span.start).checked_sub(1)?;
        let ends = self.pieces.get(n + 1).map_or(self.text.len(), |it| it.start);
        self.pieces[n].argument.as_ref().filter(|_| span.end <= ends)
    }

    /// What a byte of the expansion stands for: itself where it was copied, all of a placeholder where it was not.
    fn site_of(&self, at: usize, is_last: bool) -> Site {
        let n = self.pieces.partition_point(|it| it.start <= at).saturating_sub(1);
        let Some(piece) = self.pieces.get(n) else { return Site { source: 0, span: 0..0, call: None } };
        let mut site = piece.site.clone();
        if piece.argument.is_none() {
            let from = (site.span.start + (at - piece.start.min(at))).min(site.span.end);
            let text = &self.sources[site.source].text;
            let behind = (from + 1..=site.span.end).find(|it| text.is_char_boundary(*it));
            let end = if is_last { behind.unwrap_or(site.span.end) } else { site.span.end };
            let from = (0..=from).rev().find(|it| text.is_char_boundary(*it)).unwrap_or(0);
            site.span = from..end;
        }
        site
    }

    /// The calls around a place, the innermost first.
    fn chain(&self, site: &Site) -> Vec<usize> {
        std::iter::successors(site.call, |it| self.calls[*it].site.call).collect()
    }
}

/// A place and the calls around it.
pub(super) fn frames(sources: &[SourceText], calls: &[Call], site: &Site) -> Vec<Frame> {
    let frame = |site: &Site, calls: Option<Arc<str>>| {
        let SourceText { name, text } = sources[site.source].clone();
        Frame { source: name, text, span: site.span.clone(), calls }
    };
    let around = std::iter::successors(site.call, |it| calls[*it].site.call);
    let around = around.map(|it| frame(&calls[it].site, Some(calls[it].procedure.clone())));
    [frame(site, None)].into_iter().chain(around).collect()
}
