//! Numbers as a reader wants them: thousands apart, fitting units, the same bytes for the same number.

/// With a comma between thousands: `1,234,567`.
pub(super) fn count(it: u64) -> String {
    commas(&it.to_string())
}

/// A speed in four digits or so, which may as well be one in GB/s: `52,341`, `736.5`, `1.25`.
pub(super) fn gflops(it: f64) -> String {
    match it {
        0.0 => "0".to_owned(),
        it if !it.is_finite() => "no".to_owned(),
        it if it.abs() >= 1e12 => format!("{it:.2e}"),
        it if it.abs() >= 999.95 => commas(&format!("{it:.0}")),
        it if it.abs() >= 99.995 => format!("{it:.1}"),
        it if it.abs() >= 0.01 => format!("{it:.2}"),
        it => format!("{it:.2e}"),
    }
}

pub(super) use crate::figures::time_words as seconds;

/// A longer time: `3 min 20 s`.
pub(super) fn duration(seconds: f64) -> String {
    if seconds < 100.0 {
        return format!("{seconds:.1} s");
    }
    // Beyond a million years the log is not to be believed anyway.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 100 and 3e13")]
    let whole = seconds.min(3e13).round() as u64;
    let (minutes, rest) = (whole / 60, whole % 60);
    if minutes < 60 {
        return format!("{minutes} min {rest} s");
    }
    format!("{} h {} min", count(minutes / 60), minutes % 60)
}

/// A part of a whole: `78.1 %`.
pub(super) fn percent(part: f64) -> String {
    let it = 100.0 * part;
    if it.abs() >= 0.05 || it == 0.0 { format!("{it:.1} %") } else { format!("{it:.1e} %") }
}

/// A ratio: `1.034`.
pub(super) fn ratio(it: f64) -> String {
    if it.abs() >= 100.0 { gflops(it) } else { format!("{it:.3}") }
}

/// Bytes: `60 MiB`.
pub(super) fn bytes(it: f64) -> String {
    let (mut value, mut unit) = (it, 0);
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    while value >= 1024.0 && unit + 1 < units.len() {
        (value, unit) = (value / 1024.0, unit + 1);
    }
    let number =
        if value >= 100.0 || value.fract() == 0.0 { format!("{value:.0}") } else { format!("{value:.1}") };
    format!("{} {}", commas(&number), units[unit])
}

/// A large count of operations: `17.2 G`.
pub(super) fn large(it: f64) -> String {
    let (mut value, mut unit) = (it, 0);
    let units = ["", "k", "M", "G", "T", "P"];
    while value >= 1000.0 && unit + 1 < units.len() {
        (value, unit) = (value / 1000.0, unit + 1);
    }
    let number = if unit == 0 { format!("{value:.0}") } else { format!("{value:.2}") };
    format!("{number} {}", units[unit]).trim_end().to_owned()
}

/// `1 trial`, `3 trials`.
pub(super) fn plural(number: usize, word: &str) -> String {
    format!("{} {word}{}", count(number as u64), if number == 1 { "" } else { "s" })
}

/// A coordinate: at most one digit after the point, and none where it is zero.
pub(super) fn coordinate(it: f64) -> String {
    let text = format!("{it:.1}");
    let text = text.strip_suffix(".0").unwrap_or(&text);
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// Commas into the digits before the point.
pub(super) fn commas(number: &str) -> String {
    let (sign, rest) = number.strip_prefix('-').map_or(("", number), |rest| ("-", rest));
    let (whole, point) = rest.split_at(rest.find('.').unwrap_or(rest.len()));
    let mut out = sign.to_owned();
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out + point
}

#[cfg(test)]
mod tests {
    use super::{bytes, commas, coordinate, count, duration, gflops, large, percent, seconds};

    #[test]
    fn numbers_read_well() {
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(commas("-1234.5"), "-1,234.5");
        assert_eq!([52_341.4, 736.52, 1.254, 0.0].map(gflops), ["52,341", "736.5", "1.25", "0"]);
        assert_eq!(
            [2.5, 0.0123, 333.42e-6, 5e-9].map(seconds),
            ["2.500 s", "12.300 ms", "333.42 µs", "5.00 ns"]
        );
        assert_eq!([99.0, 200.0, 7_260.0].map(duration), ["99.0 s", "3 min 20 s", "2 h 1 min"]);
        assert_eq!([0.781, 0.0, 1e-6].map(percent), ["78.1 %", "0.0 %", "1.0e-4 %"]);
        assert_eq!([62_914_560.0, 1536.0, 12.0].map(bytes), ["60 MiB", "1.5 KiB", "12 B"]);
        assert_eq!([17.18e9, 12.0].map(large), ["17.18 G", "12"]);
        assert_eq!([1.0, 0.25, -0.01].map(coordinate), ["1", "0.2", "0"]);
    }
}
