//! Parses expressions by recursive descent, keeping count of how high the trees grow.

use std::sync::Arc;

use super::{
    MAX_DEPTH,
    lex::{Cursor, Failure, ParseErrorKind, Token},
};
use crate::{Access, BinaryOp, DType, Index, Less, Literal, UnaryOp, Value};

/// A tree and its height: chains of operators grow as high as nested parentheses.
struct Tall<T> {
    node: T,
    height: u32,
}

impl<T> Tall<T> {
    fn leaf(node: T) -> Tall<T> {
        Tall { node, height: 1 }
    }
}

impl Cursor<'_> {
    /// An index expression.
    pub(super) fn index(&mut self) -> Result<Index, Failure> {
        self.index_sum().map(|it| it.node)
    }

    /// `below n`, or nothing: what the elements of an input are less than.
    pub(super) fn below(&mut self) -> Result<Option<Index>, Failure> {
        if self.eat_word("below") { self.index().map(Some) } else { Ok(None) }
    }

    /// `a < b && c < d`, or `true` for no condition at all.
    pub(super) fn conditions(&mut self) -> Result<Vec<Less>, Failure> {
        let mut out = Vec::new();
        if self.eat_word("true") {
            return Ok(out);
        }
        loop {
            let lhs = self.index()?;
            self.expect("<")?;
            out.push(Less::new(lhs, self.index()?));
            if !self.eat("&&") {
                return Ok(out);
            }
        }
    }

    /// A place in a buffer.
    pub(super) fn access(&mut self) -> Result<Access, Failure> {
        let buffer = self.name("a buffer")?;
        self.expect("[")?;
        let mut lanes = 1;
        let indices = self.list("]", |it| {
            let index = it.index()?;
            if it.eat("+:") {
                lanes = it.count("a number of lanes")?;
                if !it.is_sign("]") {
                    return Err(it.expected("`]`"));
                }
            }
            Ok(index)
        })?;
        Ok(Access { buffer, indices, lanes })
    }

    /// A value.
    pub(super) fn value(&mut self) -> Result<Value, Failure> {
        self.value_above(0).map(|it| it.node)
    }

    /// Runs `f` one level deeper.
    fn nested<T>(&mut self, f: impl FnOnce(&mut Self) -> Result<T, Failure>) -> Result<T, Failure> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(Failure { at: self.at(), kind: ParseErrorKind::TooDeep });
        }
        let out = f(self);
        self.depth -= 1;
        out
    }

    /// A tree over others, the highest of which is given.
    fn grown<T>(&self, node: T, below: u32) -> Result<Tall<T>, Failure> {
        let height = below + 1;
        if height > MAX_DEPTH {
            return Err(Failure { at: self.at(), kind: ParseErrorKind::TooDeep });
        }
        Ok(Tall { node, height })
    }

    fn index_sum(&mut self) -> Result<Tall<Index>, Failure> {
        let mut a = self.index_product()?;
        loop {
            let join: fn(Index, Index) -> Index = match self.peek() {
                Some(Token::Sign("+")) => |a, b| a + b,
                Some(Token::Sign("-")) => |a, b| a - b,
                _ => return Ok(a),
            };
            self.bump();
            let b = self.index_product()?;
            a = self.grown(join(a.node, b.node), a.height.max(b.height))?;
        }
    }

    fn index_product(&mut self) -> Result<Tall<Index>, Failure> {
        let mut a = self.index_factor()?;
        loop {
            let join: fn(Index, Index) -> Index = match self.peek() {
                Some(Token::Sign("*")) => |a, b| a * b,
                Some(Token::Word("floordiv")) => |a, b| a.floor_div(&b),
                Some(Token::Word("mod")) => |a, b| a.floor_mod(&b),
                _ => return Ok(a),
            };
            self.bump();
            let b = self.index_factor()?;
            a = self.grown(join(a.node, b.node), a.height.max(b.height))?;
        }
    }

    fn index_factor(&mut self) -> Result<Tall<Index>, Failure> {
        match self.peek() {
            Some(Token::Sign("-")) if !matches!(self.peek_second(), Some(Token::Number { .. })) => {
                self.bump();
                let a = self.nested(Self::index_factor)?;
                self.grown(a.node * -1, a.height)
            }
            Some(Token::Sign("-") | Token::Number { .. }) => Ok(Tall::leaf(Index::int(self.integer()?))),
            Some(Token::Sign("(")) => {
                self.bump();
                let a = self.nested(Self::index_sum)?;
                self.expect(")")?;
                Ok(a)
            }
            Some(Token::Word(word @ ("min" | "max" | "xor")))
                if self.peek_second() == Some(&Token::Sign("(")) =>
            {
                self.bump();
                self.bump();
                let a = self.nested(Self::index_sum)?;
                self.expect(",")?;
                let b = self.nested(Self::index_sum)?;
                self.expect(")")?;
                let height = a.height.max(b.height);
                let (a, b) = (a.node, b.node);
                let node = match *word {
                    "min" => a.minimum(&b),
                    "max" => a.maximum(&b),
                    _ => a.xor(&b),
                };
                self.grown(node, height)
            }
            Some(Token::Word("assume")) if self.peek_second() == Some(&Token::Sign("(")) => self.element(),
            _ => self.name("an index").map(|name| Tall::leaf(Index::var(&name))),
        }
    }

    /// `assume(ids[i] < n)`, an element of an input as an index.
    fn element(&mut self) -> Result<Tall<Index>, Failure> {
        self.bump();
        self.bump();
        let table = self.name("an input")?;
        self.expect("[")?;
        let at = self.nested(Self::index_sum)?;
        self.expect("]")?;
        self.expect("<")?;
        let below = self.nested(Self::index_sum)?;
        self.expect(")")?;
        self.grown(Index::element(&table, at.node, below.node), at.height.max(below.height))
    }

    /// A value whose operators outside parentheses bind at least as tightly as `least`, by precedence climbing.
    fn value_above(&mut self, mut least: usize) -> Result<Tall<Value>, Failure> {
        let mut a = self.value_factor()?;
        while let Some((op, level)) = self.infix().filter(|it| it.1 >= least) {
            self.bump();
            let b = self.value_above(level + 1)?;
            a = self.grown(Value::binary(op, a.node, b.node), a.height.max(b.height))?;
            // What a comparison says is not compared without parentheses.
            least = least.max(usize::from(op.is_comparison()));
        }
        Ok(a)
    }

    /// The infix operator that comes next, and how tightly it binds.
    fn infix(&self) -> Option<(BinaryOp, usize)> {
        const LEVELS: [&[BinaryOp]; 7] = [
            &[BinaryOp::Lt, BinaryOp::Le, BinaryOp::Eq, BinaryOp::Ne],
            &[BinaryOp::Or],
            &[BinaryOp::Xor],
            &[BinaryOp::And],
            &[BinaryOp::Shl, BinaryOp::Shr],
            &[BinaryOp::Add, BinaryOp::Sub],
            &[BinaryOp::Mul, BinaryOp::Div],
        ];
        let Some(Token::Sign(sign)) = self.peek() else { return None };
        LEVELS
            .iter()
            .enumerate()
            .find_map(|(level, all)| all.iter().find(|it| it.as_str() == *sign).map(|it| (*it, level)))
    }

    fn value_factor(&mut self) -> Result<Tall<Value>, Failure> {
        match self.peek() {
            Some(Token::Sign("-")) => {
                self.bump();
                if let Some(literal) = self.literal(true)? {
                    return Ok(Tall::leaf(Value::Const(literal)));
                }
                let a = self.nested(Self::value_factor)?;
                self.grown(Value::Unary(UnaryOp::Neg, Arc::new(a.node)), a.height)
            }
            Some(Token::Sign("(")) => {
                self.bump();
                let a = self.nested(|it| it.value_above(0))?;
                self.expect(")")?;
                Ok(a)
            }
            Some(Token::Word(word)) => match self.peek_second() {
                Some(Token::Sign("[")) => self.access().map(|it| Tall::leaf(Value::Load(it))),
                Some(Token::Sign("(")) => self.call(word),
                Some(Token::Sign("{")) => {
                    let Ok(dtype) = word.parse() else { return Err(self.expected("a type")) };
                    self.bump();
                    self.bump();
                    let index = self.index()?;
                    self.expect("}")?;
                    Ok(Tall::leaf(Value::Index(dtype, index)))
                }
                _ => match self.literal(false)? {
                    Some(literal) => Ok(Tall::leaf(Value::Const(literal))),
                    None => Err(self.expected("a value (an index as a value is `i32{…}`)")),
                },
            },
            _ => match self.literal(false)? {
                Some(literal) => Ok(Tall::leaf(Value::Const(literal))),
                None => Err(self.expected("a value")),
            },
        }
    }

    /// A typed constant, if one comes next.
    fn literal(&mut self, negative: bool) -> Result<Option<Literal>, Failure> {
        let literal = match self.peek() {
            Some(Token::Word(word)) => match Literal::parse_word(negative, word) {
                Some(literal) if self.peek_second() != Some(&Token::Sign("[")) => literal,
                _ => return Ok(None),
            },
            Some(Token::Number { digits, suffix }) => {
                let Ok(dtype) = suffix.parse() else {
                    return Err(self.expected("a number with its type, such as `1.5f32`"));
                };
                let literal = Literal::parse(negative, digits, dtype);
                literal.map_err(|kind| Failure { at: self.at(), kind })?
            }
            _ => return Ok(None),
        };
        self.bump();
        Ok(Some(literal))
    }

    /// `word(…)`: a conversion, a function or a choice.
    fn call(&mut self, word: &str) -> Result<Tall<Value>, Failure> {
        let binary = BinaryOp::ALL.into_iter().find(|it| it.is_call() && it.as_str() == word);
        let unary = UnaryOp::ALL.into_iter().find(|it| it.as_str() == word);
        let cast: Result<DType, ()> = word.parse();
        if binary.is_none() && unary.is_none() && cast.is_err() && !matches!(word, "select" | "where") {
            return Err(self.expected("a function"));
        }
        self.bump();
        self.bump();
        let conditions = if word == "select" { Some(self.conditions()?) } else { None };
        if conditions.is_some() {
            self.expect(",")?;
        }
        let (a, mut height) = self.operand()?;
        let node = if let Some(op) = unary {
            Value::Unary(op, a)
        } else if let Ok(dtype) = cast {
            Value::Cast(dtype, a)
        } else {
            let (b, second) = self.next_operand()?;
            height = height.max(second);
            match (binary, conditions) {
                (Some(op), _) => Value::Binary(op, a, b),
                (None, Some(conditions)) => Value::Select(conditions, a, b),
                (None, None) => {
                    let (c, third) = self.next_operand()?;
                    height = height.max(third);
                    Value::Where(a, b, c)
                }
            }
        };
        self.expect(")")?;
        self.grown(node, height)
    }

    /// A value in parentheses or between commas, and its height.
    fn operand(&mut self) -> Result<(Arc<Value>, u32), Failure> {
        let it = self.nested(|it| it.value_above(0))?;
        Ok((Arc::new(it.node), it.height))
    }

    /// Another one, behind a comma.
    fn next_operand(&mut self) -> Result<(Arc<Value>, u32), Failure> {
        self.expect(",")?;
        self.operand()
    }
}
