// SPDX-License-Identifier: Apache-2.0

//! The NIC of a host, as its switch sees it.

/// Computes when frames have left a host.
///
/// The kernel stamps a frame when the host begins to send it. The host's own token bucket spaces
/// the frames. So the last bit leaves one serialisation time later, and never before that of an
/// earlier frame.
#[derive(Debug)]
pub struct HostNic {
    rate_bps: u64,
    free_ns: u64,
}

impl HostNic {
    /// A NIC with this rate in bits per second, which is above 0.
    pub fn new(rate_bps: u64) -> Self {
        Self {
            rate_bps,
            free_ns: 0,
        }
    }

    /// When the last bit of a frame of `bytes` has left that the host began to send at `began_ns`.
    pub fn last_bit_ns(&mut self, began_ns: u64, bytes: usize) -> u64 {
        let length_ns = bytes as u64 * 8 * 1_000_000_000 / self.rate_bps;
        self.free_ns = self.free_ns.max(began_ns) + length_ns;
        self.free_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_takes_its_length() {
        let mut nic = HostNic::new(1_000_000_000);
        assert_eq!(nic.last_bit_ns(5_000, 1514), 5_000 + 12_112);
        assert_eq!(nic.last_bit_ns(50_000, 66), 50_000 + 528);
    }

    #[test]
    fn a_short_frame_does_not_overtake_a_long_one() {
        let mut nic = HostNic::new(1_000_000_000);
        assert_eq!(nic.last_bit_ns(0, 1514), 12_112);
        assert_eq!(nic.last_bit_ns(528, 66), 12_112 + 528);
    }
}
