// SPDX-License-Identifier: Apache-2.0

//! Background traffic beside the measured flows: long flows of plain TCP, and on-off UDP sources.

use rand_chacha::ChaCha12Rng;

use super::{PlanError, Stream, exponential, hosts_of_other_racks, pick, stream};
use crate::ideal_fabric::IdealFabric;

/// The amount of background traffic.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BackgroundSpec {
    /// Number of endless flows of plain TCP.
    pub tcp: u32,
    /// Number of UDP sources.
    pub udp: u32,
    /// Rate of each source while it is on, including frame headers.
    pub udp_rate_bps: u64,
    /// Mean time that a source is on.
    pub udp_on_ns: u64,
    /// Mean time that it is off.
    pub udp_off_ns: u64,
}

/// The background traffic between particular hosts.
#[derive(Debug, Clone, Default)]
pub struct Background {
    /// Source and destination of each TCP flow.
    pub tcp: Vec<(usize, usize)>,
    /// Source and destination of each UDP source, with its on-off process.
    pub udp: Vec<(usize, usize, OnOff)>,
}

impl Background {
    /// Assigns random hosts of different racks to all of `spec`.
    ///
    /// # Errors
    /// [`PlanError::OneRack`].
    pub fn new(fabric: &IdealFabric, spec: &BackgroundSpec, seed: u64) -> Result<Self, PlanError> {
        if spec.tcp == 0 && spec.udp == 0 {
            return Ok(Self::default());
        }
        let others = hosts_of_other_racks(fabric)?;
        let mut rng = stream(seed, Stream::Background);
        let mut pair = || {
            let source = pick(&mut rng, fabric.hosts());
            let racks = &others[fabric.rack(source)];
            (source, racks[pick(&mut rng, racks.len())])
        };
        let tcp = (0..spec.tcp).map(|_| pair()).collect();
        let udp: Vec<(usize, usize)> = (0..spec.udp).map(|_| pair()).collect();
        let on_off = |(index, (source, destination)): (u64, (usize, usize))| {
            // Each source has its own random stream.
            let rng = stream(seed.wrapping_add(index << 32), Stream::OnOff);
            (source, destination, OnOff::new(spec, rng))
        };
        Ok(Self {
            tcp,
            udp: (0..).zip(udp).map(on_off).collect(),
        })
    }
}

/// Payload of a UDP packet that fills a frame, over IPv4.
pub const UDP_PAYLOAD_BYTES: usize = 1_472;
/// The same over IPv6.
pub const UDP_OVER_IPV6_PAYLOAD_BYTES: usize = 1_452;
/// Length of such a frame: Ethernet, IPv4 and UDP headers and the payload.
const FRAME_BYTES: u64 = 14 + 20 + 8 + UDP_PAYLOAD_BYTES as u64;

/// The on-off process of a source: exponential on and off times, starting with off, and full
/// frames at a constant rate while it is on.
#[derive(Debug, Clone)]
pub struct OnOff {
    rng: ChaCha12Rng,
    gap_ns: u64,
    on_ns: f64,
    off_ns: f64,
    /// When the next packet is due; `None` before the start.
    next_ns: Option<u64>,
    /// When the current on time ends.
    end_ns: u64,
}

impl OnOff {
    fn new(spec: &BackgroundSpec, rng: ChaCha12Rng) -> Self {
        Self {
            rng,
            gap_ns: (FRAME_BYTES * 8 * 1_000_000_000 / spec.udp_rate_bps.max(1)).max(1),
            on_ns: spec.udp_on_ns as f64,
            off_ns: spec.udp_off_ns as f64,
            next_ns: None,
            end_ns: 0,
        }
    }

    /// When the next packet is due.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<u64> {
        self.next_ns
    }

    /// Processes the time `now`. Returns the number of packets that are due.
    pub fn handle_timeout(&mut self, now: u64) -> usize {
        let mut next_ns = self.next_ns.unwrap_or_else(|| self.turn_on(now));
        let mut count = 0;
        while next_ns <= now {
            count += 1;
            next_ns += self.gap_ns;
            if next_ns > self.end_ns {
                next_ns = self.turn_on(self.end_ns);
            }
        }
        self.next_ns = Some(next_ns);
        count
    }

    /// Ends an on time at `now`. Returns when the next one starts.
    fn turn_on(&mut self, now: u64) -> u64 {
        let start_ns = now + 1 + exponential(&mut self.rng, self.off_ns) as u64;
        self.end_ns = start_ns + exponential(&mut self.rng, self.on_ns) as u64;
        start_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_sends_its_rate_while_it_is_on_and_is_on_for_its_share() {
        let spec = BackgroundSpec {
            udp: 1,
            udp_rate_bps: 100_000_000,
            udp_on_ns: 3_000_000,
            udp_off_ns: 9_000_000,
            ..BackgroundSpec::default()
        };
        let mut source = OnOff::new(&spec, stream(1, Stream::OnOff));
        let (mut packets, mut bursts, mut last_ns) = (0, 0, 0);
        assert_eq!(source.handle_timeout(0), 0);
        while let Some(at_ns) = source.poll_timeout().filter(|ns| *ns < 60_000_000_000) {
            packets += source.handle_timeout(at_ns);
            bursts += u32::from(at_ns - last_ns > source.gap_ns);
            last_ns = at_ns;
        }
        let bps = packets as f64 * FRAME_BYTES as f64 * 8.0 / 60.0;
        assert!((bps / 25e6 - 1.0).abs() < 0.1, "{bps} bit/s");
        assert!((4_000..6_000).contains(&bursts), "{bursts} bursts");
    }

    #[test]
    fn a_source_that_is_called_late_catches_up() {
        let spec = BackgroundSpec {
            udp: 1,
            udp_rate_bps: 1_000_000_000,
            udp_on_ns: 1_000_000,
            udp_off_ns: 1_000_000,
            ..BackgroundSpec::default()
        };
        let (mut prompt, mut late) = (0, 0);
        let mut source = OnOff::new(&spec, stream(1, Stream::OnOff));
        let mut other = source.clone();
        source.handle_timeout(0);
        while let Some(at_ns) = source.poll_timeout().filter(|ns| *ns <= 50_000_000) {
            prompt += source.handle_timeout(at_ns);
        }
        other.handle_timeout(0);
        late += other.handle_timeout(50_000_000);
        assert_eq!(prompt, late);
    }
}
