//! The expressions of workloads: their tree and its parser.
//!
//! ```text
//! stage  = access ("=" | "+=" | "*=" | "max=" | "min=") expr
//! expr   = both { "||" both }
//! both   = cmp { "&&" cmp }
//! cmp    = bits [ ("<" | "<=" | ">" | ">=" | "==" | "!=") bits ]
//! bits   = odd { "|" odd }
//! odd    = all { "^" all }
//! all    = shift { "&" shift }
//! shift  = sum { ("<<" | ">>") sum }
//! sum    = term { ("+" | "-") term }
//! term   = unary { ("*" | "/" | "floordiv" | "mod") unary }
//! unary  = "-" unary | atom
//! atom   = number | name | name "[" exprs "]" | name "(" exprs ")" | "(" expr ")"
//! ```

use std::ops::Range;

use ir::{BinaryOp, UnaryOp};

use super::{
    error::{Problem, WorkloadError},
    lex::{Lexer, Token},
};

/// The most nodes of one expression, and how deep its parentheses nest.
const MAX_NODES: usize = 1000;
const MAX_DEPTH: usize = 64;

/// An expression and its place in the workload's text.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Expr {
    pub(super) node: Node,
    pub(super) span: Range<usize>,
}

#[derive(Clone, PartialEq, Debug)]
pub(super) enum Node {
    Int(i64),
    Float(f64),
    Name(String),
    Access(String, Vec<Expr>),
    Call(String, Vec<Expr>),
    Neg(Box<Expr>),
    Op(Op, Box<[Expr; 2]>),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Op {
    Add,
    Sub,
    Mul,
    Div,
    FloorDiv,
    Mod,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    Equal,
    NotEqual,
    And,
    Or,
    BitAnd,
    BitOr,
    BitXor,
    Shl,
    Shr,
}

impl Op {
    /// Whether it says whether something holds.
    pub(super) fn is_condition(self) -> bool {
        self.compares() || matches!(self, Op::And | Op::Or)
    }

    /// Whether it compares its operands.
    pub(super) fn compares(self) -> bool {
        self.on_values().is_some_and(|it| it.0.is_comparison())
    }

    /// What it does with values, and whether with the second operand first; `None` for what indices alone have.
    pub(super) fn on_values(self) -> Option<(BinaryOp, bool)> {
        Some(match self {
            Op::Add => (BinaryOp::Add, false),
            Op::Sub => (BinaryOp::Sub, false),
            Op::Mul => (BinaryOp::Mul, false),
            Op::Div => (BinaryOp::Div, false),
            Op::FloorDiv | Op::Mod => return None,
            Op::Less => (BinaryOp::Lt, false),
            Op::LessEqual => (BinaryOp::Le, false),
            Op::Greater => (BinaryOp::Lt, true),
            Op::GreaterEqual => (BinaryOp::Le, true),
            Op::Equal => (BinaryOp::Eq, false),
            Op::NotEqual => (BinaryOp::Ne, false),
            Op::And | Op::BitAnd => (BinaryOp::And, false),
            Op::Or | Op::BitOr => (BinaryOp::Or, false),
            Op::BitXor => (BinaryOp::Xor, false),
            Op::Shl => (BinaryOp::Shl, false),
            Op::Shr => (BinaryOp::Shr, false),
        })
    }
}

/// `tensor[subscripts] = value`, or a reduction into it.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Stage {
    pub(super) tensor: String,
    pub(super) subscripts: Vec<Expr>,
    pub(super) reducer: Option<BinaryOp>,
    pub(super) value: Expr,
    /// Where the target stands.
    pub(super) target: Range<usize>,
    /// Where the stage stands.
    pub(super) span: Range<usize>,
}

/// The functions of expressions that are neither types nor choices.
pub(super) fn unary_of(word: &str) -> Option<UnaryOp> {
    UnaryOp::ALL.into_iter().find(|it| it.as_str() == word && *it != UnaryOp::Neg)
}

/// `min`, `max` and what else is called with two operands.
pub(super) fn binary_of(word: &str) -> Option<BinaryOp> {
    BinaryOp::ALL.into_iter().find(|it| it.is_call() && it.as_str() == word)
}

