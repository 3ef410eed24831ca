//! What a speed is told in.

use crate::Work;

/// GFLOPS, or gigabytes a second for a workload that does little with what it reads: a transpose has no operations at all.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rate {
    /// Billions of operations on elements each second.
    Gflops,
    /// Billions of bytes of inputs and outputs each second, each byte counted once.
    GigabytesPerSecond,
}

impl Rate {
    /// Operations per byte below which bytes are told. A machine does ten or more in the time of a byte, so that nothing below is bound by
    /// arithmetic; a product of 16 x 16 matrices in f32 has 2.7.
    const FEW: f64 = 2.0;

    /// The rate for a workload.
    pub fn of(work: &Work) -> Rate {
        if work.flops < Rate::FEW * work.bytes { Rate::GigabytesPerSecond } else { Rate::Gflops }
    }

    /// The rate for all of some workloads, or for one at several sizes: bytes only where they are told of each.
    pub fn of_all(works: impl IntoIterator<Item = Work>) -> Rate {
        let all = works.into_iter().all(|it| Rate::of(&it) == Rate::GigabytesPerSecond);
        if all { Rate::GigabytesPerSecond } else { Rate::Gflops }
    }

    /// Its unit: `GFLOPS` or `GB/s`.
    pub const fn unit(self) -> &'static str {
        match self {
            Rate::Gflops => "GFLOPS",
            Rate::GigabytesPerSecond => "GB/s",
        }
    }

    /// The speed of a workload that takes so many seconds.
    pub fn speed(self, work: &Work, seconds: f64) -> f64 {
        let amount = match self {
            Rate::Gflops => work.flops,
            Rate::GigabytesPerSecond => work.bytes,
        };
        amount / seconds / 1e9
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_told_where_there_are_few_operations() {
        let transpose = Work { flops: 0.0, bytes: 8e9 };
        let product = Work { flops: 2e12, bytes: 12e6 };
        assert_eq!([transpose, product].map(|it| Rate::of(&it).unit()), ["GB/s", "GFLOPS"]);
        assert_eq!(Rate::of_all([transpose, product]), Rate::Gflops);
        let speeds = [Rate::of(&transpose).speed(&transpose, 2.0), Rate::Gflops.speed(&product, 2.0)];
        assert_eq!(speeds.map(|it| format!("{it:.3}")), ["4.000", "1000.000"]);
    }
}
