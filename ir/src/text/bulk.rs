//! Prints and parses boxes, tensor maps and bulk copies.

use std::fmt::{self, Display, Formatter};

use super::{
    expr::separated,
    lex::{Cursor, Failure, Token},
    parse_kernel::axis_name,
};
use crate::{
    Access, BulkCopy, BulkKind, Index, Instr, Major, Matrix, Name, Storage, TensorMap, ThreadAxis, Tile,
    XorSwizzle,
};

/// The extents of a box: `128 x 64`.
struct Extents<'a>(&'a [i64]);

impl Display for Extents<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        separated(f, " x ", self.0)
    }
}

/// The swizzle of hardware that permutes addresses: ` swizzle 128B`, or nothing.
struct Mode(Option<XorSwizzle>);

impl Display for Mode {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0.and_then(XorSwizzle::mode) {
            Some(mode) => write!(f, " swizzle {mode}"),
            None => Ok(()),
        }
    }
}

impl Display for Tile {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}[", self.first.buffer)?;
        separated(f, ", ", &self.first.indices)?;
        write!(f, "; {}", Extents(&self.extents))?;
        if let Some(Matrix { major, leading, stride, swizzle }) = self.matrix {
            let major = if major == Major::K { "k" } else { "mn" };
            write!(f, " by {major} leading {leading} stride {stride}{}", Mode(swizzle))?;
        }
        f.write_str("]")
    }
}

impl Display for TensorMap {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}[", self.buffer)?;
        separated(f, ", ", &self.dims)?;
        f.write_str("]")?;
        if self.strides != row_major(&self.dims) {
            f.write_str(" strides (")?;
            separated(f, ", ", &self.strides)?;
            f.write_str(")")?;
        }
        write!(f, " box {}{}", Extents(&self.tile), Mode(self.swizzle))
    }
}

/// The strides of a tensor without gaps.
fn row_major(dims: &[Index]) -> Vec<Index> {
    Storage::new(crate::DType::I8, dims, &crate::Layout::default(), crate::Role::Input).strides
}

impl Display for BulkCopy {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let BulkCopy { kind, map, global, shared } = self;
        match kind {
            BulkKind::Load { barrier, slot, along, at_first } => {
                write!(f, "{shared} <= {global} by {map} on {barrier}[{slot}]")?;
                along.iter().try_for_each(|it| write!(f, " along {}", it.as_str()))?;
                f.write_str(if *at_first { AT_FIRST } else { "" })
            }
            BulkKind::Store => write!(f, "{global} <= {shared} by {map}"),
            BulkKind::Add => write!(f, "{global} <= {shared} by {map} added"),
        }
    }
}

/// `A_pad[0; 128 x 64] <= A[r, c] by A_map on ko_full[0] along cluster.x`, from the arrow on.
pub(super) fn store(line: &mut Cursor<'_>, first: Access, extents: Vec<i64>) -> Result<Instr, Failure> {
    let shared = Tile { first, extents, matrix: None };
    line.expect("<=")?;
    let global = line.access()?;
    line.expect_word("by")?;
    let map = line.name("a tensor map")?;
    line.expect_word("on")?;
    let (barrier, slot) = line.slot()?;
    let along = if line.eat_word("along") { Some(cluster_axis(line)?) } else { None };
    let kind = BulkKind::Load { barrier, slot, along, at_first: at_first(line)? };
    Ok(Instr::Bulk(BulkCopy { kind, map, global, shared }))
}

/// What says that something is told at an mbarrier of the first block of a cluster.
pub(super) const AT_FIRST: &str = " at first";

/// `at first`, or nothing.
pub(super) fn at_first(line: &mut Cursor<'_>) -> Result<bool, Failure> {
    let found = line.eat_word("at");
    if found {
        line.expect_word("first")?;
    }
    Ok(found)
}

/// `cluster.x`.
pub(super) fn cluster_axis(line: &mut Cursor<'_>) -> Result<ThreadAxis, Failure> {
    let unknown = line.expected("`cluster.x`, `cluster.y` or `cluster.z`");
    let axis = axis_name(line)?;
    if axis.is_cluster() { Ok(axis) } else { Err(unknown) }
}

/// `C[r, c] <= C_pad[0; 64 x 64] by C_map`, from behind the arrow on.
pub(super) fn to_global(line: &mut Cursor<'_>, global: Access) -> Result<Instr, Failure> {
    let shared = line.tile()?;
    line.expect_word("by")?;
    let map = line.name("a tensor map")?;
    let kind = if line.eat_word("added") { BulkKind::Add } else { BulkKind::Store };
    Ok(Instr::Bulk(BulkCopy { kind, map, global, shared }))
}

