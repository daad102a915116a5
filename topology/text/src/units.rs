// SPDX-License-Identifier: Apache-2.0

//! Quantities as users write them: `1gbit`, `10us`, `64KiB`.
//!
//! Rates read as in `tc`: powers of 1000, in bits per second. Sizes know both
//! `KB` (1000) and `KiB` (1024).
//!
//! One set of rules reads them all. A number has digits before its point, and may have
//! some behind it; the unit follows, in capitals or not, after white space or not.
//! Rates, sizes and shares come out as exact whole numbers or are refused. Durations are
//! cut to whole nanoseconds, but a duration is never cut to nothing.

/// Bits per second from `1gbit`, `2.5gbit`, `100mbit`, `9600bit`.
///
/// # Errors
/// One line that says what a rate looks like.
pub fn parse_rate_bps(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, u64); 5] = [
        ("bit", 1),
        ("kbit", 1_000),
        ("mbit", 1_000_000),
        ("gbit", 1_000_000_000),
        ("tbit", 1_000_000_000_000),
    ];
    exact(text, &UNITS)
        .filter(|bps| *bps > 0)
        .ok_or_else(|| format!("{text:?} is no rate; write 1gbit or 100mbit"))
}

/// Nanoseconds from `10us`, `1.5ms`, `200ns`, `1s`; 0 is allowed.
///
/// # Errors
/// One line that says what a duration looks like.
pub fn parse_duration_ns(text: &str) -> Result<u64, String> {
    duration(text).ok_or_else(|| format!("{text:?} is no duration; write 10us or 1ms"))
}

/// Nanoseconds from `200ms`, `1.5s`, `10us`; above 0, for what cannot last no time.
///
/// # Errors
/// One line that says what such a duration looks like.
pub fn parse_positive_duration_ns(text: &str) -> Result<u64, String> {
    duration(text)
        .filter(|ns| *ns > 0)
        .ok_or_else(|| format!("{text:?} is no duration; write for example 200ms, 1.5s or 10us"))
}

/// Bytes from `65536`, `64KiB`, `225KB`, `1MB`; above 0.
///
/// # Errors
/// One line that says what a size looks like.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, u64); 8] = [
        ("", 1),
        ("b", 1),
        ("kb", 1_000),
        ("mb", 1_000_000),
        ("gb", 1_000_000_000),
        ("kib", 1 << 10),
        ("mib", 1 << 20),
        ("gib", 1 << 30),
    ];
    exact(text, &UNITS)
        .filter(|bytes| *bytes > 0)
        .ok_or_else(|| format!("{text:?} is no size in bytes; write 65536, 64KiB or 225KB"))
}

/// Parts in a million from `1%`, `0.05%`, `100%`; 0 is allowed.
///
/// # Errors
/// One line that says what a share looks like.
pub fn parse_share_ppm(text: &str) -> Result<u32, String> {
    exact(text, &[("%", 10_000)])
        .filter(|ppm| *ppm <= 1_000_000)
        .and_then(|ppm| u32::try_from(ppm).ok())
        .ok_or_else(|| {
            format!("{text:?} is no share; write 1% or 0.05%, up to 100%, in steps of 0.0001%")
        })
}

/// `1gbit` for 1 000 000 000; the shortest exact form.
#[must_use]
pub fn format_rate(bps: u64) -> String {
    let (unit, factor) = [
        ("tbit", 1_000_000_000_000),
        ("gbit", 1_000_000_000),
        ("mbit", 1_000_000),
        ("kbit", 1_000),
    ]
    .into_iter()
    .find(|(_, factor)| bps >= *factor && bps % (factor / 10) == 0)
    .unwrap_or(("bit", 1));
    format!("{}{unit}", bps as f64 / factor as f64)
}

