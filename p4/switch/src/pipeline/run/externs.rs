// SPDX-License-Identifier: Apache-2.0

//! State that actions change: registers, counters, meters, the random number generator.

use super::api::CounterValue;
use super::meter::Meter;
use super::registers::Registers;

/// SplitMix64 (Steele, Lea and Flood 2014): small, seeded, the same everywhere.
#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Random(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// A number between two bounds, inclusive; `low` if they are in the wrong order.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        match high.checked_sub(low) {
            None => low,
            Some(span) => {
                let scaled = u128::from(self.next()) * (u128::from(span) + 1);
                low + (scaled >> 64) as u64
            }
        }
    }
}

/// All the state of a pipeline that actions change.
#[derive(Debug)]
pub struct Externs {
    pub registers: Registers,
    /// The cells of the indexed counters.
    pub counters: Vec<Vec<CounterValue>>,
    /// The cells of the meters; one that is not configured colours every packet green.
    pub meters: Vec<Vec<Option<Box<Meter>>>>,
    /// The time of the packet that is being processed, in ticks of the clock.
    pub now: u64,
    pub ticks_per_s: u64,
    pub random: Random,
    /// Scratch space for the bytes to hash.
    pub scratch: Vec<u8>,
    /// Scratch space for a value that is being computed.
    pub limbs: Vec<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_numbers_stay_between_their_bounds_and_reach_both() {
        let mut random = Random::new(7);
        let drawn: Vec<u64> = (0..200).map(|_| random.between(3, 6)).collect();
        assert!(drawn.iter().all(|value| (3..=6).contains(value)));
        assert!((3..=6).all(|value| drawn.contains(&value)));
        assert_eq!(random.between(9, 2), 9);
        let _ = random.between(0, u64::MAX);
    }
}
