// SPDX-License-Identifier: Apache-2.0

//! A path through the fabric whose switches add themselves to in-band telemetry.

use weft_switch::pipeline::QueueMetadata;
use weft_testing::packet::{Tcp, address};

use crate::bench::{Bench, Intervals, Outcome, uplink};

pub const MS: u64 = 1_000_000;
/// What the first leaf and the spine call themselves.
pub const LEAF: u64 = 1;
pub const SPINE: u64 = 102;

/// A leaf, a spine and a leaf in a row.
pub struct InBandPath {
    pub first: Bench,
    pub spine: Bench,
    pub last: Bench,
}

impl InBandPath {
    pub fn new() -> InBandPath {
        let mut path = InBandPath {
            first: Bench::leaf(1),
            spine: Bench::spine(),
            last: Bench::leaf(2),
        };
        path.first.collect_as(LEAF);
        path.first.start_collecting_every(MS);
        path.spine.collect_as(SPINE);
        path.last.collect_as(2);
        // Other digests would take the place of what is collected.
        path.last.sample_every(Intervals::CHANGES);
        path
    }

    /// The frame as the first leaf sends it, and as the spine does.
    pub fn up(&mut self, frame: &[u8], now: u64) -> [Vec<u8>; 2] {
        let in_queue = QueueMetadata {
            deq_timedelta: 24_000,
            deq_qdepth: 2,
            ..QueueMetadata::default()
        };
        let first = self.first.send_through(1, frame, now, in_queue);
        let first = first.sent.unwrap().1;
        let longer = QueueMetadata {
            deq_timedelta: 1_200_000,
            deq_qdepth: 99,
            ..QueueMetadata::default()
        };
        let spine = self.spine.send_through(1, &first, now, longer);
        [first, spine.sent.unwrap().1]
    }

    /// What the last leaf makes of the frame.
    pub fn carry(&mut self, frame: &[u8], now: u64) -> Outcome {
        let [_, frame] = self.up(frame, now);
        self.last.send(uplink(0), &frame, now)
    }
}

/// A segment that crosses the path.
pub fn segment() -> Tcp {
    Tcp::subflow(address(1, 1, 1), address(2, 1, 1)).data(1, 1000)
}
