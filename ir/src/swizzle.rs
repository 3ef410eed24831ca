//! Swizzles: permutations of a buffer's elements that spread what threads read at once over the banks of memory.
//!
//! Shared memory answers 128 bytes at a time from 32 banks of 4 bytes. Eight rows of 128 bytes have their first 16
//! bytes in the same four banks, so that reading a column of such chunks takes eight times as long as it could. A
//! swizzle moves the chunk at `(row, chunk)` to `(row, chunk xor row mod 8)`: rows stay where they are, and a column
//! of chunks lies in as many banks as there are rows.
//!
//! A swizzle acts on the offset of an element in its buffer, after padding, and on nothing else: programs, regions
//! and dependences speak of subscripts, which it leaves alone.

use crate::{Index, Name};

/// How the elements of a buffer are permuted within its rows.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Swizzle {
    /// Lowering chooses, once it knows the rows.
    Auto,
    /// Lowering has chosen none: the rows are read as fast without.
    None,
    /// The same for all buffers.
    Xor(XorSwizzle),
}

/// The bits `base .. base + bits` of an offset in bytes become their exclusive or with the bits `shift` higher.
///
/// What moves are chunks of `1 << base` bytes, within blocks of `1 << (base + bits)` bytes. This is `CuTe`'s
/// `Swizzle<bits, base, shift>` of byte offsets. As `shift >= bits`, doing it twice changes nothing.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[expect(missing_docs, reason = "the sentence above names them")]
pub struct XorSwizzle {
    pub bits: u32,
    pub base: u32,
    pub shift: u32,
}

/// No bit above this one takes part.
const MOST_BITS: u32 = 20;

impl XorSwizzle {
    /// The modes that TMA and matrix instructions know, by their names: the bytes of a row.
    pub const MODES: [(&str, XorSwizzle); 3] = [
        ("32B", XorSwizzle { bits: 1, base: 4, shift: 3 }),
        ("64B", XorSwizzle { bits: 2, base: 4, shift: 3 }),
        ("128B", XorSwizzle { bits: 3, base: 4, shift: 3 }),
    ];

    /// The mode's name, if it is one of them.
    pub fn mode(self) -> Option<&'static str> {
        XorSwizzle::MODES.iter().find(|it| it.1 == self).map(|it| it.0)
    }

    /// Whether this permutes elements of a size, which must not be cut: some bits, of chunks of whole elements, and
    /// apart from those they are changed by.
    pub fn is_valid(self, element_bytes: i64) -> bool {
        let ends = [self.bits, self.base, self.shift].iter().try_fold(0u32, |sum, it| sum.checked_add(*it));
        self.bits >= 1
            && self.shift >= self.bits
            && ends.is_some_and(|it| it <= MOST_BITS)
            && (1i64 << self.base) % element_bytes == 0
    }

    /// The bytes within which chunks change places. The rows of a buffer are multiples of them.
    pub const fn block_bytes(self) -> i64 {
        1 << (self.base + self.bits)
    }

    /// The bytes that stay together, in order.
    pub const fn chunk_bytes(self) -> i64 {
        1 << self.base
    }

    /// The bytes after which the pattern repeats.
    pub const fn period_bytes(self) -> i64 {
        1 << (self.base + self.bits + self.shift)
    }

    /// Where the byte at an offset goes.
    pub const fn byte(self, offset: i64) -> i64 {
        let mask = ((1 << self.bits) - 1) << self.base;
        offset ^ ((offset >> self.shift) & mask)
    }

    /// Where the element at an offset goes, both in elements.
    ///
    /// Written so that nothing is subtracted, and so that what of the offset is known to be a chunk, a row or a place
    /// in a chunk comes out as that.
    #[must_use]
    pub fn element(self, offset: &Index, element_bytes: i64) -> Index {
        let elements = |power: u32| Index::int((1i64 << power) / element_bytes);
        let (unit, values) = (elements(self.base), Index::int(1i64 << self.bits));
        let digit = |unit: &Index| offset.floor_div(unit).floor_mod(&values);
        let block = elements(self.base + self.bits);
        let chunk = digit(&unit).xor(&digit(&elements(self.base + self.shift)));
        offset.floor_div(&block) * block + chunk * unit.clone() + offset.floor_mod(&unit)
    }
}

