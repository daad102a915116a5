//! Links that change while traffic runs.

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

/// A change of all links of a switch, in both directions; what is `None` stays.
///
/// A frame that is being sent keeps its rate, one that is under way its delay.
/// One that would overtake an earlier frame on the same link, because the delay
/// has shrunk, arrives with it: links never reorder. Packets beyond a queue
/// that has shrunk stay in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// When, from the start of traffic.
    pub at_ns: u64,
    /// Name of the switch.
    pub switch: String,
    /// Rate of its links.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_bps: Option<u64>,
    /// One-way propagation delay of its links.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_ns: Option<u64>,
    /// Depth of the egress queues at both ends of its links.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_packets: Option<u32>,
    /// See [`crate::Switch::loss_ppm`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss_ppm: Option<u32>,
    /// Whether it works. One that does not loses every frame that arrives, and
    /// what waited in its queues. Nobody is told: leaves go on sending to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub up: Option<bool>,
}

impl Change {
    pub(crate) fn check(&self) -> Result<(), String> {
        let wrong = |what| Err(format!("a change of {}: {what}", self.switch));
        if self.rate_bps == Some(0) {
            return wrong("rate_bps 0 carries nothing; a link that fails is not up");
        }
        if self.loss_ppm.is_some_and(|ppm| ppm > ALL_PPM) {
            return wrong("loss_ppm is more than all, 1000000");
        }
        Ok(())
    }
}
