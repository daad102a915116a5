// SPDX-License-Identifier: Apache-2.0

//! One host's cable as a pcap file.

use std::collections::VecDeque;

/// Bytes kept of each frame: Ethernet (14), IPv6 (40) and the longest TCP header (60) are 114.
pub(super) const SNAPLEN_BYTES: usize = 116;

/// The file's first bytes: nanosecond timestamps, version 2.4, no time zone, Ethernet.
pub(super) fn file_header() -> [u8; 24] {
    let mut header = [0; 24];
    header[..4].copy_from_slice(&0xa1b2_3c4d_u32.to_le_bytes());
    header[4..6].copy_from_slice(&2_u16.to_le_bytes());
    header[6..8].copy_from_slice(&4_u16.to_le_bytes());
    header[16..20].copy_from_slice(&(SNAPLEN_BYTES as u32).to_le_bytes());
    header[20..].copy_from_slice(&1_u32.to_le_bytes());
    header
}

/// The start of a frame, and when its last bit passed the host's end of the cable.
#[derive(Debug, Clone)]
struct Record {
    at_ns: u64,
    frame_bytes: usize,
    kept: [u8; SNAPLEN_BYTES],
}

impl Record {
    fn new(at_ns: u64, frame: &[u8]) -> Self {
        let mut kept = [0; SNAPLEN_BYTES];
        let length = frame.len().min(SNAPLEN_BYTES);
        kept[..length].copy_from_slice(&frame[..length]);
        Self {
            at_ns,
            frame_bytes: frame.len(),
            kept,
        }
    }

    fn encode(&self, file: &mut Vec<u8>) {
        let kept = self.frame_bytes.min(SNAPLEN_BYTES);
        let seconds = self.at_ns / 1_000_000_000;
        let nanoseconds = self.at_ns % 1_000_000_000;
        // The format's fields have 32 bits: enough for 136 years and 4 GB.
        for field in [seconds, nanoseconds, kept as u64, self.frame_bytes as u64] {
            file.extend_from_slice(&(field as u32).to_le_bytes());
        }
        file.extend_from_slice(&self.kept[..kept]);
    }
}

/// Frames that passed a cable and are not in the file yet. Frames to the host are known before they
/// arrive, and frames from it only afterwards. So both wait here until they can be put in order.
#[derive(Debug, Default)]
pub(super) struct Cable {
    to_host: VecDeque<Record>,
    from_host: VecDeque<Record>,
}

impl Cable {
    /// Records a frame that arrives at the host at `at_ns`. Call it in order of time.
    pub fn arrives(&mut self, at_ns: u64, frame: &[u8]) {
        self.to_host.push_back(Record::new(at_ns, frame));
    }

    /// Records a frame that left the host at `at_ns`. Call it in order of time.
    pub fn leaves(&mut self, at_ns: u64, frame: &[u8]) {
        self.from_host.push_back(Record::new(at_ns, frame));
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.to_host.is_empty() && self.from_host.is_empty()
    }

    /// Appends everything up to `now_ns` to `file`, by time. At the same time, frames to the host
    /// come first.
    pub fn settle(&mut self, now_ns: u64, file: &mut Vec<u8>) {
        loop {
            let arrival = self.to_host.front().map(|record| record.at_ns);
            let departure = self.from_host.front().map(|record| record.at_ns);
            let queue = match (arrival, departure) {
                (Some(arrival), Some(departure)) if departure < arrival => &mut self.from_host,
                (Some(_), _) => &mut self.to_host,
                (None, Some(_)) => &mut self.from_host,
                (None, None) => return,
            };
            match queue.front() {
                Some(record) if record.at_ns <= now_ns => record.encode(file),
                _ => return,
            }
            queue.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Times and lengths of the records in `file`.
    fn records(mut file: &[u8]) -> Vec<(u64, usize, usize)> {
        let mut records = Vec::new();
        while let Some((header, rest)) = file.split_first_chunk::<16>() {
            let field = |i: usize| {
                u32::from_le_bytes(header[4 * i..4 * i + 4].try_into().unwrap()) as usize
            };
            records.push((
                field(0) as u64 * 1_000_000_000 + field(1) as u64,
                field(2),
                field(3),
            ));
            file = &rest[field(2)..];
        }
        assert!(file.is_empty());
        records
    }

    #[test]
    fn both_directions_are_put_in_order_of_time() {
        let mut cable = Cable::default();
        for at_ns in [10, 30, 1_000_000_050] {
            cable.arrives(at_ns, &[1; 60]);
        }
        for at_ns in [10, 20, 40] {
            cable.leaves(at_ns, &[2; 70]);
        }
        let mut file = Vec::new();
        cable.settle(u64::MAX, &mut file);
        let lengths: Vec<_> = records(&file)
            .iter()
            .map(|(at, _, len)| (*at, *len))
            .collect();
        let expected = [
            (10, 60),
            (10, 70),
            (20, 70),
            (30, 60),
            (40, 70),
            (1_000_000_050, 60),
        ];
        assert_eq!(lengths, expected);
        assert!(cable.is_empty());
    }

    #[test]
    fn what_is_still_to_come_waits() {
        let mut cable = Cable::default();
        cable.arrives(30, &[0; 60]);
        cable.leaves(10, &[0; 60]);
        let mut file = Vec::new();
        cable.settle(20, &mut file);
        assert_eq!(records(&file), [(10, 60, 60)]);
        cable.leaves(25, &[0; 61]);
        cable.settle(30, &mut file);
        assert_eq!(records(&file), [(10, 60, 60), (25, 61, 61), (30, 60, 60)]);
    }

    #[test]
    fn a_long_frame_keeps_its_length_but_not_its_end() {
        let mut cable = Cable::default();
        cable.leaves(7, &[9; 1514]);
        let mut file = Vec::new();
        cable.settle(7, &mut file);
        assert_eq!(records(&file), [(7, SNAPLEN_BYTES, 1514)]);
    }
}
