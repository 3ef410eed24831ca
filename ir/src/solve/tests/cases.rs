//! Questions as dependences ask them.

use super::{answer, problem};

const NEVER: &[&str] = &[
    // One thread a row of eight, then the next row.
    "i: 0..4095, x y: 0..7 | 8*i + x == 8*(i + 1) + y",
    "i: 0..2^31, x y: 0..7 | 8*i + x == 8*(i + 1) + y",
    "i j: 0..4095, x y: 0..7 | 8*i + x == 8*j + y; i < j",
    "i j: 0..2^31, x y: 0..7 | 8*i + x == 8*j + y; i < j",
    // Ring slots.
    "i: 0..2^31 | (i + 2) % 3 == i % 3",
    "i: 0..2^31, x y: 0..1023 | (i + 2) % 3*1024 + x == i % 3*1024 + y",
    "i: 0..4095, x y: 0..1023 | (i + 3) % 4*1024 + x == i % 4*1024 + y",
    "i: 0..4095, j: 0..4095, d: 1..3, x y: 0..1023 | j == i + d; j % 4*1024 + x == i % 4*1024 + y",
    // Thread maps.
    "t u: 0..255, v w: 0..3 | 64*(t/16) + 4*(t%16) + v == 64*(u/16) + 4*(u%16) + w; t < u",
    "t u: 0..1023, v w: 0..3 | t/16*80 + t%16*4 + v == u/16*80 + u%16*4 + w; t < u",
    "t u: 0..255, p q: 0..3, v w: 0..3 | (p*1024 + t*4 + v)/32*36 + (p*1024 + t*4 + v)%32 == (q*1024 + u*4 + w)/32*36 + (q*1024 + u*4 + w)%32; t < u",
    "t u: 0..31, s: 0..2^31 | t == u; t < u",
    "x u: 0..15, y v: 0..15 | y*16 + x == v*16 + u; x < u",
    "x u: 0..15, y v: 0..15, k l: 0..3 | (y + k*16)*17 + x == (v + l*16)*17 + u; v < y",
    // Own thread's copies: the same map on both sides.
    "t u: 0..127, p q: 0..7 | (p*128 + t)/8*9 + (p*128 + t)%8 == (q*128 + u)/8*9 + (q*128 + u)%8; u < t",
    // Guards.
    "i: 0..2^31, y: 0..7, n: 1..2^31 | i*8 + y < n; n < i*8 + 1",
    "i j: 0..2^31, n: 1..2^31 | i < n; n < j; j < i + 2",
    "x y: 0..127 | x < 64; 63 < y; x == y",
    "x y: 0..127 | x%32 == y%32; x/32 == y/32; x < y",
    // Divisibility and parity.
    "x y: 0..2^31 | 2*x == 2*y + 1",
    "x y z: 0..2^31 | 6*x + 10*y == 15*z*2 + 1",
    "x: 0..2^31, y: 0..2^31 | 4*x + 2 == 8*y",
    "x y: 0..2^31 | 3*x + 5*y == 7; x < 2; y < 1",
    "x: 0..2^31 | x%4 == 3; x%2 == 0",
    "x: 0..2^31 | x/4*4 + x%4 < x",
    "x: 0..2^31 | x/4/4 < x/16",
    // Extremes.
    "x y: 0..2^31 | x < min(x, y)",
    "x y: 0..2^31 | min(x, y) + max(x, y) < x + y",
    "x y z: 0..1000 | max(x, y) < z; z < x + 1",
    // Products.
    "n: 1..2^31, i: 0..2^31, x y: 0..2^31 | n*i + x == n*(i + 1) + y; x < n; y < n",
    "n: 1..2^31, i j: 0..2^31, x y: 0..2^31 | n*i + x == n*j + y; x < n; y < n; i < j",
    "n: 1..2^31, x: 0..2^31 | n - 1 < x%n",
    "n: 1..2^31, x: 0..2^31 | x < x/n*n",
];

const POINT: &[&str] = &[
    "i: 0..4095, x y: 0..8 | 8*i + x == 8*(i + 1) + y",
    "i: 0..2^31 | (i + 3) % 3 == i % 3",
    "i: 0..2^31, d: 1..7, x y: 0..1023 | (i + d) % 4*1024 + x == i % 4*1024 + y",
    "t u: 0..255, v w: 0..4 | 64*(t/16) + 4*(t%16) + v == 64*(u/16) + 4*(u%16) + w; t < u",
    "t u: 0..127 | t == 127 - u; t < u",
    "i: 0..2^31, y: 0..7, n: 1..2^31 | i*8 + y < n; n < i*8 + y + 2",
    "x y: 0..2^31 | 1024*x + 33 == 7*y",
    "x y z: 0..2^31 | 6*x + 10*y == 15*z + 1",
    "x y: 0..2^31 | x%1024 == 1023; y == x/1024; 5000 < y",
    "x y z: 0..2^31 | max(x, y) < z; z < min(x, y) + 2",
    "n: 1..2^31, i j: 0..2^31, x y: 0..2^31 | n*i + x == n*j + y; y < n; i < j",
    "n m: 1..2^31, i: 0..2^31, k: 0..2^31 | i*m + k == 1000003; k < m; i < n; 1 < i; 1 < m",
    "t: 0..1023, u: 0..1023, v: 0..1023 | t%32*33 + t/32 == u%32*33 + v; u/32 == 3; 5 < t/32; v < 32",
    "x y: -100..100 | x/7 == -3; y%7 == 6; y < x",
];

#[test]
fn questions_have_answers() {
    for (cases, expected) in [(NEVER, "never"), (POINT, "point")] {
        for case in cases {
            assert_eq!(answer(&problem(case)), expected, "{case}");
        }
    }
}

#[test]
fn what_leaves_the_limits_is_unknown() {
    let cases = [
        "x: 0..9 | x == y",
        "x: 0..9223372036854775807 | x == 1",
        "x: 0..9 | x*9223372036854775807 == 1",
        "x: 0..9 | x/(0 - 2) == 1",
    ];
    for case in cases {
        assert_eq!(answer(&problem(case)), "unknown", "{case}");
    }
}

#[test]
fn an_empty_range_holds_no_point() {
    assert_eq!(answer(&problem("x: 0..9, x: 12..20 | x == x")), "never");
}
