// SPDX-License-Identifier: Apache-2.0

//! Wrong command lines, explained in one line.

use std::fmt;

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

impl std::error::Error for WrongUsage {}

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
    Some(said)
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
        for line in ["--senders -1", "--bytes", "surplus", "--senders 1.5"] {
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
