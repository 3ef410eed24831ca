//! What blocks of threads do to each other within one kernel: they take turns, and add to the same elements.
//!
//! Both are operations of the memory behind the compiler's back, in PTX. A turn begins with loads of the first thread
//! that acquire and ends with a store that releases; the barriers inside carry both over to the other threads.

use std::fmt::Write as _;

use ir::{Access, DType, Feature, Semaphore, SemaphoreKind, Value};

use super::{Printer, helper::Helper};

impl Printer<'_> {
    /// An addition that no other thread comes between.
    pub(super) fn atomic_add(&mut self, place: &Access, value: &Value) {
        let dtype = self.frame.memory.get(&place.buffer).map(|it| it.0);
        let Some(dtype) = dtype.filter(|it| added(*it).is_some() && !self.dialect.is_c()) else {
            // One thread runs this, or lowering would have refused it.
            let sum = Value::binary(ir::BinaryOp::Add, Value::Load(place.clone()), value.clone());
            self.store(place, &sum);
            return;
        };
        let name = self.require(Helper::AtomicAdd(dtype, place.lanes));
        let (to, value) = (self.address(place), self.value(value, place.lanes));
        self.line(&format!("{name}({to}, {value});"));
    }

    /// The beginning or the end of a turn.
    pub(super) fn semaphore(&mut self, it: &Semaphore) {
        if self.dialect.is_c() {
            self.line("// One thread runs all blocks, one after the other.");
            return;
        }
        let counter = self.address(&it.counter);
        let (turn, count) = (self.index(&it.turn), self.index(&it.count));
        match it.kind {
            SemaphoreKind::Acquire => {
                let name = self.require(Helper::Acquire);
                self.line(&format!("{name}({counter}, {turn});"));
            }
            SemaphoreKind::Release => {
                let name = self.require(Helper::Release);
                self.line(&format!("{name}({counter}, {turn}, {count});"));
            }
        }
    }

    /// The function that adds to adjacent elements.
    pub(super) fn define_atomic_add(&mut self, name: &str, dtype: DType, lanes: u32) -> String {
        let (element, of) = (self.require(Helper::Type(dtype, 1)), self.require(Helper::Type(dtype, lanes)));
        let has_vectors = self.dialect.has(Feature::VectorAdd);
        let at = |lane: u32| if lanes == 1 { "v".to_owned() } else { format!("v.at[{lane}]") };
        let width = if has_vectors && dtype == DType::F32 { lanes.min(4) } else { 1 };
        let (word, register) = added(dtype).expect("other types are not asked for");
        let mut body = String::new();
        for first in (0..lanes).step_by(width as usize) {
            let operands: Vec<_> = (1..=width).map(|it| format!("%{it}")).collect();
            let values: Vec<_> =
                (first..first + width).map(|lane| format!("\"{register}\"({})", at(lane))).collect();
            let (vector, operands) = match width {
                1 => (String::new(), operands.join(", ")),
                _ => (format!(".v{width}"), format!("{{{}}}", operands.join(", "))),
            };
            let _ = write!(
                body,
                "  asm volatile(\"red.relaxed.gpu.global.add{vector}.{word} [%0], {operands};\"\n               \
                 :: \"l\"(__cvta_generic_to_global(to + {first})), {} : \"memory\");\n",
                values.join(", ")
            );
        }
        format!("TW_INLINE void {name}({element} *to, {of} v) {{\n{body}}}\n")
    }
}

/// A type whose elements memory can add to in one step: its word in PTX, and the letter of its registers in inline
/// assembly.
const fn added(dtype: DType) -> Option<(&'static str, &'static str)> {
    match dtype {
        DType::F32 => Some(("f32", "f")),
        DType::F64 => Some(("f64", "d")),
        DType::I32 => Some(("s32", "r")),
        DType::U32 => Some(("u32", "r")),
        DType::Bool
        | DType::I8
        | DType::I16
        | DType::I64
        | DType::U8
        | DType::U16
        | DType::F16
        | DType::Bf16
        | DType::Tf32
        | DType::F8e4m3
        | DType::F8e5m2
        | DType::F8e8m0 => None,
    }
}

/// The condition that only the first thread of a block passes.
const FIRST: &str = "threadIdx.x + threadIdx.y + threadIdx.z == 0";

/// The function that waits for a turn.
pub(super) fn define_acquire(name: &str) -> String {
    format!(
        "TW_INLINE void {name}(const int *counter, int turn) {{\n  \
           if ({FIRST}) {{\n    \
             int now;\n    \
             do {{\n      \
               asm volatile(\"ld.acquire.gpu.global.b32 %0, [%1];\"\n                   \
               : \"=r\"(now) : \"l\"(__cvta_generic_to_global(counter)) : \"memory\");\n    \
             }} while (now != turn);\n  \
           }}\n  \
           __syncthreads();\n}}\n"
    )
}

/// The function that ends a turn.
pub(super) fn define_release(name: &str) -> String {
    format!(
        "TW_INLINE void {name}(int *counter, int turn, int count) {{\n  \
           __syncthreads();\n  \
           if ({FIRST}) {{\n    \
             asm volatile(\"st.release.gpu.global.b32 [%0], %1;\"\n                 \
             :: \"l\"(__cvta_generic_to_global(counter)), \"r\"(turn + 1 < count ? turn + 1 : 0) : \"memory\");\n  \
           }}\n}}\n"
    )
}