impl Expr {
    /// Calls `f` with this expression and each one in it, from left to right.
    pub(super) fn walk<'a>(&'a self, f: &mut dyn FnMut(&'a Expr)) {
        f(self);
        match &self.node {
            Node::Int(_) | Node::Float(_) | Node::Name(_) => {}
            Node::Access(_, inner) | Node::Call(_, inner) => inner.iter().for_each(|it| it.walk(f)),
            Node::Neg(a) => a.walk(f),
            Node::Op(_, ab) => ab.iter().for_each(|it| it.walk(f)),
        }
    }
}

/// Reads an expression to the end of its text.
pub(super) fn parse_expr(lexer: Lexer<'_>) -> Result<Expr, WorkloadError> {
    let mut parser = Parser { lexer, nodes: 0, depth: 0 };
    let expr = parser.expr()?;
    parser.expect(&Token::End, "an operator or the end of the expression")?;
    Ok(expr)
}

/// Reads a stage to the end of its text.
pub(super) fn parse_stage(lexer: Lexer<'_>) -> Result<Stage, WorkloadError> {
    let mut parser = Parser { lexer, nodes: 0, depth: 0 };
    let target = parser.atom()?;
    let Node::Access(tensor, subscripts) = target.node else {
        return Err(WorkloadError::new(Problem::BadTarget, target.span));
    };
    let reducer = parser.assignment()?;
    let value = parser.expr()?;
    parser.expect(&Token::End, "an operator or the end of the expression")?;
    let span = target.span.start..value.span.end;
    Ok(Stage { tensor, subscripts, reducer, value, target: target.span, span })
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    nodes: usize,
    depth: usize,
}

