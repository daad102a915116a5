// SPDX-License-Identifier: Apache-2.0

//! What is printed, and how paths and times are written.

use std::io::{self, Write};
use std::time::Duration;

use weft_lab::ClockMode;
use weft_text::units::format_duration;

use crate::Outcome;

/// Prints `text` as it is.
pub fn out(text: impl AsRef<str>) -> Outcome {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_ref().as_bytes())?;
    stdout.flush()?;
    Ok(())
}

/// Prints a document.
pub fn out_json(document: &impl serde::Serialize) -> Outcome {
    out(serde_json::to_string_pretty(document)? + "\n")
}

/// Whether the reader of our output has closed it.
pub fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .downcast_ref::<io::Error>()
        .is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// How long a lab with this clock has run: `1.96 s of virtual time in 2.70 s of real time`.
pub fn time(clock: ClockMode, virtual_ns: u64, wall: Duration) -> String {
    let wall = format_duration(wall.as_nanos() as f64) + " of real time";
    match clock.is_real_time() {
        true => wall,
        false => format!(
            "{} of virtual time in {wall}",
            format_duration(virtual_ns as f64)
        ),
    }
}

/// A path's letter: `A` for path 0.
pub fn path_letter(path: u32) -> char {
    u8::try_from(path)
        .ok()
        .filter(|path| *path < 26)
        .map_or('?', |path| char::from(b'A' + path))
}

/// A pattern as letters: `AABAC`.
pub fn sequence(paths: &[u32]) -> String {
    paths.iter().map(|path| path_letter(*path)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lab_in_real_time_has_no_other() {
        let time = |clock| time(clock, 5_000_000_000, Duration::from_secs(2));
        assert_eq!(
            time(ClockMode::Free),
            "5.00 s of virtual time in 2.00 s of real time"
        );
        assert_eq!(time(ClockMode::Real), "2.00 s of real time");
    }

    #[test]
    fn patterns_are_written_as_letters() {
        assert_eq!(sequence(&[0, 1, 0, 2, 25]), "ABACZ");
        assert_eq!(sequence(&[26]), "?");
    }
}
