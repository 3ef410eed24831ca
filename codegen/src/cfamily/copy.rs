//! Asynchronous copies: `cp.async` in CUDA C++.

use ir::{Access, Name, Value};

use super::{Printer, helper::Helper, names::identifier};
use crate::lower::passes::{choose_mechanisms::cp_async::cp_async, index_width::fits};

impl Printer<'_> {
    /// A copy that lands later, which the target has as one instruction.
    pub(super) fn copy(&mut self, place: &Access, value: &Value) {
        let memory = |name: &Name| self.frame.memory.get(name).copied();
        let copy = cp_async(place, value, &memory).expect("`emit` refuses all others");
        let is_bare = copy.cond.is_empty();
        let name = self.require(Helper::CopyAsync { bytes: copy.bytes, is_bare });
        let (to, from) = (self.address(place), self.address(copy.from));
        let cond = if is_bare { String::new() } else { format!(", {}", self.choice_conditions(copy.cond)) };
        self.line(&format!("{name}({to}, {from}{cond});"));
    }

    /// The address of an element: that of one whose subscript no written-out loop changes, and a constant distance.
    ///
    /// An instruction adds a constant to an address for nothing. Said apart, the compiler sees that all copies of
    /// such a loop differ by one; within a sum of 32 bits it would add up the address of each.
    pub(super) fn address(&mut self, access: &Access) -> String {
        let name = identifier(&access.buffer);
        let Some(index) = access.indices.first() else { return format!("&{name}[0]") };
        let written_out = &self.frame.written_out;
        let (distance, base) = self.frame.bounds.split(index, &|var| !written_out.contains(var));
        let is_plain = distance.as_int().is_some() || base.as_int().is_some();
        if is_plain || !(self.frame.wide || fits(&base, &self.frame.bounds)) {
            return format!("&{name}[{}]", self.index(index));
        }
        let (at, distance) = (self.index(&base), self.index_term(&distance));
        format!("&{name}[{at}] + {distance}")
    }
}

/// The function that starts a copy of some bytes; one that is not bare writes zeros where nothing is there.
///
/// The copy writes memory behind the compiler's back, and must stay behind what read or wrote the place before: so
/// it clobbers memory. 16 bytes bypass the first-level cache, which only they can.
pub(super) fn define_copy(name: &str, bytes: usize, is_bare: bool) -> String {
    let cache = if bytes == 16 { "cg" } else { "ca" };
    let (parameter, operand, value) = if is_bare {
        ("", String::new(), String::new())
    } else {
        (", bool is_there", ", %2".to_owned(), format!(", \"r\"(is_there ? {bytes} : 0)"))
    };
    format!(
        "TW_INLINE void {name}(void *to, const void *from{parameter}) {{\n  \
         asm volatile(\"cp.async.{cache}.shared.global [%0], [%1], {bytes}{operand};\"\n               \
         :: \"r\"((unsigned int)__cvta_generic_to_shared(to)), \"l\"(__cvta_generic_to_global(from)){value}\n               \
         : \"memory\");\n}}\n"
    )
}