impl XorSwizzle {
    /// The least swizzle by which a column of 16-byte chunks of eight rows comes in the fewest requests, for rows that
    /// start so many bytes apart; `None` where no swizzle does better than none.
    pub fn for_rows(row_bytes: i64) -> Option<XorSwizzle> {
        if row_bytes < 16 || row_bytes % 16 != 0 {
            return None;
        }
        let chunks = 4;
        let all = (3..=9).flat_map(|shift| (1..=3).map(move |bits| XorSwizzle { bits, base: 4, shift }));
        let fits = all.filter(|it| it.is_valid(chunks) && row_bytes % it.block_bytes() == 0);
        let mut best = (column_wavefronts(row_bytes, None), None);
        for it in fits {
            let found = column_wavefronts(row_bytes, Some(it));
            if found < best.0 {
                best = (found, Some(it));
            }
        }
        best.1
    }
}

/// The wavefronts of all reads of one 16-byte chunk of each of eight rows, for 64 rows from a multiple of 8 on.
fn column_wavefronts(row_bytes: i64, swizzle: Option<XorSwizzle>) -> u32 {
    let mut sum = 0;
    for group in 0..8 {
        for chunk in 0..(row_bytes / 16).min(64) {
            let mut banks = [0; 8];
            for row in 0..8 {
                let offset = (group * 8 + row) * row_bytes + chunk * 16;
                let offset = swizzle.map_or(offset, |it| it.byte(offset));
                banks[usize::try_from(offset / 16 % 8).expect("offsets are not negative")] += 1;
            }
            sum += banks.into_iter().max().unwrap_or(0);
        }
    }
    sum
}

impl Swizzle {
    /// The words of a script that mean one: `auto` and the names of the modes.
    pub fn words() -> Vec<Name> {
        let modes = XorSwizzle::MODES.iter().map(|it| it.0);
        std::iter::once("auto").chain(modes).map(Name::from).collect()
    }

    /// The swizzle of such a word.
    pub fn parse(word: &str) -> Option<Swizzle> {
        let mode = XorSwizzle::MODES.iter().find(|it| it.0 == word).map(|it| Swizzle::Xor(it.1));
        if word == "auto" { Some(Swizzle::Auto) } else { mode }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_follow_bytes_and_none_is_lost() {
        for bytes in [1, 2, 4, 8] {
            for swizzle in [(1, 4, 3), (2, 4, 3), (3, 4, 3), (3, 4, 4), (2, 3, 2), (1, 4, 1)] {
                let (bits, base, shift) = swizzle;
                let swizzle = XorSwizzle { bits, base, shift };
                assert!(swizzle.is_valid(bytes));
                let var = Name::new("x");
                let moved = swizzle.element(&Index::var(&var), bytes);
                let count = 2 * swizzle.period_bytes() / bytes;
                let mut seen = std::collections::BTreeSet::new();
                for x in 0..count {
                    let at = moved.eval(&|_| Some(x)).unwrap();
                    assert_eq!(at * bytes, swizzle.byte(x * bytes));
                    assert_eq!(at * bytes / swizzle.block_bytes(), x * bytes / swizzle.block_bytes());
                    assert!(seen.insert(at));
                }
            }
        }
    }

    #[test]
    fn what_would_cut_elements_or_undo_itself_is_none() {
        let of = |bits, base, shift| XorSwizzle { bits, base, shift };
        assert!(!of(1, 1, 3).is_valid(4), "chunks of two bytes");
        assert!(!of(0, 4, 3).is_valid(4));
        assert!(!of(3, 4, 2).is_valid(4));
        assert!(!of(3, 4, 14).is_valid(4));
        assert!(!of(u32::MAX, 4, u32::MAX).is_valid(4));
    }
}
