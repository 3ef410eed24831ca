//! What each law makes of an expression, as tables.

use super::{bounds, read, read_less, show};
use crate::Name;

#[track_caller]
fn simplifies(known: &str, from: &str, to: &str) {
    let bounds = bounds(known);
    let out = bounds.simplify(&read(from));
    assert_eq!(show(&out), to, "{from}");
    assert_eq!(bounds.simplify(&out), out, "{from}: not a fixpoint");
}

#[test]
fn sums_are_merged() {
    simplifies("i: 8; v: 4", "(i + 1) + (v - 1)", "i + v");
    simplifies("i: 8", "i*3 - i - i - i", "0");
    simplifies("i: 8; j: 8", "(i + j)*(i - j)", "i*i - j*j");
    simplifies("n; i: n", "2*(n - i) - n", "n - i*2");
    simplifies("ii: 8; io: 4", "ii + io*8", "io*8 + ii");
}

#[test]
fn constant_divisors_are_resolved() {
    simplifies("i: 4096", "i/512*512 + i%512", "i");
    simplifies("io: 64; ii: 8", "(io*8 + ii)/8", "io");
    simplifies("io: 64; ii: 8", "(io*8 + ii)%8", "ii");
    simplifies("a: 64; v: 4", "(4*a + v)%16", "a%4*4 + v");
    simplifies("a: 64; v: 4", "(4*a + v)/16", "a/4");
    simplifies("x: 4096", "(x/4)/8", "x/32");
    simplifies("x: 4096", "(x/4 + 3)/8", "(x + 12)/32");
    simplifies("x: 4096", "x%64%16", "x%16");
    simplifies("x: 4096", "x%64/16", "x/16%4");
    simplifies("x: 4096", "x%64/16*16 + x%16", "x%64");
    simplifies("x: 4096", "x/64*64 + x%64/16*16 + x%16", "x");
    simplifies("t: 256; v: 4; io: 8", "(io*1024 + t*4 + v)%1024/32*32 + (io*1024 + t*4 + v)%32", "t*4 + v");
    simplifies("t: 256", "t%256", "t");
    simplifies("t: 256", "(6*t + 3)/4", "(t + 1)/2 + t");
    simplifies("i: 8", "(i - 8)/8", "-1");
    simplifies("i: 16", "(7 - i)/8", "(15 - i)/8 - 1");
    simplifies("n; i: 8", "(n*8 - i)/8", "(8 - i)/8 + n - 1");
    simplifies("n; i: n", "(n*8 - i)/8", "(n*8 - i)/8");
    simplifies("i: 8", "(7 - i)%8", "7 - i");
}

#[test]
fn exclusive_or_stands_as_it_is_between_its_bounds() {
    simplifies("i: 8; j: 8", "xor(j, i)*8 + xor(i, j)*8", "xor(i, j)*16");
    simplifies("i: 64", "xor(i, i*2 - i)", "0");
    simplifies("i: 64", "xor(i/64, i)", "i");
    simplifies("i: 8; j: 5", "xor(i, j)/8", "0");
    simplifies("i: 8; j: 8; v: 8", "(xor(i, j)*8 + v)/8%8", "xor(i, j)");
    simplifies(
        "r: 64; c: 8; v: 8",
        "(r*64 + c*8 + v)/64*64 + xor((r*64 + c*8 + v)/8%8, (r*64 + c*8 + v)/64%8)*8 + (r*64 + c*8 + v)%8",
        "r*64 + xor(r%8, c)*8 + v",
    );
    simplifies("i: 9; j: 2", "xor(i, j)%16", "xor(i, j)");
}

#[test]
fn symbolic_divisors_are_resolved() {
    simplifies("n; m; i: n; j: m", "(i*m + j)/m", "i");
    simplifies("n; m; i: n; j: m", "(i*m + j)%m", "j");
    simplifies("n; m; f: n*m", "f/m*m + f%m", "f");
    simplifies("n; m; i: n; j: m; k: 4", "(i*m*4 + j*4 + k)/(m*4)", "i");
    simplifies("n; m; i: n; j: m; k: 4", "(i*m*4 + j*4 + k)%(4*m)", "j*4 + k");
    simplifies("p; n; m; i: p; j: n; k: m", "(i*n*m + j*m + k)/(n*m)", "i");
    simplifies("p; n; m; i: p; j: n; k: m", "(i*n*m + j*m + k)/m%n", "j");
    simplifies("n; io: (n + 7)/8; ii: 8", "(io*8 + ii)/8", "io");
    simplifies("n; i: 9; j: (n + 7)/8", "(i*((n + 7)/8) + j)/((n + 7)/8)", "i");
    simplifies("n; i: 9; j: n + 1", "(i*(n + 1) + j)%(n + 1)", "j");
    simplifies("n; f: n", "f/n", "0");
}

#[test]
fn extremes_are_resolved() {
    simplifies("i: 8", "min(i, 9)", "i");
    simplifies("n; i: n", "max(n, i)", "n");
    simplifies("n; i: n", "min(n + i, i + 8) - i", "min(8, n)");
    simplifies("n; io: (n + 7)/8", "min(8, n - io*8) + io*8", "io*8 + min(8, n - io*8)");
}

#[test]
fn overflow_is_left_alone() {
    simplifies("i: 8", "i + 9223372036854775807 + 1", "i + 9223372036854775807 + 1");
    simplifies("i: 8", "i*9223372036854775807*2", "i*9223372036854775807*2");
    simplifies("i: 8", "i/0", "i/0");
}

