// SPDX-License-Identifier: Apache-2.0

//! Scheduling noise between the kernel of a host and its NIC, as a hypervisor makes it.
//!
//! A guest's packets pass only while the hypervisor runs its virtual CPU and the thread that serves
//! its NIC. Both lose their core now and then; packets then wait, and pass together when it comes
//! back. So each direction of a host's NIC is either running or stalled, and both times are
//! exponential with the same mean (a two-state Markov process in continuous time):
//!
//! ```text
//!            1 / mean
//!   running ----------> stalled       what comes while it is stalled passes at the
//!           <----------               end of the stall, in the order in which it came
//!            1 / mean
//! ```
//!
//! Half of all packets find the NIC stalled. They wait for the mean of a stall on average, whatever
//! happened before, because an exponential distribution has no memory. Noise drawn anew for each
//! packet would be a constant delay for packets that follow each other closely, because packets
//! keep their order. Here such packets wait together, as they do in reality.
//!
//! The state is only computed when a packet comes. A process that was running is stalled after `t`
//! with probability `(1 - exp(-2 t / mean)) / 2`.

use crate::pipeline::Random;

/// The noise in one direction of a host's NIC.
#[derive(Debug)]
pub struct Jitter {
    /// Mean length of stalls and of the times between them; 0 if there are none.
    mean_ns: u64,
    random: Random,
    /// The process runs at this time. If it is in the future, the process is stalled until then.
    runs_ns: u64,
}

impl Jitter {
    /// Noise with stalls of `mean_ns` on average, or none if that is 0. It begins as running. Each
    /// `place` has its own noise.
    pub fn new(mean_ns: u64, seed: u64, place: u64) -> Self {
        // Mixed twice, so that streams with similar seeds have nothing in common.
        let mixed = |seed| Random::new(seed).between(0, u64::MAX);
        Self {
            mean_ns,
            random: Random::new(mixed(mixed(!seed) ^ place)),
            runs_ns: 0,
        }
    }

    /// When a packet that comes at `at_ns` passes. Call it in order of time.
    pub fn passes_ns(&mut self, at_ns: u64) -> u64 {
        if self.mean_ns == 0 || at_ns < self.runs_ns {
            return self.runs_ns.max(at_ns);
        }
        let mean_ns = self.mean_ns as f64;
        let since_ns = (at_ns - self.runs_ns) as f64;
        let stalled = (1.0 - (-2.0 * since_ns / mean_ns).exp()) / 2.0;
        self.runs_ns = at_ns;
        if self.uniform() < stalled {
            // Never 0, which has no logarithm.
            let left_ns = -mean_ns * (1.0 - self.uniform()).ln();
            self.runs_ns += left_ns as u64;
        }
        self.runs_ns
    }

    /// A number in [0, 1).
    fn uniform(&mut self) -> f64 {
        self.random.between(0, (1 << 53) - 1) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEAN_NS: u64 = 500_000;
    const PACKETS: u64 = 100_000;

    /// How long packets wait that come `apart_ns` from each other.
    fn waits_ns(mut jitter: Jitter, apart_ns: u64) -> Vec<u64> {
        let times = (1..=PACKETS).map(|n| n * apart_ns);
        times.map(|at_ns| jitter.passes_ns(at_ns) - at_ns).collect()
    }

    fn mean(values: impl Iterator<Item = u64> + Clone) -> f64 {
        values.clone().sum::<u64>() as f64 / values.count() as f64
    }

    #[test]
    fn half_of_the_packets_wait_the_mean_however_close_they_come() {
        for apart_ns in [12_000, MEAN_NS, 10 * MEAN_NS] {
            let waits_ns = waits_ns(Jitter::new(MEAN_NS, 1, 2), apart_ns);
            let waiting = waits_ns.iter().copied().filter(|wait_ns| *wait_ns > 0);
            let share = waiting.clone().count() as f64 / PACKETS as f64;
            // Where packets are close, few stalls decide: 1.2 s have 1200 of them.
            assert!((share - 0.5).abs() < 0.05, "{apart_ns}: {share}");
            let mean_ns = mean(waiting) / MEAN_NS as f64;
            assert!((mean_ns - 1.0).abs() < 0.1, "{apart_ns}: {mean_ns}");
        }
    }

    #[test]
    fn packets_keep_their_order() {
        let mut jitter = Jitter::new(MEAN_NS, 3, 0);
        let passed_ns: Vec<_> = (0..PACKETS).map(|n| jitter.passes_ns(n * 1_000)).collect();
        assert!(passed_ns.is_sorted());
    }

    #[test]
    fn without_noise_nothing_waits() {
        let waits_ns = waits_ns(Jitter::new(0, 1, 0), 12_000);
        assert_eq!(waits_ns, vec![0; PACKETS as usize]);
    }

    #[test]
    fn every_seed_and_place_has_its_own_noise() {
        let waits = |seed, place| waits_ns(Jitter::new(MEAN_NS, seed, place), MEAN_NS);
        assert_eq!(waits(1, 2), waits(1, 2));
        assert_ne!(waits(1, 2), waits(2, 2));
        assert_ne!(waits(1, 2), waits(1, 3));
    }
}
