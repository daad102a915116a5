//! Links that change while traffic runs.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::ALL_PPM;

/// What becomes of links, counted from the start of traffic.
///
/// Whoever sends traffic tells when it starts: it connects to `socket`, writes
/// one line `{"start_ns": T}` (`CLOCK_MONOTONIC`) and reads one line, `{}` or
/// `{"error": "..."}`. All links are then again as [`crate::Link`] has them, and
/// change at `T + at_ns`; what is in the past by then, at once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Schedule {
    /// Unix stream socket of the process that owns the links.
    pub socket: PathBuf,
    /// The changes, in any order; of those of one moment, the later one wins.
    pub changes: Vec<Change>,
}

/// What changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Target {
    /// All links between the switch of this name and other switches. If it loses frames
    /// or is down, that holds for those of its hosts too.
    Switch(String),
    /// The link at this place of [`crate::Topology::links`]. One to a host can lose
    /// frames and be down; its rate, delay and queue stay.
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

/// A change of links, in both directions; what is `None` stays.
///
/// A frame that is being sent keeps its rate, one that is under way its delay.
/// One that would overtake an earlier frame on the same link, because the delay
/// has shrunk, arrives with it: links never reorder. Packets beyond a queue
/// that has shrunk stay in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// When, from the start of traffic.
    pub at_ns: u64,
    /// Which links.
    #[serde(flatten)]
    pub target: Target,
    /// Their rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_bps: Option<u64>,
    /// Their one-way propagation delay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_ns: Option<u64>,
    /// Depth of the egress queues at both of their ends, in packets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_packets: Option<u32>,
    /// Frames in a million that are lost at random: of those that arrive at the switch,
    /// or of those that are sent over the link, in each direction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss_ppm: Option<u32>,
    /// Whether it works. A switch that does not loses every frame that arrives and what
    /// waited in its queues, a link what is sent over it and what waited in front of it.
    /// Nobody is told: leaves go on sending that way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub up: Option<bool>,
}

impl Change {
    pub(crate) fn check(&self) -> Result<(), String> {
        let wrong = |what| Err(format!("a change of {}: {what}", self.target));
        if self.rate_bps == Some(0) {
            return wrong("rate_bps 0 carries nothing; a link that fails is not up");
        }
        if self.loss_ppm.is_some_and(|ppm| ppm > ALL_PPM) {
            return wrong("loss_ppm is more than all, 1000000");
        }
        Ok(())
    }
}
