// SPDX-License-Identifier: Apache-2.0

//! Wrong command lines, explained in one line.

use std::error::Error;
use std::fmt;
use std::num::{IntErrorKind, ParseFloatError, ParseIntError};

/// Exit status of wrong usage: command lines and files that cannot be used.
pub const EXIT_USAGE: u8 = 2;

/// Exit status after Ctrl-C, as shells have it: 128 and the number of SIGINT.
pub const EXIT_INTERRUPTED: u8 = 130;

/// Wrong usage that shows only when a run is prepared: flags whose values do not fit together, or a
/// choice that the kernel of the hosts does not offer. One line, with what would be right.
#[derive(Debug)]
pub struct WrongUsage(pub String);

impl fmt::Display for WrongUsage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for WrongUsage {}

/// What went wrong and why, for people: Rust writes "(os error 2)" behind "No such file or
/// directory", which says the same again.
#[must_use]
pub fn plain(error: impl fmt::Display) -> String {
    // "#": with all causes, where it is an `anyhow::Error`
    let text = format!("{error:#}");
    let mut parts = text.split(" (os error ");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| match part.split_once(')') {
        Some((number, rest)) if number.parse::<u32>().is_ok() => text + rest,
        _ => text + " (os error " + part,
    })
}

/// What clap has to say about a command line, in one line: what is wrong, what
/// would be right. `None` for help and version texts, which are no mistakes.
#[must_use]
pub fn one_line(error: &clap::Error) -> Option<String> {
    if !error.use_stderr() {
        return None;
    }
    let text = error.render().to_string();
    let lines = text
        .lines()
        .map(str::trim)
        .take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more"))
        .filter(|line| !line.is_empty());
    let mut said = String::new();
    for line in lines {
        let line = line.strip_prefix("error: ").unwrap_or(line);
        let line = line.strip_prefix("tip: ").unwrap_or(line);
        if !said.is_empty() {
            let joint = if said.ends_with(':') || line.starts_with('[') {
                " "
            } else {
                "; "
            };
            said.push_str(joint);
        }
        said.push_str(line);
    }
    if let Some((reason, plain)) = number_mistake(error) {
        said = said.replace(&reason, plain);
    }
    Some(said)
}

/// What Rust says of text that is not the number that a flag takes, and what people can use.
fn number_mistake(error: &clap::Error) -> Option<(String, &'static str)> {
    let source = error.source()?;
    let plain = if source.is::<ParseFloatError>() {
        "write a number, such as 0.5"
    } else {
        match source.downcast_ref::<ParseIntError>()?.kind() {
            IntErrorKind::PosOverflow => "that is too large",
            IntErrorKind::NegOverflow => "that is too small",
            _ => "write a whole number, such as 3",
        }
    };
    Some((source.to_string(), plain))
}

#[cfg(test)]
mod tests {
    use clap::{Parser, ValueEnum};

    use super::*;
    use crate::units::parse_bytes;

    #[derive(Debug, Clone, Copy, ValueEnum)]
    enum Protocol {
        Mptcp,
        Tcp,
    }

    #[derive(Debug, Parser)]
    struct Cli {
        #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
        bytes: Option<u64>,
        #[arg(long, value_enum)]
        protocol: Option<Protocol>,
        #[arg(long)]
        senders: Option<u8>,
        #[arg(long)]
        load: Option<f64>,
        #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
        runs: Option<u16>,
    }

    fn complaint(line: &str) -> String {
        let words = std::iter::once("test").chain(line.split_whitespace());
        one_line(&Cli::try_parse_from(words).unwrap_err()).unwrap()
    }

    #[test]
    fn every_mistake_is_one_line_with_the_remedy() {
        assert_eq!(
            complaint("--bytes many"),
            "invalid value 'many' for '--bytes <SIZE>': \"many\" is no size in bytes; \
             write 65536, 64KiB or 225KB"
        );
        assert_eq!(
            complaint("--protocol quic"),
            "invalid value 'quic' for '--protocol <PROTOCOL>' [possible values: mptcp, tcp]"
        );
        assert_eq!(
            complaint("--sender 3"),
            "unexpected argument '--sender' found; a similar argument exists: '--senders'"
        );
        assert_eq!(
            complaint("--load abc"),
            "invalid value 'abc' for '--load <LOAD>': write a number, such as 0.5"
        );
        assert_eq!(
            complaint("--senders 1.5"),
            "invalid value '1.5' for '--senders <SENDERS>': write a whole number, such as 3"
        );
        assert_eq!(
            complaint("--runs many"),
            "invalid value 'many' for '--runs <RUNS>': write a whole number, such as 3"
        );
        assert_eq!(
            complaint("--runs 99999999999999999999"),
            "invalid value '99999999999999999999' for '--runs <RUNS>': that is too large"
        );
        for line in ["--senders -1", "--bytes", "surplus", "--senders 300"] {
            assert!(!complaint(line).contains('\n'), "{line}");
        }
    }

    #[test]
    fn nobody_reads_numbers_of_errors() {
        let missing = std::fs::read("/none/such").unwrap_err();
        assert_eq!(
            plain(format!("a: {missing} (b: {missing})")),
            "a: No such file or directory (b: No such file or directory)"
        );
        for text in ["", "all is well", "(os error 2", " (os error two) c"] {
            assert_eq!(plain(text), text);
        }
    }

    #[test]
    fn help_is_no_mistake() {
        let help = Cli::try_parse_from(["test", "--help"]).unwrap_err();
        assert_eq!(one_line(&help), None);
    }
}
