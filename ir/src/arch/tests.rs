//! The table says what NVIDIA publishes, and answers for every architecture that can be written.

use std::fmt::Write as _;

use super::{Arch, Caps, Feature, TABLE};

const FEATURES: [Feature; 19] = [
    Feature::Ldmatrix,
    Feature::MmaF16,
    Feature::MmaBf16,
    Feature::MmaTf32,
    Feature::MmaI8,
    Feature::MmaF8,
    Feature::ConvertBf16,
    Feature::CpAsync,
    Feature::Mbarrier,
    Feature::VectorAdd,
    Feature::Stmatrix,
    Feature::Clusters,
    Feature::Tma,
    Feature::Wgmma,
    Feature::Tcgen05,
    Feature::Tcgen05I8,
    Feature::ClusterLaunchControl,
    Feature::ArchCode,
    Feature::FamilyCode,
];

fn arch(text: &str) -> Arch {
    Arch::parse(text).unwrap()
}

/// The rows as they read in the published tables: a change of a number is a change of this text.
#[test]
fn rows() {
    let mut out = String::new();
    for it in TABLE {
        let rates = it.tensor;
        let rates = [rates.f16, rates.bf16, rates.tf32, rates.i8, rates.f8];
        let rates = rates.map(|it| it.map_or("-".to_owned(), |it| it.to_string())).join(" ");
        let features: Vec<_> = FEATURES.iter().filter(|of| it.features.has(**of)).collect();
        writeln!(
            out,
            "sm_{}: {} blocks, {} warps, {} threads, barriers {:?}\n  \
             shared {} a block, {} a multiprocessor, {} reserved, by {}\n  \
             registers {} a thread, {} a block, {} a multiprocessor, by {} in {} partitions\n  \
             {} f32 lanes; f16 bf16 tf32 i8 f8: {rates}, f8 sums {:?}; vectors of {}; {:?}\n  {features:?}",
            it.sm,
            it.blocks_per_sm,
            it.warps_per_sm,
            it.threads_per_sm(),
            it.barriers_per_sm,
            it.max_shared_per_block,
            it.shared_per_sm,
            it.reserved_shared,
            it.shared_unit,
            it.registers_per_thread,
            it.registers_per_block,
            it.registers_per_sm,
            it.register_unit,
            it.partitions,
            it.f32_lanes,
            it.f8_sum_bits,
            it.vector_bytes,
            it.cluster,
        )
        .unwrap();
    }
    insta::assert_snapshot!(out);
}

#[test]
fn rows_are_sorted_and_fit_together() {
    assert!(TABLE.is_sorted_by(|a, b| a.sm < b.sm));
    for it in TABLE {
        assert!(it.max_shared_per_block + it.reserved_shared <= it.shared_per_sm, "sm_{}", it.sm);
        assert!(it.max_shared_per_block >= Arch::DEFAULT_SHARED, "sm_{}", it.sm);
        assert!(it.threads_per_sm() >= Arch::MAX_THREADS, "sm_{}", it.sm);
        assert_eq!(it.registers_per_sm % (it.partitions * it.register_unit), 0, "sm_{}", it.sm);
        assert_eq!(it.cluster.is_some(), it.features.has(Feature::Clusters), "sm_{}", it.sm);
        assert!(it.cluster.is_none_or(|it| it.portable <= it.most), "sm_{}", it.sm);
    }
}

#[test]
fn every_architecture_is_like_the_newest_before_it() {
    let mut row: &Caps = &TABLE[0];
    for sm in 50..=990 {
        let arch = arch(&format!("sm_{sm}"));
        let known = TABLE.iter().find(|it| it.sm == sm);
        row = known.unwrap_or(row);
        assert_eq!((arch.caps(), arch.known_caps()), (row, known), "{arch}");
    }
    let like = ["sm_53", "sm_72", "sm_85", "sm_95a", "sm_101a", "sm_130"].map(|it| arch(it).caps().sm);
    assert_eq!(like, [50, 70, 80, 90, 100, 121]);
    assert_eq!(Arch { sm: 20, suffix: None }.caps().sm, 50, "one that nobody can write");
}

#[test]
fn first_architectures_of_features() {
    let least = FEATURES.map(|it| format!("{it:?} {}", it.least_sm())).join(", ");
    let expected = "Ldmatrix 75, MmaF16 80, MmaBf16 80, MmaTf32 80, MmaI8 80, MmaF8 89, ConvertBf16 80, CpAsync 80, \
                    Mbarrier 80, VectorAdd 90, Stmatrix 90, Clusters 90, Tma 90, Wgmma 90, Tcgen05 100, Tcgen05I8 100, ClusterLaunchControl 100, ArchCode 90, \
                    FamilyCode 100";
    assert_eq!(least, expected);
}

#[test]
fn features_name_their_targets() {
    let of = [Feature::CpAsync, Feature::Wgmma, Feature::Tcgen05, Feature::Tcgen05I8, Feature::FamilyCode];
    let expected =
        ["sm_80 or later", "sm_90a", "sm_100a, sm_103a or sm_110a", "sm_100a or sm_110a", "sm_100 or later"];
    assert_eq!(of.map(Feature::targets), expected);
}

#[test]
fn some_instructions_need_a_suffix() {
    let has = |text: &str| {
        let of = [Feature::Wgmma, Feature::Tcgen05, Feature::Tcgen05I8, Feature::Tma, Feature::CpAsync];
        of.map(|it| u8::from(arch(text).has(it)))
    };
    let archs = [
        "sm_80", "sm_89", "sm_90", "sm_90a", "sm_100", "sm_100a", "sm_100f", "sm_103a", "sm_103f", "sm_120a",
    ];
    let expected = [
        [0, 0, 0, 0, 1],
        [0, 0, 0, 0, 1],
        [0, 0, 0, 1, 1],
        [1, 0, 0, 1, 1],
        [0, 0, 0, 1, 1],
        [0, 1, 1, 1, 1],
        [0, 1, 0, 1, 1],
        [0, 1, 0, 1, 1],
        [0, 1, 0, 1, 1],
        [0, 0, 0, 1, 1],
    ];
    assert_eq!(archs.map(has), expected);
}
