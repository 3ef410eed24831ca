//! From brackets and tokens to lines.

use super::{
    WIDTH,
    group::{Groups, Lines},
};
use crate::ron_tokens::TokenKind;

/// What stands between two tokens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Gap {
    Nothing,
    Spaces(usize),
    Line { indent: usize, is_empty_before: bool },
}

/// Lays out a text once.
pub(super) fn lay_out(text: &str) -> String {
    let groups = Groups::of(text);
    let indents = vec![0; groups.all.len()];
    let end_of_line =
        if text.split('\n').next().is_some_and(|it| it.ends_with('\r')) { "\r\n" } else { "\n" };
    let mut layout = Layout { groups, end_of_line, out: String::new(), indents, indent: 0 };
    for at in 0..layout.groups.tokens.len() {
        layout.token(at);
    }
    if !layout.out.is_empty() {
        layout.out.push_str(end_of_line);
    }
    layout.out
}

struct Layout<'a> {
    groups: Groups<'a>,
    /// How the lines of the text end.
    end_of_line: &'static str,
    out: String,
    /// For each pair of brackets the indentation of the line that opens it.
    indents: Vec<usize>,
    /// The indentation of the line that is being written.
    indent: usize,
}

impl Layout<'_> {
    fn token(&mut self, at: usize) {
        match self.gap(at) {
            Gap::Nothing => {}
            Gap::Spaces(count) => self.out.extend(std::iter::repeat_n(' ', count)),
            Gap::Line { indent, is_empty_before } => {
                self.out.push_str(if is_empty_before { self.end_of_line } else { "" });
                self.out.push_str(self.end_of_line);
                self.out.extend(std::iter::repeat_n(' ', indent));
                self.indent = indent;
            }
        }
        if let (Some(own), TokenKind::Open) = (self.groups.of[at], self.groups.tokens[at].kind) {
            self.indents[own] = self.indent;
            self.break_if_long(own);
        }
        self.out.push_str(self.groups.word(at));
        if self.is_last_value(at) {
            self.out.push(',');
        }
    }

    /// Breaks what would be too long, and holds several steps.
    fn break_if_long(&mut self, group: usize) {
        let it = &self.groups.all[group];
        // A list of one step is as long as that, which is broken instead.
        let is_single = self.groups.word(it.open) == "[" && self.groups.own_calls(group) == 1;
        if it.is_broken() || it.holds_broken || it.calls < 2 || is_single {
            return;
        }
        let line = self.out.rfind('\n').map_or(0, |it| it + 1);
        let width: usize = (it.open..=it.close).map(|at| self.width(at, it.open)).sum();
        if self.out[line..].chars().count() + width > WIDTH {
            self.groups.all[group].lines = Lines::Each;
        }
    }

    /// The columns of a token of what is on one line, with the blanks before it unless it is the first.
    fn width(&self, at: usize, first: usize) -> usize {
        let blanks = match self.gap(at) {
            Gap::Spaces(count) if at > first => count,
            Gap::Spaces(_) | Gap::Nothing | Gap::Line { .. } => 0,
        };
        blanks + self.groups.word(at).chars().count()
    }

    /// Whether a comma is due behind a token: it ends the last element of what is broken.
    fn is_last_value(&self, at: usize) -> bool {
        let kind = self.groups.tokens[at].kind;
        let next = (at + 1..self.groups.tokens.len()).find(|it| !self.groups.tokens[*it].kind.is_comment());
        let Some(next) = next.filter(|it| self.groups.tokens[*it].kind == TokenKind::Close) else {
            return false;
        };
        let Some(group) = self.groups.of[next] else { return false };
        let is_value = !kind.is_comment() && kind != TokenKind::Comma && at != self.groups.all[group].open;
        is_value && self.groups.all[group].is_broken() && self.groups.has_commas(group)
    }

    /// What stands before a token.
    fn gap(&self, at: usize) -> Gap {
        use TokenKind::{BlockComment, Close, Colon, Comma, LineComment, Open, Word};
        let Some(before) = at.checked_sub(1) else { return Gap::Nothing };
        let (previous, token) = (self.groups.tokens[before].kind, &self.groups.tokens[at]);
        if token.kind == LineComment && token.lines == 0 && previous != LineComment {
            return self.before_comment(at);
        }
        let group = if token.kind == Close { self.groups.of[at] } else { self.groups.within[at] };
        let Some(group) = group else {
            let ends = previous == LineComment || token.lines > 0;
            return if ends { self.line(at, 0) } else { self.within_line(at) };
        };
        let is_broken = self.groups.all[group].is_broken();
        let inner = self.indents[group] + 4;
        match (previous, token.kind) {
            (_, Close) if before == self.groups.all[group].open => Gap::Nothing,
            (_, Close) => {
                if is_broken {
                    self.line(at, self.indents[group])
                } else {
                    Gap::Nothing
                }
            }
            (Open, _) => {
                if is_broken {
                    self.line(at, inner)
                } else {
                    Gap::Nothing
                }
            }
            (_, Comma | Colon) if previous != LineComment => Gap::Nothing,
            _ if self.begins_element(at) => {
                let is_due = previous == LineComment || token.lines > 0 || self.has_own_line(at, group);
                if is_broken && is_due { self.line(at, inner) } else { Gap::Spaces(1) }
            }
            // A value goes on behind a comment.
            (LineComment, _) => self.line(at, inner + 4),
            (_, LineComment) => self.line(at, inner),
            (Word | BlockComment | Comma | Colon | Close | TokenKind::Text, _) => self.within_line(at),
        }
    }

    /// The blanks before a comment at the end of a line, as many as there were.
    fn before_comment(&self, at: usize) -> Gap {
        let end = self.groups.tokens[at].span.start;
        let line = &self.groups.text[..end];
        let blanks = line.len() - line.trim_end_matches([' ', '\t']).len();
        Gap::Spaces(blanks.max(1))
    }

    /// Whether a token is the first of an element or of what is said about it.
    fn begins_element(&self, at: usize) -> bool {
        let before = (0..at).rev().map(|it| self.groups.tokens[it].kind).find(|it| !it.is_comment());
        let next = (at..self.groups.tokens.len()).map(|it| self.groups.tokens[it].kind);
        let next = next.into_iter().find(|it| !it.is_comment());
        matches!(before, Some(TokenKind::Comma | TokenKind::Open))
            || (next == Some(TokenKind::Close) && self.groups.tokens[at].kind.is_comment())
    }

    /// Whether an element begins a line wherever its author put it: each in a column, and calls in lists.
    fn has_own_line(&self, at: usize, group: usize) -> bool {
        let previous = self.groups.tokens[at - 1].kind;
        if previous == TokenKind::BlockComment {
            return false;
        }
        // A comment that ends a line belongs to what stands before it.
        let ends_line = self.groups.tokens.get(at + 1).is_none_or(|it| it.lines > 0);
        if self.groups.tokens[at].kind.is_comment() && ends_line {
            return false;
        }
        let is_list = self.groups.word(self.groups.all[group].open) == "[";
        let first = (at..self.groups.tokens.len()).find(|it| !self.groups.tokens[*it].kind.is_comment());
        let is_call = first.is_some_and(|it| self.groups.is_call(it)) || self.is_behind_call(at);
        self.groups.all[group].lines == Lines::Each || (is_list && is_call)
    }

    /// Whether the element before the one that begins at a token is a call.
    fn is_behind_call(&self, at: usize) -> bool {
        let last = (0..at).rev().find(|it| {
            !self.groups.tokens[*it].kind.is_comment() && self.groups.tokens[*it].kind != TokenKind::Comma
        });
        let open = last.and_then(|it| self.groups.of[it]).map(|it| self.groups.all[it].open);
        open.and_then(|it| it.checked_sub(1)).is_some_and(|it| self.groups.is_call(it))
    }

    /// The blanks before a token within a line.
    fn within_line(&self, at: usize) -> Gap {
        let opens_call = self.groups.tokens[at].kind == TokenKind::Open
            && self.groups.tokens[at - 1].kind == TokenKind::Word;
        let is_sign = matches!(self.groups.tokens[at].kind, TokenKind::Comma | TokenKind::Colon);
        if opens_call || is_sign { Gap::Nothing } else { Gap::Spaces(1) }
    }

    /// A new line, behind an empty one where the author left one.
    fn line(&self, at: usize, indent: usize) -> Gap {
        let token = &self.groups.tokens[at];
        let next_to_bracket =
            self.groups.tokens[at - 1].kind == TokenKind::Open || token.kind == TokenKind::Close;
        Gap::Line { indent, is_empty_before: token.lines > 1 && !next_to_bracket }
    }
}
