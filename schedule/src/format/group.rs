//! What stands in brackets: which tokens, how many calls, and whether it is broken into lines.

use crate::ron_tokens::{Token, TokenKind, tokens};

/// The tokens of a text without commas that a layout may put in or leave out, and its brackets.
pub(super) struct Groups<'a> {
    pub(super) text: &'a str,
    pub(super) tokens: Vec<Token>,
    pub(super) all: Vec<Group>,
    /// For each token the brackets that it stands in, if any; brackets stand in those around them.
    pub(super) within: Vec<Option<usize>>,
    /// For each bracket what it belongs to.
    pub(super) of: Vec<Option<usize>>,
}

/// Whether what stands in brackets is broken into lines.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Lines {
    /// It is not.
    One,
    /// It is, where its author said so.
    Kept,
    /// It is, with a line for each element.
    Each,
}

/// A pair of brackets.
pub(super) struct Group {
    pub(super) open: usize,
    pub(super) close: usize,
    /// Whether it is broken into lines.
    pub(super) lines: Lines,
    /// Whether a comma may follow its last element: not where that could make a tuple of a value.
    pub(super) has_commas: bool,
    /// How many calls stand in it, at any depth.
    pub(super) calls: usize,
    /// Whether something in it is broken.
    pub(super) holds_broken: bool,
}

impl<'a> Groups<'a> {
    pub(super) fn of(text: &'a str) -> Groups<'a> {
        let mut out = Groups {
            text,
            tokens: with_commas_behind_values(tokens(text)),
            all: vec![],
            within: vec![],
            of: vec![],
        };
        out.pair();
        out.drop_last_commas();
        out.find_broken();
        out
    }

    /// Finds the brackets that belong together.
    fn pair(&mut self) {
        (self.all, self.within, self.of) = (vec![], vec![], vec![]);
        let mut around: Vec<usize> = vec![];
        for (at, token) in self.tokens.iter().enumerate() {
            let mut own = None;
            if token.kind == TokenKind::Close {
                own = around.pop();
                if let Some(it) = own {
                    self.all[it].close = at;
                }
            }
            self.within.push(around.last().copied());
            if token.kind == TokenKind::Open {
                own = Some(self.all.len());
                around.extend(own);
                self.all.push(Group::new(at, self.tokens.len() - 1));
            }
            self.of.push(own);
        }
        for at in 0..self.tokens.len() {
            self.look_at(at);
        }
    }

    /// Notes what a token says about the brackets around it.
    fn look_at(&mut self, at: usize) {
        let Some(within) = self.within[at] else { return };
        if self.tokens[at].kind == TokenKind::Colon {
            self.all[within].has_commas = true;
        }
        if self.is_call(at) {
            let mut around = Some(within);
            while let Some(it) = around {
                self.all[it].calls += 1;
                around = self.within[self.all[it].open];
            }
        }
    }

    /// Whether a call begins at a token, as `split(`.
    pub(super) fn is_call(&self, at: usize) -> bool {
        let kind = |at: usize| self.tokens.get(at).map(|it| it.kind);
        kind(at) == Some(TokenKind::Word) && kind(at + 1) == Some(TokenKind::Open) && self.word(at + 1) == "("
    }

    /// The letters of a token.
    pub(super) fn word(&self, at: usize) -> &'a str {
        &self.text[self.tokens[at].span.clone()]
    }

    /// Leaves out commas behind last elements: the layout says where they are.
    fn drop_last_commas(&mut self) {
        let is_last = |at: usize| {
            let next = self.tokens[at + 1..].iter().find(|it| !it.kind.is_comment());
            next.is_some_and(|it| it.kind == TokenKind::Close)
        };
        let goes = |at: usize| {
            let within = self.within[at].map(|it| self.has_commas(it));
            self.tokens[at].kind == TokenKind::Comma && within == Some(true) && is_last(at)
        };
        let goes: Vec<bool> = (0..self.tokens.len()).map(goes).collect();
        let mut goes = goes.into_iter();
        self.tokens.retain(|_| goes.next() != Some(true));
        self.pair();
    }

    /// Whether commas behind last elements mean nothing.
    pub(super) fn has_commas(&self, group: usize) -> bool {
        let it = &self.all[group];
        it.has_commas || self.word(it.open) != "("
    }

    /// Says which brackets are broken: those in which a line ends, and lists of calls in which something is broken.
    fn find_broken(&mut self) {
        for at in 1..self.tokens.len() {
            let ends_line = self.tokens[at - 1].kind == TokenKind::LineComment
                || self.tokens[at].kind == TokenKind::LineComment
                || self.tokens[at].lines > 0;
            let gap = if self.tokens[at].kind == TokenKind::Close { self.of[at] } else { self.within[at] };
            let Some(it) = gap.map(|it| &mut self.all[it]) else { continue };
            if ends_line && it.close > it.open + 1 {
                it.lines = Lines::Kept;
            }
        }
        // Inner brackets come after those around them.
        for it in (0..self.all.len()).rev() {
            let is_list = self.word(self.all[it].open) == "[";
            if is_list && self.all[it].holds_broken && self.own_calls(it) > 1 {
                self.all[it].lines = Lines::Kept;
            }
            let is_broken = self.all[it].is_broken() || self.all[it].holds_broken;
            if let Some(around) = self.within[self.all[it].open] {
                self.all[around].holds_broken |= is_broken;
            }
        }
    }

    /// How many of the elements of a list are calls.
    pub(super) fn own_calls(&self, group: usize) -> usize {
        let Group { open, close, .. } = self.all[group];
        (open..close).filter(|it| self.within[*it] == Some(group) && self.is_call(*it)).count()
    }
}

impl Group {
    pub(super) fn is_broken(&self) -> bool {
        self.lines != Lines::One
    }

    fn new(open: usize, close: usize) -> Group {
        Group { open, close, lines: Lines::One, has_commas: false, calls: 0, holds_broken: false }
    }
}

/// Puts each comma behind the value that it ends, in front of comments.
fn with_commas_behind_values(tokens: Vec<Token>) -> Vec<Token> {
    let mut out: Vec<Token> = vec![];
    for token in tokens {
        let is_comma = token.kind == TokenKind::Comma;
        let value = out.iter().rposition(|it| !it.kind.is_comment()).filter(|_| is_comma);
        match value {
            Some(value) if value + 1 < out.len() => out.insert(value + 1, Token { lines: 0, ..token }),
            Some(_) | None => out.push(token),
        }
    }
    out
}