#[test]
fn conditions_are_proved() {
    let proves = |known: &str, less: &str, expected| {
        assert_eq!(bounds(known).prove(&read_less(less)), expected, "{known}: {less}");
    };
    proves("i: 8", "i < 8", Some(true));
    proves("i: 8", "7 < i", Some(false));
    proves("i: 8", "i < 7", None);
    proves("n; i: n", "i < n", Some(true));
    proves("n; i: n", "n < i", Some(false));
    proves("n; i: n; j: 8", "i*8 + j < n*8", Some(true));
    proves("n; m; i: n; j: m", "i*m + j < n*m", Some(true));
    proves("n; m; f: n*m", "f/m < n", Some(true));
    proves("n; m; f: n*m", "f%m < m", Some(true));
    proves("n; io: (n + 7)/8; ii: 8 | io*8 + ii < n", "io*8 + ii < n", Some(true));
    proves("n; io: (n + 7)/8; ii: 8", "io*8 + ii < n", None);
    proves("n; io: (n + 7)/8; ii: 8", "io*8 + ii < n + 7", Some(true));
    proves("n; io: n/8; ii: 8", "io*8 + ii < n", Some(true));
    proves("n; io: n/8", "0 < n/8", Some(true));
    proves("n; io: (n + 7)/8; ii: min(8, n - 8*io)", "io*8 + ii < n", Some(true));
    proves("n; i: n", "0 < n - i", Some(true));
    proves("i: 8; j: 8 - i", "i + j < 8", Some(true));
    proves("i: 8; j: 8 | i + j < 5", "j < 5", Some(true));
    proves("n; i: n | 4*i < n - 3; 0 < i", "4*i + 3 < n", Some(true));
    proves("n; m; i: n | n < m + 1", "i < m", Some(true));
    proves("n", "n/8*8 < n + 1", Some(true));
    proves("n", "n < (n + 7)/8*8 + 1", Some(true));
    // Tiles of rows, numbered with those of columns: the last quotient is rounded down.
    proves("m; t: (m + 127)/128*16; a: 128", "t/16*128 + a < (m + 127)/128*128", Some(true));
    proves("m; n; t: m*n; a: 8", "t/n*8 + a < m*8", Some(true));
    proves("m; t: m*16 + 1; a: 128", "t/16*128 + a < m*128", None);
    proves("m; t: m*16; a: 129", "t/16*128 + a < m*128", None);
    proves("", "x < x + 1", Some(true));
    proves("", "x < y", None);
}

#[test]
fn conditions_are_simplified() {
    let simplifies = |known: &str, from: &str, to: &str| {
        let out = bounds(known).simplify_less(&read_less(from));
        assert_eq!(show(&out), to, "{known}: {from}");
    };
    simplifies("n; x: 2*n; y: 4", "4*x + y < 4*n", "x < n");
    simplifies("n; x: n; y: 4", "4*x + y < 4*n", "0 < 1");
    simplifies("n; x: n", "6*x < 4*n", "x*3 < n*2");
    simplifies("x: 64; y: 4", "4*x + y < 30", "x*4 + y < 30");
    simplifies("x: 64; y: 4", "4*x + y < 32", "x < 8");
    simplifies("n; m; i: n; j: m; k: n", "i*m + j < k*m", "i < k");
    simplifies("n; io: n", "io < (n + 7)/8", "io*8 < n");
    simplifies("n; io: n", "io + 1 < n - 2", "io + 3 < n");
    simplifies("i: 90", "8 < i", "8 < i");
    simplifies("n; i: n", "i/4 < 8", "i < 32");
}

#[test]
fn intervals_are_found() {
    let spans = |known: &str, index: &str, expected| {
        assert_eq!(bounds(known).interval(&read(index)), expected, "{known}: {index}");
    };
    spans("i: 8; j: 4", "i*4 + j", (Some(0), Some(31)));
    spans("i: 8", "7 - i", (Some(0), Some(7)));
    spans("n; i: n", "n - i", (Some(1), None));
    spans("i: 8; j: 8 - i", "i + j", (Some(0), Some(7)));
    spans("i: 8 | i < 5", "i", (Some(0), Some(4)));
    spans("i: 8 | 2 < i", "i", (Some(3), Some(7)));
    spans("n; io: (n + 7)/8; ii: min(8, n - 8*io)", "ii", (Some(0), Some(7)));
    spans("x: 100", "x%7", (Some(0), Some(6)));
    spans("", "x", (None, None));
}

#[test]
fn terms_are_found() {
    let bounds = bounds("n; i: n; j: 8; k: 4");
    let (outer, inner) = bounds.split(&read("(i*8 + j)*4 + k + 1"), &|it| *it == "j" || *it == "k");
    assert_eq!((show(&outer).as_str(), show(&inner).as_str()), ("i*32 + 1", "j*4 + k"));
    let linear = |index: &str, var: &str| {
        let (c, rest) = bounds.linear_in(&read(index), &Name::new(var))?;
        Some((c, show(&rest)))
    };
    assert_eq!(linear("(i*8 + j)*4 + k", "j"), Some((4, "i*32 + k".into())));
    assert_eq!(linear("i*8", "j"), Some((0, "i*8".into())));
    assert_eq!(linear("i*n + j", "i"), None);
    assert_eq!(linear("j/2 + j", "j"), None);
    assert!(bounds.divides(8, &read("i*16 + 8")));
    assert!(bounds.divides(4, &read("i*n*4 - j/2*8")));
    assert!(!bounds.divides(8, &read("i*16 + j")));
    assert!(!bounds.divides(0, &read("i")));
    assert!(bounds.divides(0, &read("i - i")));
    assert!(bounds.equal(&read("(i + j)*8"), &read("i*8 + j*8")));
    assert!(!bounds.equal(&read("i"), &read("j")));
}
