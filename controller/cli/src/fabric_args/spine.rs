// SPDX-License-Identifier: Apache-2.0

//! What single spines may have of their own: `--spine-rate 2=5mbit`.

use std::collections::BTreeMap;

use super::{parse_delay, parse_link_rate, parse_loss, parse_queue};

/// A spine, from 1, and the value it gets.
pub type SpineValue = (u8, u64);

/// Links that differ from the rest of the fabric, as flags.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Fabric")]
pub struct SpineArgs {
    /// Another delay for all links of one spine: 2=40us, or of several: 1=20us,2=40us
    #[arg(long, value_name = "SPINE=TIME", value_delimiter = ',', value_parser = parse_spine_delay)]
    spine_delay: Vec<SpineValue>,

    /// Another rate for all links of one spine: 2=5mbit
    #[arg(long, value_name = "SPINE=RATE", value_delimiter = ',', value_parser = parse_spine_rate)]
    spine_rate: Vec<SpineValue>,

    /// Another queue depth at both ends of all links of one spine: 2=3750
    #[arg(long, value_name = "SPINE=PACKETS", value_delimiter = ',', value_parser = parse_spine_queue)]
    spine_queue: Vec<SpineValue>,

    /// Share of packets that one spine drops at random as they arrive: 1=1%. This affects data
    /// and ACKs that cross it, each once
    #[arg(long, value_name = "SPINE=SHARE", value_delimiter = ',', value_parser = parse_spine_loss)]
    spine_loss: Vec<SpineValue>,
}

/// The same, checked; by spine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Spines {
    /// One-way delay of its links.
    pub delay_ns: BTreeMap<u8, u64>,
    /// Rate of its links.
    pub rate_bps: BTreeMap<u8, u64>,
    /// Depth of the queues of its links.
    pub queue_packets: BTreeMap<u8, u64>,
    /// Packets in a million that it loses.
    pub loss_ppm: BTreeMap<u8, u64>,
}

impl SpineArgs {
    /// Checks the flags for a fabric of so many spines.
    ///
    /// # Errors
    /// One line that says which flag is wrong.
    pub fn of(&self, spines: u8) -> Result<Spines, String> {
        let checked = |flag, values: &[SpineValue]| by_spine(flag, values, spines);
        Ok(Spines {
            delay_ns: checked("--spine-delay", &self.spine_delay)?,
            rate_bps: checked("--spine-rate", &self.spine_rate)?,
            queue_packets: checked("--spine-queue", &self.spine_queue)?,
            loss_ppm: checked("--spine-loss", &self.spine_loss)?,
        })
    }

    /// Refuses all of them, for fabrics without spines.
    ///
    /// # Errors
    /// One line that names a flag.
    pub fn refuse(&self) -> Result<(), String> {
        let given = [
            ("--spine-delay", &self.spine_delay),
            ("--spine-rate", &self.spine_rate),
            ("--spine-queue", &self.spine_queue),
            ("--spine-loss", &self.spine_loss),
        ];
        match given.iter().find(|(_, values)| !values.is_empty()) {
            Some((flag, _)) => Err(format!(
                "{flag} is of leaf-spine; links of other fabrics change with --change 0s:SWITCH:..."
            )),
            None => Ok(()),
        }
    }
}

fn by_spine(flag: &str, values: &[SpineValue], spines: u8) -> Result<BTreeMap<u8, u64>, String> {
    let mut known = BTreeMap::new();
    for &(spine, value) in values {
        check_spine(flag, spine, spines)?;
        if known.insert(spine, value).is_some() {
            return Err(format!("{flag} names spine {spine} twice; once is enough"));
        }
    }
    Ok(known)
}

/// Refuses spines that the fabric lacks.
///
/// # Errors
/// One line that names `flag`.
pub fn check_spine(flag: &str, spine: u8, spines: u8) -> Result<(), String> {
    if spine > spines {
        return Err(format!(
            "{flag} names spine {spine}; with --spines {spines} there are 1 to {spines}"
        ));
    }
    Ok(())
}

fn parse_spine_delay(text: &str) -> Result<SpineValue, String> {
    spine_value(text, "SPINE=TIME; write 2=40us", parse_delay)
}

fn parse_spine_rate(text: &str) -> Result<SpineValue, String> {
    spine_value(text, "SPINE=RATE; write 2=5mbit", parse_link_rate)
}

fn parse_spine_queue(text: &str) -> Result<SpineValue, String> {
    spine_value(text, "SPINE=PACKETS; write 2=3750", parse_queue)
}

fn parse_spine_loss(text: &str) -> Result<SpineValue, String> {
    spine_value(text, "SPINE=SHARE; write 1=1%", parse_loss)
}

fn spine_value(
    text: &str,
    form: &str,
    parse: impl Fn(&str) -> Result<u64, String>,
) -> Result<SpineValue, String> {
    let wrong = || format!("{text:?} is no {form}");
    let (spine, value) = text.split_once('=').ok_or_else(wrong)?;
    Ok((parse_spine(spine).ok_or_else(wrong)?, parse(value)?))
}

/// A spine's number, from 1.
pub fn parse_spine(text: &str) -> Option<u8> {
    text.parse().ok().filter(|spine| *spine > 0)
}
