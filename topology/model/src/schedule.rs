// SPDX-License-Identifier: Apache-2.0

//! Links that change while traffic runs.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::ALL_PPM;

/// Scheduled changes of links, timed from the start of traffic.
///
/// The traffic source announces the start: it connects to `socket`, writes one line
/// `{"start_ns": T}` (`CLOCK_MONOTONIC`) and reads one line, `{}` or `{"error": "..."}`. The
/// announcement first resets all links to the state in [`crate::Link`]. Each change then
/// takes effect at `T + at_ns`, or at once if that time has passed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Schedule {
    /// Unix stream socket of the process that owns the links.
    pub socket: PathBuf,
    /// The changes, in any order. Of two at the same time, the later in this list wins.
    pub changes: Vec<Change>,
}

/// Which links a change affects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Target {
    /// All links between this switch and other switches. Loss and failure also affect the
    /// links to its hosts.
    Switch(String),
    /// One link, by index into [`crate::Topology::links`]. A host link can lose frames and
    /// fail, but its rate, delay and queue cannot change.
    Link(usize),
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Switch(name) => f.write_str(name),
            Self::Link(link) => write!(f, "link {link}"),
        }
    }
}

/// One change of links, in both directions. Fields that are `None` stay as they are.
///
/// A frame in transmission keeps its rate, and a frame in flight keeps its delay. Links never
/// reorder: when the delay shrinks, a frame that would overtake an earlier one arrives
/// together with it. When a queue shrinks, packets beyond the new limit stay queued.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// When, from the start of traffic.
    pub at_ns: u64,
    /// The links.
    #[serde(flatten)]
    pub target: Target,
    /// New rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_bps: Option<u64>,
    /// New one-way propagation delay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_ns: Option<u64>,
    /// New depth of the egress queues at both ends, in packets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_packets: Option<u32>,
    /// Random loss, in frames per million. For a switch, it applies to frames that arrive there;
    /// for a link, to frames sent over it in each direction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss_ppm: Option<u32>,
    /// Whether it is up. A failed switch drops every frame that arrives and all frames in its
    /// queues. A failed link drops every frame sent over it and all frames queued for it. The
    /// failure is silent: leaves keep sending to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub up: Option<bool>,
}

impl Change {
    pub(crate) fn check(&self) -> Result<(), String> {
        let wrong = |what| Err(format!("a change of {}: {what}", self.target));
        if self.rate_bps == Some(0) {
            return wrong("rate_bps must not be 0; to fail a link, use up = false");
        }
        if self.loss_ppm.is_some_and(|ppm| ppm > ALL_PPM) {
            return wrong("loss_ppm must not exceed 1000000");
        }
        Ok(())
    }
}