impl Parser<'_> {
    fn assignment(&mut self) -> Result<Option<BinaryOp>, WorkloadError> {
        let (token, _) = self.lexer.peek()?;
        let reducer = match token {
            Token::Sign("=") => None,
            Token::Sign("+=") => Some(BinaryOp::Add),
            Token::Sign("*=") => Some(BinaryOp::Mul),
            Token::Sign("max=") => Some(BinaryOp::Max),
            Token::Sign("min=") => Some(BinaryOp::Min),
            _ => return Err(self.unexpected("`=`, `+=`, `*=`, `max=` or `min=`")),
        };
        self.lexer.next()?;
        Ok(reducer)
    }

    fn expr(&mut self) -> Result<Expr, WorkloadError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            let (_, span) = self.lexer.peek()?;
            return Err(WorkloadError::new(Problem::TooLong, span));
        }
        let expr = self.chain(&[("||", Op::Or)], Self::both)?;
        self.depth -= 1;
        Ok(expr)
    }

    fn both(&mut self) -> Result<Expr, WorkloadError> {
        self.chain(&[("&&", Op::And)], Self::comparison)
    }

    fn comparison(&mut self) -> Result<Expr, WorkloadError> {
        let lhs = self.bits()?;
        let signs = [
            ("<", Op::Less),
            ("<=", Op::LessEqual),
            (">", Op::Greater),
            (">=", Op::GreaterEqual),
            ("==", Op::Equal),
            ("!=", Op::NotEqual),
        ];
        match self.operator(&signs)? {
            Some(op) => {
                let rhs = self.bits()?;
                self.binary(op, lhs, rhs)
            }
            None => Ok(lhs),
        }
    }

    /// Bits of integers, which bind as in Python: `|` least, then `^`, `&`, and shifts most tightly.
    fn bits(&mut self) -> Result<Expr, WorkloadError> {
        self.chain(&[("|", Op::BitOr)], |it| {
            it.chain(&[("^", Op::BitXor)], |it| it.chain(&[("&", Op::BitAnd)], Self::shift))
        })
    }

    fn shift(&mut self) -> Result<Expr, WorkloadError> {
        self.chain(&[("<<", Op::Shl), (">>", Op::Shr)], Self::sum)
    }

    fn sum(&mut self) -> Result<Expr, WorkloadError> {
        self.chain(&[("+", Op::Add), ("-", Op::Sub)], Self::term)
    }

    fn term(&mut self) -> Result<Expr, WorkloadError> {
        let signs = [("*", Op::Mul), ("/", Op::Div), ("floordiv", Op::FloorDiv), ("mod", Op::Mod)];
        self.chain(&signs, Self::unary)
    }

    /// Operands joined by operators of one level, grouped from the left.
    fn chain(
        &mut self,
        signs: &[(&str, Op)],
        operand: fn(&mut Self) -> Result<Expr, WorkloadError>,
    ) -> Result<Expr, WorkloadError> {
        let mut lhs = operand(self)?;
        while let Some(op) = self.operator(signs)? {
            let rhs = operand(self)?;
            lhs = self.binary(op, lhs, rhs)?;
        }
        Ok(lhs)
    }

    fn operator(&mut self, signs: &[(&str, Op)]) -> Result<Option<Op>, WorkloadError> {
        let (token, _) = self.lexer.peek()?;
        let found = signs.iter().find(|(sign, _)| match &token {
            Token::Sign(it) => it == sign,
            Token::Name(it) => it == sign,
            Token::Int(_) | Token::Float(_) | Token::End => false,
        });
        if found.is_some() {
            self.lexer.next()?;
        }
        Ok(found.map(|(_, op)| *op))
    }

    fn unary(&mut self) -> Result<Expr, WorkloadError> {
        let (token, start) = self.lexer.peek()?;
        if token != Token::Sign("-") {
            return self.atom();
        }
        self.lexer.next()?;
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(WorkloadError::new(Problem::TooLong, start));
        }
        let inner = self.unary()?;
        self.depth -= 1;
        let span = start.start..inner.span.end;
        self.node(Node::Neg(Box::new(inner)), span)
    }

    fn atom(&mut self) -> Result<Expr, WorkloadError> {
        let (token, span) = self.lexer.peek()?;
        match token {
            Token::Int(it) => {
                self.lexer.next()?;
                self.node(Node::Int(it), span)
            }
            Token::Float(it) => {
                self.lexer.next()?;
                self.node(Node::Float(it), span)
            }
            Token::Name(name) => {
                self.lexer.next()?;
                self.named(name, span)
            }
            Token::Sign("(") => {
                self.lexer.next()?;
                let inner = self.expr()?;
                let close = self.expect(&Token::Sign(")"), "`)`")?;
                Ok(Expr { span: span.start..close.end, ..inner })
            }
            Token::Sign(_) | Token::End => Err(self.unexpected("a number, a name or `(`")),
        }
    }

    fn named(&mut self, name: String, span: Range<usize>) -> Result<Expr, WorkloadError> {
        let (open, _) = self.lexer.peek()?;
        let close = match open {
            Token::Sign("[") => Token::Sign("]"),
            Token::Sign("(") => Token::Sign(")"),
            _ => return self.node(Node::Name(name), span),
        };
        self.lexer.next()?;
        let mut inner = Vec::new();
        let end = loop {
            if self.lexer.peek()?.0 == close {
                break self.lexer.next()?.1;
            }
            inner.push(self.expr()?);
            match self.lexer.peek()?.0 {
                Token::Sign(",") => self.lexer.next()?,
                it if it == close => continue,
                _ => {
                    return Err(self.unexpected(if open == Token::Sign("[") {
                        "`,` or `]`"
                    } else {
                        "`,` or `)`"
                    }));
                }
            };
        };
        let span = span.start..end.end;
        let node = if open == Token::Sign("[") { Node::Access(name, inner) } else { Node::Call(name, inner) };
        self.node(node, span)
    }

    fn binary(&mut self, op: Op, lhs: Expr, rhs: Expr) -> Result<Expr, WorkloadError> {
        let span = lhs.span.start..rhs.span.end;
        self.node(Node::Op(op, Box::new([lhs, rhs])), span)
    }

    fn node(&mut self, node: Node, span: Range<usize>) -> Result<Expr, WorkloadError> {
        self.nodes += 1;
        if self.nodes > MAX_NODES {
            return Err(WorkloadError::new(Problem::TooLong, span));
        }
        Ok(Expr { node, span })
    }

    fn expect(&mut self, token: &Token, expected: &'static str) -> Result<Range<usize>, WorkloadError> {
        if self.lexer.peek()?.0 != *token {
            return Err(self.unexpected(expected));
        }
        Ok(self.lexer.next()?.1)
    }

    fn unexpected(&mut self, expected: &'static str) -> WorkloadError {
        match self.lexer.peek() {
            Ok((token, span)) => {
                WorkloadError::new(Problem::Syntax { expected, found: token.to_string() }, span)
            }
            Err(err) => err,
        }
    }
}
