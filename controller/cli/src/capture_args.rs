// SPDX-License-Identifier: Apache-2.0

//! The flags that say what to capture.

use clap::{Args, ValueEnum};
use weft_lab::{ArrivalsSpec, CaptureSpec};

/// Captures, as flags.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Capture")]
pub struct CaptureArgs {
    /// Capture every packet of these hosts, for `weft evidence`: all, or names such as
    /// h1_1,h2_3
    #[arg(long, value_name = "HOSTS", value_delimiter = ',')]
    capture: Vec<String>,

    /// Queues whose arrivals are recorded
    #[arg(
        long,
        value_enum,
        value_name = "WHICH",
        default_value = "hosts",
        requires = "capture"
    )]
    arrivals: ArrivalsKind,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ArrivalsKind {
    /// Queues in front of captured hosts
    Hosts,
    /// Queues of all ports of all switches
    All,
}

impl CaptureArgs {
    /// What to capture, if anything.
    pub fn spec(&self) -> Option<CaptureSpec> {
        if self.capture.is_empty() {
            return None;
        }
        Some(CaptureSpec {
            hosts: self.capture.clone(),
            arrivals: match self.arrivals {
                ArrivalsKind::Hosts => ArrivalsSpec::Hosts,
                ArrivalsKind::All => ArrivalsSpec::All,
            },
        })
    }
}
