//! How wide vectors are.

use std::sync::atomic::{AtomicUsize, Ordering};

use ir::Target;

/// The environment variable that has the bytes of vectors on a CPU: 16, 32 or 64; anything else counts as not given.
pub const VECTOR_BYTES: &str = "TILEWRIGHT_VECTOR_BYTES";

/// What was said about CPUs, 0 before somebody asked.
static OF_CPU: AtomicUsize = AtomicUsize::new(0);

/// The widest vectors that pay on a target, in bytes: on a CPU what this machine has in one register, or what [`set_vector_bytes`] or
/// [`VECTOR_BYTES`] says, and 16 on a GPU.
pub fn vector_bytes(target: &Target) -> usize {
    if let Target::Cuda(_) = target {
        return target.max_vector_bytes();
    }
    match OF_CPU.load(Ordering::Relaxed) {
        0 => {
            let said = std::env::var(VECTOR_BYTES).ok().and_then(|it| it.parse().ok());
            let bytes = said.filter(|it| [16, 32, 64].contains(it)).unwrap_or_else(|| of_machine(target));
            OF_CPU.store(bytes, Ordering::Relaxed);
            bytes
        }
        bytes => bytes,
    }
}

/// Makes C for CPUs whose vectors have so many bytes, 16, 32 or 64, in this process from now on: sources that are to be the same on every
/// machine.
pub fn set_vector_bytes(bytes: usize) {
    OF_CPU.store(bytes, Ordering::Relaxed);
}

#[cfg_attr(
    not(target_arch = "x86_64"),
    expect(unused_variables, reason = "all such CPUs have vectors of 16 bytes")
)]
fn of_machine(target: &Target) -> usize {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx512f") {
        return target.max_vector_bytes();
    }
    // GCC keeps vectors wider than a register in memory, ten times slower than narrower ones.
    if cfg!(target_arch = "x86_64") { 32 } else { 16 }
}
