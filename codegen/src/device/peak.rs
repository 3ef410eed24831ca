//! What a machine can do at most in matrix products, by the type of their factors.
//!
//! The figures follow from the machine's peak in f32, which has its clock and its multiprocessors in it, and from how many
//! operations a multiprocessor does a clock (`ir::TensorRates`).

use ir::{Arch, DType};

use super::MachineInfo;

impl MachineInfo {
    /// The most operations per second in matrix products of factors of a type, in GFLOPS: by matrix units where the machine
    /// has them for the type, else as many as in f32 for f32 and f64. `None` where it cannot be told.
    pub fn peak_product_gflops(&self, factors: DType) -> Option<f64> {
        let plain = self.peak_f32_gflops?;
        match factors {
            DType::F32 | DType::F64 => Some(plain),
            DType::F16
            | DType::Bf16
            | DType::Tf32
            | DType::F8e4m3
            | DType::F8e5m2
            | DType::I8
            | DType::U8 => {
                let caps = Arch::parse(&self.arch)?.known_caps()?;
                let lanes = f64::from(2 * caps.f32_lanes);
                Some(plain / lanes * f64::from(caps.tensor.of(factors)?))
            }
            DType::Bool | DType::I16 | DType::I32 | DType::I64 | DType::U16 | DType::U32 | DType::F8e8m0 => {
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn card(arch: &str, units: u32, mhz: f64) -> MachineInfo {
        let lanes = Arch::parse(arch).map_or(1, |it| 2 * it.caps().f32_lanes);
        MachineInfo {
            name: "card".to_owned(),
            arch: arch.to_owned(),
            units,
            peak_f32_gflops: Some(f64::from(units * lanes) * mhz / 1e3),
            peak_gb_per_s: None,
            cache_bytes: 0,
            id: None,
            versions: vec![],
        }
    }

    /// TFLOPS of data sheets at their clocks: A100, A40, L40S, H100 (SXM), B200, RTX PRO 6000 (Blackwell).
    #[test]
    fn peaks_are_those_of_data_sheets() {
        let cards = [
            (card("sm_80", 108, 1410.0), [312.0, 156.0, 624.0]),
            (card("sm_86", 84, 1740.0), [149.7, 74.8, 299.3]),
            (card("sm_89", 142, 2520.0), [366.4, 183.2, 732.8]),
            (card("sm_90a", 132, 1830.0), [989.4, 494.7, 1978.9]),
            (card("sm_100a", 148, 1850.0), [2250.0, 1125.0, 4500.0]),
            (card("sm_120a", 188, 2617.0), [503.8, 251.9, 1007.6]),
        ];
        for (info, expected) in cards {
            let found = [DType::F16, DType::Tf32, DType::I8]
                .map(|it| info.peak_product_gflops(it).expect("it is known") / 1e3);
            for (found, expected) in found.into_iter().zip(expected) {
                assert!((found / expected - 1.0).abs() < 0.01, "{}: {found} is not {expected}", info.arch);
            }
            // As fast as i8 from Ada on.
            let bytes = [DType::F8e4m3, DType::F8e5m2, DType::I8].map(|it| info.peak_product_gflops(it));
            let has_f8 = !["sm_80", "sm_86"].contains(&info.arch.as_str());
            assert_eq!(bytes[..2], [bytes[2].filter(|_| has_f8); 2], "{}", info.arch);
        }
    }

    #[test]
    fn what_is_not_known_is_not_told() {
        let cpu = MachineInfo { peak_f32_gflops: Some(100.0), ..card("cpu", 4, 1.0) };
        assert_eq!([DType::F32, DType::F16].map(|it| cpu.peak_product_gflops(it)), [Some(100.0), None]);
        let old = card("sm_75", 40, 1590.0);
        let known = DType::ALL.into_iter().filter(|it| old.peak_product_gflops(*it).is_some());
        assert_eq!(known.map(DType::as_str).collect::<Vec<_>>(), ["i8", "u8", "f16", "f32", "f64"]);
        assert_eq!(card("sm_110a", 20, 1.0).peak_product_gflops(DType::F16), None);
    }
}
