//! From the text of an expression to what it says.
//!
//! ```text
//! or      = and { "||" and }
//! and     = compare { "&&" compare }
//! compare = sum [ ("<" | "<=" | ">" | ">=" | "==" | "!=") sum ]
//! sum     = product { ("+" | "-") product }
//! product = unary { ("*" | "/" | "%") unary }
//! unary   = ("-" | "!") unary | number | name [ "[" number "]" ] | "bytes" "(" name ")"
//!         | function "(" or { "," or } ")" | "(" or ")"
//! ```

use std::ops::Range;

use ir::Name;

use super::expr::{Op, Ref, Tree};
use crate::nearest;

/// A text that is no expression.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{message}")]
pub struct SyntaxError {
    /// What is wrong.
    pub message: String,
    /// Where, in bytes of the expression.
    pub at: Range<usize>,
}

/// How deep an expression may nest. Readers and evaluation recurse, and a text must not use up the stack.
pub const MAX_EXPRESSION_DEPTH: usize = 32;

const FUNCTIONS: [(&str, usize); 5] = [("min", 2), ("max", 2), ("ceildiv", 2), ("select", 3), (BYTES, 1)];

/// The function whose operand is the name of a type.
const BYTES: &str = "bytes";

/// Longer signs before their beginnings.
const SIGNS: [&str; 20] = [
    "&&", "||", "<=", ">=", "==", "!=", "<", ">", "!", "+", "-", "*", "/", "%", "(", ")", "[", "]", ",", "=",
];

/// Reads an expression.
pub(super) fn parse(text: &str) -> Result<Tree<Ref>, SyntaxError> {
    let mut parser = Parser { text, at: 0, depth: 0 };
    let tree = parser.level(0)?.0;
    match parser.peek()? {
        (Token::End, _) => Ok(tree),
        (Token::Sign("="), at) => Err(error("`==` compares".to_owned(), at)),
        (token, at) => {
            let compares = COMPARISONS.iter().any(|(sign, _)| token == Token::Sign(sign));
            let message = if compares {
                "comparisons do not chain: join them by `&&`".to_owned()
            } else {
                format!("an operator should stand here, not {}", token.word())
            };
            Err(error(message, at))
        }
    }
}

/// Whether an expression may use the word for a knob: functions are no variables.
pub(super) fn is_function(word: &str) -> bool {
    FUNCTIONS.iter().any(|(name, _)| *name == word)
}

#[derive(Clone, Copy, PartialEq)]
enum Token<'a> {
    Int(i64),
    Word(&'a str),
    Sign(&'static str),
    End,
}

impl Token<'_> {
    fn word(&self) -> String {
        match self {
            Token::Int(it) => format!("`{it}`"),
            Token::Word(it) | Token::Sign(it) => format!("`{it}`"),
            Token::End => "the end".to_owned(),
        }
    }
}

/// A tree and how deep it is.
type Deep = (Tree<Ref>, usize);

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

const COMPARISONS: [(&str, Op); 6] = [
    ("<", Op::Less),
    ("<=", Op::LessEqual),
    (">", Op::Greater),
    (">=", Op::GreaterEqual),
    ("==", Op::Equal),
    ("!=", Op::NotEqual),
];

/// The operators, loosest first.
const LEVELS: [&[(&str, Op)]; 5] = [
    &[("||", Op::Or)],
    &[("&&", Op::And)],
    &COMPARISONS,
    &[("+", Op::Add), ("-", Op::Sub)],
    &[("*", Op::Mul), ("/", Op::Div), ("%", Op::Rem)],
];

/// The level of the comparisons, which stand once.
const ONCE: usize = 2;

impl<'a> Parser<'a> {
    /// Operands joined by operators of a level, which bind from left to right.
    fn level(&mut self, level: usize) -> Result<Deep, SyntaxError> {
        let Some(operators) = LEVELS.get(level) else { return self.unary() };
        let mut left = self.level(level + 1)?;
        loop {
            let (token, at) = self.peek()?;
            let Some((_, op)) = operators.iter().find(|(sign, _)| token == Token::Sign(sign)) else {
                return Ok(left);
            };
            self.at = at.end;
            let right = self.level(level + 1)?;
            let deep = deeper(left.1.max(right.1), &at)?;
            left = (Tree::Binary(*op, Box::new([left.0, right.0])), deep);
            if level == ONCE {
                return Ok(left);
            }
        }
    }

    fn unary(&mut self) -> Result<Deep, SyntaxError> {
        let (token, at) = self.peek()?;
        self.depth += 1;
        if self.depth > MAX_EXPRESSION_DEPTH {
            return Err(too_deep(at));
        }
        self.at = at.end;
        let out = match token {
            Token::Sign("-") => self.negative(&at),
            Token::Sign("!") => {
                let (tree, deep) = self.unary()?;
                Ok((Tree::Not(Box::new(tree)), deeper(deep, &at)?))
            }
            Token::Sign("(") => {
                let inner = self.level(0)?;
                self.expect(")")?;
                Ok(inner)
            }
            Token::Int(it) => Ok((Tree::Int(it), 1)),
            Token::Word(word) => self.word(word, at),
            Token::Sign(_) | Token::End => {
                let message =
                    format!("a number, a knob or a parameter should stand here, not {}", token.word());
                Err(error(message, at))
            }
        };
        self.depth -= 1;
        out
    }

