//! Tensor maps in the sources of a bundle: tables of them, and what encodes them by the driver.
//!
//! What a map is and which sizes it takes is said in `codegen` alone, for machines and for launchers.

use codegen::{DISTANCE_RULE, SIZE_RULE, SymbolicMap, device::MapWords};
use indexmap::IndexSet;
use ir::{Index, TensorMap};
use serde_json::{Value, json};

use super::{
    common::TOOL,
    expr::{Lang, fill, words},
    reference::rust_name,
    spec::{Launch, Spec},
};

type Holes = Vec<(&'static str, String)>;

/// The driver's constants for a map.
fn driver_words(it: &SymbolicMap) -> MapWords {
    MapWords::of(it.dtype, it.swizzle).expect("a kernel has only swizzles that the copy engine has")
}

fn each<T>(all: &[T], word: impl Fn(&T) -> String) -> String {
    all.iter().map(word).collect::<Vec<_>>().join(", ")
}

/// What all sources say of maps.
fn common_holes(spec: &Spec<'_>) -> Holes {
    let first = spec.maps.first().map(driver_words);
    let mut holes = vec![
        ("FUNC", spec.subject.module.name.to_string()),
        ("TOOL", TOOL.to_owned()),
        ("NAME", spec.name.to_owned()),
        ("UPPER", spec.name.to_uppercase()),
        ("MAP_COUNT", spec.maps.len().to_string()),
        ("MOST_DIMS", TensorMap::MOST_DIMS.to_string()),
        ("UNIT", TensorMap::UNIT.to_string()),
        ("LARGEST", TensorMap::LARGEST.to_string()),
        ("FARTHEST", TensorMap::FARTHEST.to_string()),
        ("SIZE_RULE", SIZE_RULE.to_owned()),
        ("DISTANCE_RULE", DISTANCE_RULE.to_owned()),
    ];
    // They are the same for all maps.
    if let Some(it) = first {
        holes.extend([
            ("INTERLEAVE_NUMBER", it.interleave.number.to_string()),
            ("INTERLEAVE", it.interleave.name),
            ("PROMOTION_NUMBER", it.promotion.number.to_string()),
            ("PROMOTION", it.promotion.name),
            ("FILL_NUMBER", it.fill.number.to_string()),
            ("FILL", it.fill.name),
        ]);
    }
    holes
}

/// The part of `sizes.rs` that is about maps; nothing without any.
pub(super) fn rust_sizes(spec: &Spec<'_>) -> String {
    if spec.maps.is_empty() {
        return String::new();
    }
    let row = |it: &SymbolicMap| {
        let SymbolicMap { name, buffer, dtype, tile, swizzle, .. } = it;
        let dtype = rust_name(*dtype);
        format!(
            "    Map {{ name: \"{name}\", buffer: {buffer}, dtype: {dtype}, tile: &{tile:?}, swizzle: {swizzle} }},\n"
        )
    };
    let sizes = |all: &[Index]| each(all, |it| Lang::Rust.checked(it, &|name| spec.dim_at(name)));
    let size = |it: &SymbolicMap| {
        format!(
            "        MapSize {{ dims: vec![{}], strides: vec![{}] }},\n",
            sizes(&it.dims),
            sizes(&it.strides)
        )
    };
    let mut holes = common_holes(spec);
    holes.extend([
        ("MAP_TABLE", spec.maps.iter().map(row).collect()),
        ("MAP_ARGUMENTS", each(&spec.launches, |it| format!("&{:?}", it.maps))),
        ("MAP_SIZES", spec.maps.iter().map(size).collect()),
    ]);
    fill(include_str!("templates/map_sizes.rs.txt"), &holes)
}

/// `tensor_maps.rs`.
pub(super) fn rust_file(spec: &Spec<'_>) -> String {
    let mut holes = common_holes(spec);
    let types = each(&spec.maps, |it| format!("DataType::{}", driver_words(it).data_type.name));
    let swizzles = each(&spec.maps, |it| format!("Swizzle::{}", driver_words(it).swizzle.name));
    holes.extend([("DATA_TYPES", types), ("SWIZZLES", swizzles)]);
    fill(include_str!("templates/tensor_maps.rs.txt"), &holes)
}

/// What the C launcher has of maps, in the holes of its template: nothing without any.
pub(super) fn c_holes(spec: &Spec<'_>) -> Holes {
    let names = ["MAPS", "MAP_SIZES", "MAP_CHECK", "MAP_ENCODE", "MAP_WORDS"];
    if spec.maps.is_empty() {
        return names.map(|it| (it, String::new())).to_vec();
    }
    let upper = spec.name.to_uppercase();
    let sizes = |all: &[Index]| {
        let innermost_first: Vec<_> = all.iter().rev().collect();
        each(&innermost_first, |it| Lang::C.checked(it, &|name| spec.dim_at(name)))
    };
    let row = |it: &SymbolicMap| format!("    {{{{{}}}, {{{}}}}},\n", sizes(&it.dims), sizes(&it.strides));
    let rows: String = spec.maps.iter().map(row).collect();
    let over_all =
        |call: &str| format!("  for (int i = 0; i < MAPS && code == {upper}_OK; i++) code = {call};\n");
    let encode = over_all("encode(&maps[i], &map_kinds[i], &map_sizes[i], all[map_kinds[i].buffer].start)");
    let texts = [
        c_part(spec),
        format!("  const map_size map_sizes[MAPS] = {{\n{rows}  }};\n"),
        over_all("check_map(&map_kinds[i], &map_sizes[i])"),
        format!("  tensor_map maps[MAPS];\n{encode}"),
        format!(
            "    case {upper}_MAP: return \"{}: the copy engine takes {SIZE_RULE}, and rows at distances in bytes that are {DISTANCE_RULE}\";\n",
            spec.name
        ),
    ];
    names.into_iter().zip(texts).collect()
}

/// The code of a map that cannot be encoded, in the header.
pub(super) fn c_code(spec: &Spec<'_>) -> String {
    if spec.maps.is_empty() {
        return String::new();
    }
    let name = format!("{}_MAP", spec.name.to_uppercase());
    format!(
        "  {name} = 14,       /* the copy engine of the GPU does not take a tensor of this size: from row to row it is {DISTANCE_RULE} bytes */\n"
    )
}

fn c_part(spec: &Spec<'_>) -> String {
    let kind = |it: &SymbolicMap| {
        let words = driver_words(it);
        let sides: Vec<_> = it.tile.iter().rev().collect();
        format!(
            "    {{{}, {}, {}, {}, {{{}}}}}, /* {}: {}, {} */\n",
            it.buffer,
            it.tile.len(),
            words.data_type.number,
            words.swizzle.number,
            each(&sides, ToString::to_string),
            it.name,
            words.data_type.name,
            words.swizzle.name,
        )
    };
    let mut holes = common_holes(spec);
    holes.push(("MAP_KINDS", spec.maps.iter().map(kind).collect()));
    fill(include_str!("templates/maps.c"), &holes)
}

/// What a launcher checks of the sizes of maps, where these are not constants.
pub(super) fn constraints(spec: &Spec<'_>) -> IndexSet<String> {
    let mut out = IndexSet::new();
    let open = |all: &[Index]| all.iter().filter(|it| it.as_int().is_none()).map(words).collect::<Vec<_>>();
    for map in &spec.maps {
        let (_, outer) = map.strides.split_last().expect("a map has a dimension");
        out.extend(open(&map.dims).iter().map(|it| format!("{it} <= {}", TensorMap::LARGEST)));
        out.extend(open(outer).iter().map(|it| format!("({it}) % {} == 0", TensorMap::UNIT)));
        out.extend(open(outer).iter().map(|it| format!("{it} < {}", TensorMap::FARTHEST)));
    }
    out
}

/// The maps of a launch in `kernel.json`, with what each is encoded with.
pub(super) fn manifest(spec: &Spec<'_>, launch: &Launch, size: &dyn Fn(&Index) -> Value) -> Vec<Value> {
    let map = |at: &usize| {
        let it = &spec.maps[*at];
        let words = driver_words(it);
        json!({
            "name": it.name,
            "tensor": it.tensor,
            "dtype": it.dtype,
            "sizes": it.dims.iter().map(size).collect::<Vec<_>>(),
            "distances_bytes": it.strides.iter().map(size).collect::<Vec<_>>(),
            "box": it.tile,
            "data_type": words.data_type.name,
            "interleave": words.interleave.name,
            "swizzle": words.swizzle.name,
            "promotion": words.promotion.name,
            "fill": words.fill.name,
        })
    };
    launch.maps.iter().map(map).collect()
}

/// What the page for readers says of maps and of early launches.
pub(super) fn readme(spec: &Spec<'_>) -> String {
    let parts = [
        (!spec.maps.is_empty(), include_str!("templates/README.maps.md")),
        (spec.is_early(), include_str!("templates/README.early.md")),
    ];
    let said: String = parts.into_iter().filter(|it| it.0).map(|it| it.1).collect();
    fill(&said, &common_holes(spec))
}
