// SPDX-License-Identifier: Apache-2.0

//! Frames that get lost on their way to a switch, at random and independently.
//!
//! Each switch and each port has its own random stream, and draws from it once for each frame that
//! arrives. The order in which frames arrive follows from the simulated network alone. So the same
//! seed loses the same frames. A switch or port without loss draws nothing.

use weft_topology::{ALL_PPM, Change};

use crate::pipeline::Random;

/// The loss in front of one switch, or on the link of one port.
#[derive(Debug)]
pub(super) struct Loss {
    /// Frames in a million that are lost.
    ppm: u32,
    /// The loss in the topology, which changes do not touch.
    original_ppm: u32,
    /// Whether the switch or link is down. Then all frames are lost.
    down: bool,
    random: Random,
}

impl Loss {
    /// The loss of a port's link: none at first.
    pub fn of_port(seed: u64, switch: usize, port: u16) -> Self {
        // The streams of switches have smaller numbers.
        Self::new(0, seed, (usize::from(port) + 1) << 32 | switch)
    }

    /// A loss of `ppm` in front of the switch at place `index`.
    pub fn new(ppm: u32, seed: u64, index: usize) -> Self {
        // Mixed twice, so that streams with similar seeds have nothing in common.
        let mixed = |seed| Random::new(seed).between(0, u64::MAX);
        Self {
            ppm,
            original_ppm: ppm,
            down: false,
            random: Random::new(mixed(mixed(seed) ^ index as u64)),
        }
    }

    /// Changes the loss from now on. Returns whether the switch or link has just failed.
    pub fn change(&mut self, change: &Change) -> bool {
        self.ppm = change.loss_ppm.unwrap_or(self.ppm);
        let was_down = self.down;
        self.down = change.up.map_or(self.down, |up| !up);
        self.down && !was_down
    }

    /// Goes back to the loss in the topology.
    pub fn restore(&mut self) {
        self.ppm = self.original_ppm;
        self.down = false;
    }

    /// Whether the frame that arrives now is lost.
    pub fn strikes(&mut self) -> bool {
        match self.ppm {
            _ if self.down => true,
            0 => false,
            ALL_PPM.. => true,
            ppm => self.random.between(1, ALL_PPM.into()) <= ppm.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost(ppm: u32, seed: u64, index: usize) -> Vec<bool> {
        let mut loss = Loss::new(ppm, seed, index);
        (0..100_000).map(|_| loss.strikes()).collect()
    }

    fn count(lost: &[bool]) -> usize {
        lost.iter().filter(|lost| **lost).count()
    }

    #[test]
    fn as_much_is_lost_as_was_asked_for() {
        // Five standard deviations of a binomial distribution around its mean.
        for (ppm, mean, deviation) in [(10_000, 1_000.0, 31.5), (200_000, 20_000.0, 126.5)] {
            let found = count(&lost(ppm, 1, 2)) as f64;
            assert!((found - mean).abs() < 5.0 * deviation, "{ppm}: {found}");
        }
        assert_eq!(count(&lost(0, 1, 2)), 0);
        assert_eq!(count(&lost(ALL_PPM, 1, 2)), 100_000);
    }

    #[test]
    fn losses_are_independent_of_each_other() {
        // Of frames that follow a lost one, as many are lost as of all.
        let lost = lost(100_000, 3, 0);
        let pairs = lost.windows(2).filter(|pair| pair[0] && pair[1]).count() as f64;
        assert!((pairs - 1_000.0).abs() < 5.0 * 31.5, "{pairs}");
    }

    #[test]
    fn seeds_and_switches_lose_other_frames() {
        assert_eq!(lost(10_000, 1, 0), lost(10_000, 1, 0));
        assert_ne!(lost(10_000, 1, 0), lost(10_000, 2, 0));
        assert_ne!(lost(10_000, 1, 0), lost(10_000, 1, 1));
    }
}
