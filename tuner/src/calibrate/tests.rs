//! What NVRTC makes of the kernels, and that probes and kernels fit together. No GPU is asked.

use std::{env, fs, path::Path};

use codegen::device::nvrtc;
use indexmap::IndexMap;
use ir::Arch;
use serde_json::Value;

use super::{Calibration, Quantity, Row, compiled, probes::probes, rows};

/// Each kernel that a probe starts is there, for architectures of every sort, and none has more registers than its threads may have.
#[test]
fn kernels_compile() {
    if nvrtc::find().is_err() && env::var_os("TILEWRIGHT_REQUIRE_NVRTC").is_none() {
        eprintln!("skipped: there is no NVRTC");
        return;
    }
    for text in ["sm_80", "sm_90a"] {
        let arch = Arch::parse(text).expect("it is one");
        let all = compiled(&arch).unwrap_or_else(|err| panic!("{text}: {err}"));
        for probe in probes(&arch, 132) {
            let (_, code) = all.iter().find(|it| it.0 == probe.source).expect("the source is compiled");
            let kernel = code.resources.iter().find(|it| it.kernel == probe.kernel);
            let kernel = kernel.unwrap_or_else(|| panic!("{text}: no kernel `{}`", probe.kernel));
            assert_eq!(kernel.spill_store_bytes, 0, "{text}: {kernel:?}");
            assert!(kernel.registers * probe.threads <= 65536, "{text}: {kernel:?}");
            assert!(kernel.warnings.is_empty(), "{text}: {kernel:?}");
        }
    }
}

/// A record of `bench/latency`.
fn record(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../bench/latency").join(name);
    fs::read_to_string(&path).unwrap_or_else(|err| panic!("{}: {err}", path.display()))
}

/// The medians of the record that was made before `calibrate` was, under the names of today.
fn old(text: &str) -> IndexMap<String, Quantity> {
    let all: IndexMap<String, Value> = serde_json::from_str(text).expect("it is a record");
    let numbers = all.into_iter().filter_map(|(name, it)| Some((name, it.as_f64()?)));
    let renamed = numbers.map(|(name, it)| match name.as_str() {
        "wgmma_m64n64k16_wait" => ("wgmma_f16_n64_latency".to_owned(), it - 32.0),
        _ => (name, it),
    });
    let quantity = |it: f64| Quantity { unit: String::new(), median: it, low: it, high: it };
    renamed.map(|(name, it)| (name, quantity(it))).collect()
}

fn expect_equal(all: &[Row], record: &str) {
    for it in all {
        let measured = it.measured.unwrap_or_else(|| panic!("{record} lacks `{}` for {}", it.from, it.name));
        assert!(
            (measured - it.committed).abs() <= 0.501,
            "{record}: {} is {measured}, and {} in the table",
            it.name,
            it.committed
        );
    }
}

/// The table of Hopper is what the records say that it names, but for rounding.
#[test]
fn the_table_is_what_the_records_say() {
    let arch = Arch::parse("sm_90a").expect("it is one");
    let caps = arch.caps();
    let paces = caps.latencies.paces.expect("Hopper was measured");
    let is_pace = |it: &Row| {
        !rows(
            &ir::Caps { latencies: ir::Latencies { paces: None, ..caps.latencies }, ..*caps },
            &IndexMap::new(),
            None,
        )
        .iter()
        .any(|of| of.name == it.name)
    };
    let h200 = "2026-11-23-h200.json";
    let (new, before): (Vec<Row>, Vec<Row>) =
        rows(caps, &old(&record(h200)), None).into_iter().partition(is_pace);
    assert!(!new.is_empty());
    expect_equal(&before, h200);
    let found: Calibration = serde_json::from_str(&record(paces.record)).expect("it is a record");
    let all = rows(caps, &found.measured, found.clock_mhz[0]);
    expect_equal(&all.into_iter().filter(is_pace).collect::<Vec<_>>(), paces.record);
}
