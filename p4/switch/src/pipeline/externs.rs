//! State that actions change: registers, counters, the random number generator.

use super::CounterValue;
use super::word::{bytes_to_limbs, limbs_for, limbs_to_bytes};

/// A register array.
#[derive(Debug, Clone)]
pub(super) struct Register {
    /// The width of a cell.
    pub bits: u32,
    /// How many cells it has.
    pub size: usize,
    limbs: Vec<u64>,
}

impl Register {
    pub fn new(bits: u32, size: usize) -> Self {
        Register {
            bits,
            size,
            limbs: vec![0; size * limbs_for(bits)],
        }
    }

    fn range(&self, index: u64) -> Option<std::ops::Range<usize>> {
        let index = usize::try_from(index)
            .ok()
            .filter(|index| *index < self.size)?;
        let width = limbs_for(self.bits);
        Some(index * width..(index + 1) * width)
    }

    /// The limbs of a cell.
    #[inline]
    pub fn cell(&self, index: u64) -> Option<&[u64]> {
        self.range(index).map(|range| &self.limbs[range])
    }

    /// The limbs of a cell, to write; the writer keeps to its width.
    #[inline]
    pub fn cell_mut(&mut self, index: u64) -> Option<&mut [u64]> {
        self.range(index).map(|range| &mut self.limbs[range])
    }

    pub fn read(&self, index: usize) -> Option<Vec<u8>> {
        self.cell(index as u64).map(limbs_to_bytes)
    }

    /// Sets a cell; `None` when it does not exist or the value does not fit.
    pub fn write(&mut self, index: usize, value: &[u8]) -> Option<()> {
        let limbs = bytes_to_limbs(value, self.bits)?;
        self.cell_mut(index as u64)?.copy_from_slice(&limbs);
        Some(())
    }
}

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

    /// A number between two bounds, both included; `low` when they are in the wrong order.
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

/// All state of a pipeline that actions change.
#[derive(Debug)]
pub(super) struct Externs {
    pub registers: Vec<Register>,
    /// The cells of the indexed counters.
    pub counters: Vec<Vec<CounterValue>>,
    pub random: Random,
    /// Room for what is being hashed.
    pub scratch: Vec<u8>,
    /// Room for a value that is being computed.
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

    #[test]
    fn a_register_cell_keeps_to_its_width() {
        let mut register = Register::new(72, 2);
        assert_eq!(register.write(1, &[0xff; 9]), Some(()));
        assert_eq!(register.write(1, &[1, 0, 0, 0, 0, 0, 0, 0, 0, 0]), None);
        assert_eq!(register.read(1), Some(vec![0xff; 9]));
        assert_eq!(register.read(0), Some(vec![0]));
        assert_eq!(register.read(2), None);
    }
}
