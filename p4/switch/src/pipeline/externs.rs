//! State that actions change: registers, counters, the random number generator.

use super::CounterValue;
use super::word::{bytes_to_limbs, limbs_for, limbs_to_bytes};

/// Cells of a register that get memory together.
const CHUNK_CELLS: usize = 32;

/// A register array.
///
/// Programs have large ones of which few cells are used, at places that a hash spreads. Memory is
/// had a chunk at a time, and all chunks stand beside each other: an array would touch a page for
/// almost every cell, and in the lab a page that a process touches is a mapping of its own, of
/// which Linux allows 65530.
#[derive(Debug, Clone)]
pub(super) struct Register {
    /// The width of a cell.
    pub bits: u32,
    /// How many cells it has.
    pub size: usize,
    /// By chunk: its place in `limbs`, in chunks. The first place stays zero, and is that of every
    /// chunk that nobody wrote to.
    places: Vec<u32>,
    limbs: Vec<u64>,
}

impl Register {
    pub fn new(bits: u32, size: usize) -> Self {
        Register {
            bits,
            size,
            places: vec![0; size.div_ceil(CHUNK_CELLS)],
            limbs: vec![0; CHUNK_CELLS * limbs_for(bits)],
        }
    }

    /// Number of the cell's chunk, and its place in there.
    #[inline]
    fn find(&self, index: u64) -> Option<(usize, usize)> {
        let index = usize::try_from(index).ok()?;
        (index < self.size).then_some((index / CHUNK_CELLS, index % CHUNK_CELLS))
    }

    #[inline]
    fn range(&self, chunk: usize, cell: usize) -> std::ops::Range<usize> {
        let width = limbs_for(self.bits);
        let start = (self.places[chunk] as usize * CHUNK_CELLS + cell) * width;
        start..start + width
    }

    /// The limbs of a cell.
    #[inline]
    pub fn cell(&self, index: u64) -> Option<&[u64]> {
        let (chunk, cell) = self.find(index)?;
        Some(&self.limbs[self.range(chunk, cell)])
    }

    /// The limbs of a cell, to write; the writer keeps to its width.
    #[inline]
    pub fn cell_mut(&mut self, index: u64) -> Option<&mut [u64]> {
        let (chunk, cell) = self.find(index)?;
        if self.places[chunk] == 0 {
            self.add_chunk(chunk);
        }
        let range = self.range(chunk, cell);
        Some(&mut self.limbs[range])
    }

    #[cold]
    fn add_chunk(&mut self, chunk: usize) {
        let chunk_limbs = CHUNK_CELLS * limbs_for(self.bits);
        // P4 sizes registers with 32 bits.
        self.places[chunk] = (self.limbs.len() / chunk_limbs) as u32;
        self.limbs.resize(self.limbs.len() + chunk_limbs, 0);
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

    #[test]
    fn a_register_has_memory_only_where_it_was_written() {
        let mut register = Register::new(72, 100_000);
        let before = register.limbs.len();
        for index in [0, 31, 32, 99_999] {
            assert_eq!(register.cell(index), Some(&[0, 0][..]));
        }
        assert_eq!(register.limbs.len(), before);
        for index in [99_999, 0, 31] {
            let cell = register.cell_mut(index).unwrap();
            cell.copy_from_slice(&[index, 7]);
        }
        assert_eq!(register.limbs.len(), 3 * before);
        for index in [0, 31, 99_999] {
            assert_eq!(register.cell(index), Some(&[index, 7][..]));
        }
        for index in [1, 30, 32, 99_998] {
            assert_eq!(register.cell(index), Some(&[0, 0][..]), "{index}");
        }
        assert_eq!(register.cell(100_000), None);
        assert!(register.cell_mut(u64::MAX).is_none());
    }
}