/// `A[m, k] strides (k, 1) box 128 x 64 swizzle 128B`.
pub(super) fn tensor_map(line: &mut Cursor<'_>) -> Result<TensorMap, Failure> {
    let buffer = line.name("a buffer")?;
    line.expect("[")?;
    let dims = line.list("]", Cursor::index)?;
    let mut strides = row_major(&dims);
    if line.eat_word("strides") {
        line.expect("(")?;
        strides = line.list(")", Cursor::index)?;
    }
    line.expect_word("box")?;
    let tile = line.extents()?;
    let swizzle = line.mode()?;
    Ok(TensorMap { buffer, dims, strides, tile, swizzle })
}

impl Cursor<'_> {
    /// A box with what a matrix instruction has to know of it.
    pub(super) fn tile(&mut self) -> Result<Tile, Failure> {
        let at = self.expected("a box such as `A[0; 64 x 16]`");
        let (first, extents) = self.boxed_with_matrix()?;
        let (extents, matrix) = extents.ok_or(at)?;
        Ok(Tile { first, extents, matrix })
    }

    /// An access, or a box.
    pub(super) fn boxed(&mut self) -> Result<(Access, Option<Vec<i64>>), Failure> {
        let at = self.expected("a box without a matrix");
        let (first, extents) = self.boxed_with_matrix()?;
        match extents {
            Some((_, Some(_))) => Err(at),
            extents => Ok((first, extents.map(|it| it.0))),
        }
    }

    #[expect(clippy::type_complexity, reason = "it is taken apart at once")]
    pub(super) fn boxed_with_matrix(
        &mut self,
    ) -> Result<(Access, Option<(Vec<i64>, Option<Matrix>)>), Failure> {
        let buffer = self.name("a buffer")?;
        self.expect("[")?;
        let (mut lanes, mut extents) = (1, None);
        let indices = self.list("]", |it| {
            let index = it.index()?;
            if it.eat("+:") {
                lanes = it.count("a number of lanes")?;
            } else if it.eat(";") {
                extents = Some((it.extents()?, it.matrix()?));
            } else {
                return Ok(index);
            }
            if it.is_sign("]") { Ok(index) } else { Err(it.expected("`]`")) }
        })?;
        Ok((Access { buffer, indices, lanes }, extents))
    }

    /// `128 x 64`.
    fn extents(&mut self) -> Result<Vec<i64>, Failure> {
        let mut out = vec![i64::from(self.count::<u32>("how many elements")?)];
        while self.eat_word("x") {
            out.push(self.count::<u32>("how many elements")?.into());
        }
        Ok(out)
    }

    /// `by k leading 16 stride 1024 swizzle 128B`, or nothing.
    fn matrix(&mut self) -> Result<Option<Matrix>, Failure> {
        if !self.eat_word("by") {
            return Ok(None);
        }
        let major = match () {
            () if self.eat_word("k") => Major::K,
            () if self.eat_word("mn") => Major::Mn,
            () => return Err(self.expected("`k` or `mn`")),
        };
        self.expect_word("leading")?;
        let leading = self.count::<u32>("a number of bytes")?.into();
        self.expect_word("stride")?;
        let stride = self.count::<u32>("a number of bytes")?.into();
        Ok(Some(Matrix { major, leading, stride, swizzle: self.mode()? }))
    }

    /// `swizzle 128B`, or nothing.
    fn mode(&mut self) -> Result<Option<XorSwizzle>, Failure> {
        if !self.eat_word("swizzle") {
            return Ok(None);
        }
        let unknown = self.expected("`32B`, `64B` or `128B`");
        let Some(Token::Number { digits, suffix }) = self.peek() else { return Err(unknown) };
        let word = format!("{digits}{suffix}");
        self.bump();
        let found = XorSwizzle::MODES.iter().find(|it| it.0 == word);
        found.map(|it| Some(it.1)).ok_or(unknown)
    }

    /// `ko_full[n mod 4]`: one of the mbarriers of a name.
    pub(super) fn slot(&mut self) -> Result<(Name, Index), Failure> {
        let barrier = self.name("mbarriers")?;
        self.expect("[")?;
        let slot = self.index()?;
        self.expect("]")?;
        Ok((barrier, slot))
    }
}