/// A duration with three significant digits and its unit: `18.0 ms`.
#[must_use]
pub fn format_duration(ns: f64) -> String {
    let (value, unit) = match ns {
        _ if ns < 1e3 => return format!("{ns:.0} ns"),
        _ if ns < 999_500.0 => (ns / 1e3, "us"),
        _ if ns < 999_500_000.0 => (ns / 1e6, "ms"),
        _ => (ns / 1e9, "s"),
    };
    let digits = match value {
        _ if value < 9.995 => 2,
        _ if value < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.digits$} {unit}")
}

/// A size with its unit, rounded down, and with a decimal only below ten: `45 kB`, `1.5 MB`.
#[must_use]
pub fn format_bytes(bytes: u64) -> String {
    let (factor, unit) = match bytes {
        0..1_000 => return format!("{bytes} bytes"),
        1_000..1_000_000 => (1_000, "kB"),
        1_000_000..1_000_000_000 => (1_000_000, "MB"),
        _ => (1_000_000_000, "GB"),
    };
    match (bytes / factor, bytes % factor * 10 / factor) {
        (whole @ 0..10, tenths @ 1..) => format!("{whole}.{tenths} {unit}"),
        (whole, _) => format!("{whole} {unit}"),
    }
}

/// A duration in whole nanoseconds; none that is finer than one.
fn duration(text: &str) -> Option<u64> {
    const UNITS: [(&str, u64); 4] = [
        ("ns", 1),
        ("us", 1_000),
        ("ms", 1_000_000),
        ("s", 1_000_000_000),
    ];
    let (numerator, denominator) = quantity(text, &UNITS)?;
    let ns = numerator / denominator;
    if ns == 0 && numerator > 0 {
        return None;
    }
    u64::try_from(ns).ok()
}

/// A whole number of the smallest of `units`.
fn exact(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let (numerator, denominator) = quantity(text, units)?;
    if numerator % denominator != 0 {
        return None;
    }
    u64::try_from(numerator / denominator).ok()
}

