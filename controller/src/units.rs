//! Durations as people write them.

use std::time::Duration;

const UNITS: [(&str, u64); 4] = [
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
];

/// Reads `200ms`, `1.5s`, `10us`: more than nothing, exact to the nanosecond.
///
/// # Errors
/// One line that says what would be right.
pub fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is no duration; write for example 200ms, 1.5s or 10us");
    let (number, scale) = UNITS
        .iter()
        .find_map(|&(unit, scale)| Some((text.strip_suffix(unit)?, scale)))
        .ok_or_else(wrong)?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || fraction.len() > 9 || !digits(whole) || !digits(fraction) {
        return Err(wrong());
    }
    let whole: u64 = whole.parse().map_err(|_| wrong())?;
    let billionths: u64 = format!("{fraction:0<9}").parse().map_err(|_| wrong())?;
    let nanoseconds = u128::from(whole) * u128::from(scale)
        + u128::from(billionths) * u128::from(scale) / 1_000_000_000;
    match u64::try_from(nanoseconds) {
        Ok(nanoseconds) if nanoseconds > 0 => Ok(Duration::from_nanos(nanoseconds)),
        _ => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_is_read() {
        assert_eq!(duration("200ms"), Ok(Duration::from_millis(200)));
        assert_eq!(duration("1.5s"), Ok(Duration::from_millis(1500)));
        assert_eq!(duration("0.25us"), Ok(Duration::from_nanos(250)));
        assert_eq!(duration("7ns"), Ok(Duration::from_nanos(7)));
    }

    #[test]
    fn nonsense_is_refused_with_an_example() {
        for text in [
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
            assert!(duration(text).unwrap_err().contains("200ms"), "{text}");
        }
    }
}
