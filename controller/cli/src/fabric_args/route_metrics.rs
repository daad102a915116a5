// SPDX-License-Identifier: Apache-2.0

//! Settings of TCP on all hosts, as metrics of their routes: `--initial-window 2`.

use std::collections::BTreeMap;

use clap::Args;
use weft_text::units::parse_duration_ns;

/// The metrics, as flags. What each is to the kernel stands in
/// `topology/weft_topology/route_metrics.py`, by the names that [`Self::by_name`] gives.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Fabric")]
pub struct RouteMetricArgs {
    /// Initial window of every subflow, in packets (RFC 6928) [default: the kernel's, 10]
    #[arg(long, value_name = "PACKETS", value_parser = clap::value_parser!(u32).range(1..=1000))]
    initial_window: Option<u32>,

    /// Smallest retransmission timeout of hosts: whole milliseconds, such as 5ms
    /// [default: the kernel's, 200ms]
    #[arg(long, value_name = "TIME", value_parser = parse_rto_min_ms)]
    rto_min: Option<u32>,
}

impl RouteMetricArgs {
    /// Those that were given.
    pub fn by_name(&self) -> BTreeMap<String, u32> {
        let metrics = [
            ("initial_window", self.initial_window),
            ("rto_min_ms", self.rto_min),
        ];
        let given = metrics.into_iter();
        given
            .filter_map(|(name, value)| Some((name.to_owned(), value?)))
            .collect()
    }
}

/// Milliseconds, which is what the kernel counts in; at most its longest timeout.
fn parse_rto_min_ms(text: &str) -> Result<u32, String> {
    const MS: u64 = 1_000_000;
    let ns = parse_duration_ns(text).ok();
    ns.filter(|ns| ns % MS == 0)
        .and_then(|ns| u32::try_from(ns / MS).ok())
        .filter(|ms| (1..=120_000).contains(ms))
        .ok_or_else(|| format!("{text:?}: give whole milliseconds from 1ms to 120s, such as 5ms"))
}
