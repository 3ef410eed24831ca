//! Asynchronous copies: `cp.async` in CUDA C++.

use ir::{Access, DType, Name, Scope, Value, Wait};

use super::{Printer, helper::Helper, names::identifier};
use crate::lower::passes::{choose_mechanisms::cp_async::cp_async, index_width::fits};

impl Printer<'_> {
    /// A copy that lands later. The pass `select_copies` leaves those that the target has as one instruction.
    pub(super) fn copy(&mut self, place: &Access, value: &Value) {
        let memory = |name: &Name| self.memory(name);
        let copy = cp_async(place, value, &memory).expect("`select_copies` made stores of all others");
        let is_bare = copy.cond.is_empty();
        let name = self.require(Helper::CopyAsync { bytes: copy.bytes, is_bare });
        let (to, from) = (self.address(place), self.address(copy.from));
        let cond = if is_bare { String::new() } else { format!(", {}", self.conditions(copy.cond)) };
        self.line(&format!("{name}({to}, {from}{cond});"));
    }

    /// Closes a group of copies.
    pub(super) fn commit(&mut self) {
        let name = self.require(Helper::CommitCopies);
        self.line(&format!("{name}();"));
    }

    /// Waits for copies of this thread.
    pub(super) fn wait(&mut self, it: &Wait) {
        let name = self.require(Helper::WaitCopies(it.in_flight));
        let buffers = it.buffers.iter().map(Name::as_str).collect::<Vec<_>>().join(", ");
        let comment = if buffers.is_empty() { buffers } else { format!(" // {buffers}") };
        self.line(&format!("{name}();{comment}"));
    }

    /// The type of a buffer's elements, and which memory it is in.
    fn memory(&self, name: &Name) -> Option<(DType, Scope)> {
        let scope = if self.frame.shared_offsets.contains_key(name) {
            Scope::Shared
        } else if self.module.args.contains_key(name) {
            Scope::Global
        } else {
            Scope::Local
        };
        Some((*self.frame.types.get(name)?, scope))
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

/// The function that closes a group. It moves no data; that it stays between the copies, being volatile, is enough.
pub(super) fn define_commit(name: &str) -> String {
    format!("TW_INLINE void {name}() {{ asm volatile(\"cp.async.commit_group;\"); }}\n")
}

/// The function that waits for all but the youngest groups. What is read behind it must be read behind it.
pub(super) fn define_wait(name: &str, in_flight: u32) -> String {
    format!(
        "TW_INLINE void {name}() {{ asm volatile(\"cp.async.wait_group {in_flight};\" ::: \"memory\"); }}\n"
    )
}
