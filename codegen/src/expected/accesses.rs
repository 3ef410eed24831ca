//! What accesses of lanes ask of the memory. A lane is where its access starts, in bytes.

/// The parts of `unit` bytes that accesses of `width` bytes touch, each once, in order.
pub fn touched(starts: &[i64], width: i64, unit: i64) -> Vec<i64> {
    let range = |start: &i64| start.div_euclid(unit)..=(start + width - 1).div_euclid(unit);
    let mut all: Vec<i64> = starts.iter().flat_map(range).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// The times that banks of shared memory are kept where all lanes are served together: 32 banks of 4 bytes, each a word at a time.
pub fn served_together(starts: &[i64], width: i64) -> f64 {
    let mut banks = [0u32; 32];
    for word in touched(starts, width, 4) {
        banks[usize::try_from(word.rem_euclid(32)).expect("below 32")] += 1;
    }
    f64::from(banks.into_iter().max().unwrap_or(0))
}

/// The same of a warp, of which 128 bytes of lanes are served at a time.
pub fn wavefronts(starts: &[i64], width: i64) -> f64 {
    let part = usize::try_from(128 / width.clamp(4, 128)).expect("1 to 32");
    starts.chunks(part).map(|lanes| served_together(lanes, width)).sum()
}
