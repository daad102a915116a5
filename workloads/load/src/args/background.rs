// SPDX-License-Identifier: Apache-2.0

//! The flags of background traffic.

use clap::Args;
use serde::{Deserialize, Serialize};

use super::parse_interval;
use crate::plan::BackgroundSpec;
use weft_text::units::parse_rate_bps;

/// Background traffic, as flags.
#[derive(Debug, Clone, Default, PartialEq, Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[command(next_help_heading = "Background traffic")]
pub struct BackgroundArgs {
    /// Number of plain TCP flows between random hosts of different racks. They last as long as
    /// the run; background.csv has what each delivered
    #[arg(long, value_name = "COUNT")]
    pub background_tcp: Option<u32>,

    /// Number of UDP sources between random hosts of different racks. They switch on and off
    /// after exponentially distributed times and are not measured
    #[arg(long, value_name = "COUNT")]
    pub background_udp: Option<u32>,

    /// Rate of each UDP source while it is on [default: 100mbit]
    #[arg(long, value_name = "RATE", value_parser = parse_rate_bps)]
    pub udp_rate: Option<u64>,

    /// Mean time for which a UDP source is on [default: 10ms]
    #[arg(long, value_name = "TIME", value_parser = parse_interval)]
    pub udp_on: Option<u64>,

    /// Mean time for which a UDP source is off [default: 10ms]
    #[arg(long, value_name = "TIME", value_parser = parse_interval)]
    pub udp_off: Option<u64>,
}

impl BackgroundArgs {
    /// How much background traffic that is.
    ///
    /// # Errors
    /// One line when a flag is without the one that it belongs to.
    pub fn spec(&self) -> Result<BackgroundSpec, String> {
        let of_udp = [
            ("--udp-rate", self.udp_rate),
            ("--udp-on", self.udp_on),
            ("--udp-off", self.udp_off),
        ];
        for (flag, given) in of_udp {
            if given.is_some() && self.background_udp.is_none() {
                return Err(format!("{flag} needs --background-udp COUNT"));
            }
        }
        Ok(BackgroundSpec {
            tcp: self.background_tcp.unwrap_or(0),
            udp: self.background_udp.unwrap_or(0),
            udp_rate_bps: self.udp_rate.unwrap_or(100_000_000),
            udp_on_ns: self.udp_on.unwrap_or(10_000_000),
            udp_off_ns: self.udp_off.unwrap_or(10_000_000),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::parse;

    #[test]
    fn flags_of_udp_need_a_source() {
        let spec = |line| parse(line).background.spec();
        assert_eq!(
            spec("--udp-on 1ms").unwrap_err(),
            "--udp-on needs --background-udp COUNT"
        );
        let spec = spec("--background-udp 2 --udp-rate 1gbit").unwrap();
        assert_eq!(
            (spec.udp, spec.udp_rate_bps, spec.tcp),
            (2, 1_000_000_000, 0)
        );
    }
}
