// SPDX-License-Identifier: Apache-2.0

//! Depths of queues: `100` packets, or `150KB`.

use std::str::FromStr;

use weft_text::units::parse_bytes;

use super::parse_queue;

/// A full-size frame.
const FRAME_BYTES: u64 = 1514;

/// How much waits in a queue at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueDepth {
    /// Packets.
    Packets(u32),
    /// Bytes of frames.
    Bytes(u64),
}

impl QueueDepth {
    /// Packets, full-size ones where bytes count.
    #[must_use]
    pub fn packets(self) -> u32 {
        match self {
            Self::Packets(packets) => packets,
            // At most a million.
            Self::Bytes(bytes) => bytes.div_ceil(FRAME_BYTES) as u32,
        }
    }

    /// Bytes, where they count.
    #[must_use]
    pub fn bytes(self) -> Option<u64> {
        match self {
            Self::Packets(_) => None,
            Self::Bytes(bytes) => Some(bytes),
        }
    }
}

impl FromStr for QueueDepth {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if !text.ends_with(['b', 'B']) {
            // At most a million.
            return parse_queue(text).map(|packets| Self::Packets(packets as u32));
        }
        let bytes = parse_bytes(text)?;
        if !(FRAME_BYTES..=1_000_000 * FRAME_BYTES).contains(&bytes) {
            return Err(format!(
                "{text:?}: queues hold {FRAME_BYTES}B, a full-size frame, to 1514MB, such as 150KB"
            ));
        }
        Ok(Self::Bytes(bytes))
    }
}