    fn negative(&mut self, at: &Range<usize>) -> Result<Deep, SyntaxError> {
        let (tree, deep) = self.unary()?;
        Ok(match tree {
            Tree::Int(it) => (Tree::Int(-it), deep),
            tree => (Tree::Neg(Box::new(tree)), deeper(deep, at)?),
        })
    }

    /// A function and its operands, or a variable.
    fn word(&mut self, word: &str, at: Range<usize>) -> Result<Deep, SyntaxError> {
        match self.peek()? {
            (Token::Sign("("), _) => self.call(word, at),
            (Token::Sign("["), _) => {
                self.expect("[")?;
                let (token, place) = self.peek()?;
                let Token::Int(part) = token else {
                    let message = "which part of a tile is a number, from 0".to_owned();
                    return Err(error(message, place));
                };
                self.at = place.end;
                let end = self.expect("]")?.end;
                let part = usize::try_from(part).ok();
                Ok((Tree::Var(Ref { name: Name::new(word), bytes: false, part, at: at.start..end }), 1))
            }
            _ => Ok((Tree::Var(Ref { name: Name::new(word), bytes: false, part: None, at }), 1)),
        }
    }

    fn call(&mut self, word: &str, at: Range<usize>) -> Result<Deep, SyntaxError> {
        let names = FUNCTIONS.iter().map(|it| it.0);
        let Some((name, count)) = FUNCTIONS.iter().find(|(it, _)| *it == word) else {
            let known: Vec<_> = names.clone().map(|it| format!("`{it}`")).collect();
            let hint = match nearest(word, names) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("there is {}", known.join(", ")),
            };
            return Err(error(format!("there is no function `{word}`: {hint}"), at));
        };
        if *name == BYTES {
            return self.bytes(at.start);
        }
        self.expect("(")?;
        let mut operands = vec![self.level(0)?];
        while self.peek()?.0 == Token::Sign(",") {
            self.expect(",")?;
            operands.push(self.level(0)?);
        }
        let end = self.expect(")")?.end;
        let deep = deeper(operands.iter().map(|it| it.1).max().unwrap_or(0), &at)?;
        let given = operands.len();
        let mut trees = operands.into_iter().map(|it| it.0);
        let wrong = || error(format!("`{name}` takes {count} operands, not {given}"), at.start..end);
        let mut next = || trees.next().ok_or_else(wrong);
        let tree = if *count == 3 {
            Tree::Select(Box::new([next()?, next()?, next()?]))
        } else {
            let op = match *name {
                "min" => Op::Min,
                "max" => Op::Max,
                _ => Op::CeilDiv,
            };
            Tree::Binary(op, Box::new([next()?, next()?]))
        };
        if given == *count { Ok((tree, deep)) } else { Err(wrong()) }
    }

    /// The operand of `bytes`, which is a name and no number.
    fn bytes(&mut self, start: usize) -> Result<Deep, SyntaxError> {
        self.expect("(")?;
        let (token, at) = self.peek()?;
        let Token::Word(word) = token else {
            let message =
                format!("the name of a parameter that is a type should stand here, not {}", token.word());
            return Err(error(message, at));
        };
        self.at = at.end;
        let end = self.expect(")")?.end;
        Ok((Tree::Var(Ref { name: Name::new(word), bytes: true, part: None, at: start..end }), 1))
    }

    fn expect(&mut self, sign: &'static str) -> Result<Range<usize>, SyntaxError> {
        let (token, at) = self.peek()?;
        if token != Token::Sign(sign) {
            return Err(error(format!("`{sign}` should stand here, not {}", token.word()), at));
        }
        self.at = at.end;
        Ok(at)
    }

    /// The next token and its place.
    fn peek(&self) -> Result<(Token<'a>, Range<usize>), SyntaxError> {
        let rest = &self.text[self.at..];
        let start = self.at + (rest.len() - rest.trim_start().len());
        let rest = &self.text[start..];
        let Some(head) = rest.chars().next() else { return Ok((Token::End, start..start)) };
        let run = |of: fn(char) -> bool| rest.find(|it| !of(it)).unwrap_or(rest.len());
        if head.is_ascii_digit() {
            let at = start..start + run(|it| it.is_ascii_alphanumeric() || it == '_');
            let digits = &self.text[at.clone()];
            let wrong = if digits.bytes().all(|it| it.is_ascii_digit()) {
                "does not fit in 64 bits"
            } else {
                "is no whole number"
            };
            let value = digits.parse().map_err(|_| error(format!("`{digits}` {wrong}"), at.clone()))?;
            return Ok((Token::Int(value), at));
        }
        if head.is_ascii_alphabetic() || head == '_' {
            let at = start..start + run(|it| it.is_ascii_alphanumeric() || it == '_');
            return Ok((Token::Word(&self.text[at.clone()]), at));
        }
        if let Some(sign) = SIGNS.iter().find(|it| rest.starts_with(**it)) {
            return Ok((Token::Sign(sign), start..start + sign.len()));
        }
        let message = format!("`{}` is no part of an expression", head.escape_debug());
        Err(error(message, start..start + head.len_utf8()))
    }
}

fn error(message: String, at: Range<usize>) -> SyntaxError {
    SyntaxError { message, at }
}

/// The depth of something around a tree of a depth.
fn deeper(inner: usize, at: &Range<usize>) -> Result<usize, SyntaxError> {
    if inner < MAX_EXPRESSION_DEPTH { Ok(inner + 1) } else { Err(too_deep(at.clone())) }
}

fn too_deep(at: Range<usize>) -> SyntaxError {
    error(format!("the expression nests deeper than {MAX_EXPRESSION_DEPTH}"), at)
}