/// A decimal number and one of `units` (lower case), as a fraction: numerator and
/// denominator.
fn quantity(text: &str, units: &[(&str, u64)]) -> Option<(u128, u128)> {
    let text = text.trim();
    let split = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let unit = unit.trim_start().to_ascii_lowercase();
    let (_, factor) = units.iter().find(|(name, _)| *name == unit)?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() {
        return None;
    }
    let denominator = 10u128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    let parts = if fraction.is_empty() {
        0
    } else {
        fraction.parse::<u128>().ok()?
    };
    let numerator = whole
        .parse::<u128>()
        .ok()?
        .checked_mul(denominator)?
        .checked_add(parts)?
        .checked_mul(u128::from(*factor))?;
    Some((numerator, denominator))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn rates_read_as_in_tc() {
        assert_eq!(parse_rate_bps("1gbit"), Ok(1_000_000_000));
        assert_eq!(parse_rate_bps("2.5Gbit"), Ok(2_500_000_000));
        assert_eq!(parse_rate_bps("100mbit"), Ok(100_000_000));
        assert_eq!(parse_rate_bps("1. gbit"), Ok(1_000_000_000));
        for wrong in [
            "",
            "1",
            "gbit",
            "0gbit",
            "1gbps",
            "-1gbit",
            ".5gbit",
            "1.2.3gbit",
            "1e9bit",
            "0.5bit",
        ] {
            assert_eq!(
                parse_rate_bps(wrong),
                Err(format!("{wrong:?} is no rate; write 1gbit or 100mbit"))
            );
        }
    }

    #[test]
    fn durations_need_a_unit_and_may_be_zero() {
        assert_eq!(parse_duration_ns("10us"), Ok(10_000));
        assert_eq!(parse_duration_ns("1.5ms"), Ok(1_500_000));
        assert_eq!(parse_duration_ns("0ns"), Ok(0));
        assert!(parse_duration_ns("10").is_err());
        assert!(parse_duration_ns("0.5ns").is_err());
        assert!(parse_duration_ns("99999999999999999999s").is_err());
    }

    #[test]
    fn durations_are_cut_to_whole_nanoseconds_but_not_to_nothing() {
        assert_eq!(parse_duration_ns("1.5ns"), Ok(1));
        assert_eq!(parse_duration_ns("1.123456789us"), Ok(1_123));
        assert_eq!(
            parse_duration_ns("9999999999999.000000001us").ok(),
            Some(9_999_999_999_999_000)
        );
        assert!(parse_positive_duration_ns("0.5ns").is_err());
    }

    #[test]
    fn what_has_to_last_lasts_longer_than_no_time() {
        assert_eq!(parse_positive_duration_ns("200ms"), Ok(200_000_000));
        assert_eq!(parse_positive_duration_ns("1.5s"), Ok(1_500_000_000));
        assert_eq!(parse_positive_duration_ns("0.25us"), Ok(250));
        assert_eq!(parse_positive_duration_ns("7ns"), Ok(7));
        assert_eq!(parse_positive_duration_ns("2.s"), Ok(2_000_000_000));
        for wrong in [
            "",
            "ms",
            "200",
            "-1ms",
            "1e3ms",
            "0ms",
            "99999999999999999s",
            "1h",
            ".5s",
        ] {
            assert_eq!(
                parse_positive_duration_ns(wrong),
                Err(format!(
                    "{wrong:?} is no duration; write for example 200ms, 1.5s or 10us"
                ))
            );
        }
    }

    #[test]
    fn sizes_tell_decimal_from_binary() {
        assert_eq!(parse_bytes("65536"), Ok(65_536));
        assert_eq!(parse_bytes("64KiB"), Ok(65_536));
        assert_eq!(parse_bytes("64KB"), Ok(64_000));
        assert_eq!(parse_bytes("1.5MB"), Ok(1_500_000));
        assert!(parse_bytes("0").is_err());
        assert!(parse_bytes("64k").is_err());
    }

    #[test]
    fn shares_are_percentages_in_whole_millionths() {
        assert_eq!(parse_share_ppm("1%"), Ok(10_000));
        assert_eq!(parse_share_ppm("0.0001%"), Ok(1));
        assert_eq!(parse_share_ppm("100%"), Ok(1_000_000));
        for wrong in ["1", "0.01", "101%", "-1%", "0.00001%", "%"] {
            assert!(parse_share_ppm(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn sizes_are_shown_in_the_unit_that_people_read() {
        for (bytes, shown) in [
            (0, "0 bytes"),
            (999, "999 bytes"),
            (1_460, "1.4 kB"),
            (45_000, "45 kB"),
            (999_999, "999 kB"),
            (1_000_000, "1 MB"),
            (1_550_000, "1.5 MB"),
            (5_000_000, "5 MB"),
            (12_345_678, "12 MB"),
            (2_500_000_000, "2.5 GB"),
            (u64::MAX, "18446744073 GB"),
        ] {
            assert_eq!(format_bytes(bytes), shown);
        }
    }

    #[test]
    fn durations_are_shown_with_three_digits() {
        assert_eq!(format_duration(999.0), "999 ns");
        assert_eq!(format_duration(1_234.0), "1.23 us");
        assert_eq!(format_duration(18_040_000.0), "18.0 ms");
        assert_eq!(format_duration(999_900.0), "1.00 ms");
        assert_eq!(format_duration(200_000_000.0), "200 ms");
        assert_eq!(format_duration(2.5e9), "2.50 s");
    }

    proptest! {
        #[test]
        fn parsing_never_panics(text in "\\PC{0,24}") {
            let _ = (parse_rate_bps(&text), parse_duration_ns(&text), parse_bytes(&text));
        }

        #[test]
        fn formatted_rates_parse_back(bps in 1u64..1_000_000_000_000_000) {
            prop_assert_eq!(parse_rate_bps(&format_rate(bps)), Ok(bps));
        }
    }
}
