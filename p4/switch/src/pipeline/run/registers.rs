// SPDX-License-Identifier: Apache-2.0

//! Registers: arrays of cells that actions read and write.
//!
//! Rows get memory in chunks, and all chunks are adjacent in memory. A plain array would touch a
//! page for almost every row. In the lab, pages that a process does not touch in sequence are
//! separate mappings, and Linux allows only 65530 of them. For the same reason, a bank that needs
//! memory for one chunk touches that for many.

use smallvec::{SmallVec, smallvec};

use crate::pipeline::model::info::RegisterId;
use crate::pipeline::model::registers::{RegisterPlan, Shape};
use crate::pipeline::model::word::{bytes_to_limbs, limbs_to_bytes};
use crate::prefetch::prefetch;

/// Number of rows in a chunk, which get memory together.
const CHUNK_ROWS: usize = 32;

/// Number of chunks whose places are stored in the bank itself: enough for all ports.
const FEW_CHUNKS: usize = 16;

/// Minimum growth of a bank's memory, in limbs: 256 KB. It grows by half if that is more.
const GROWTH_LIMBS: usize = 32 << 10;

/// The contents of a pipeline's registers.
#[derive(Debug)]
pub struct Registers(Vec<Bank>);

#[derive(Debug)]
struct Bank {
    /// For each chunk, its place in `limbs`, in chunks. The first place stays zero, and serves all
    /// chunks that were never written.
    places: SmallVec<[u32; FEW_CHUNKS]>,
    limbs: Vec<u64>,
    /// Chunks that are in use.
    chunks: usize,
}

impl Registers {
    /// Creates registers that hold zero.
    pub fn new(plan: &RegisterPlan) -> Self {
        let bank = |shape: &Shape| Bank {
            places: smallvec![0; shape.rows.div_ceil(CHUNK_ROWS)],
            limbs: vec![0; CHUNK_ROWS * shape.row_limbs],
            chunks: 1,
        };
        Self(plan.banks.iter().map(bank).collect())
    }

    /// Prefetches the cells of a port, in registers that are small enough to have a cell for each
    /// port.
    #[inline]
    pub fn prefetch(&self, plan: &RegisterPlan, port: u16) {
        for (bank, shape) in self.0.iter().zip(&plan.banks) {
            if let Some(row) = shape.row(port.into()).filter(|_| shape.is_small()) {
                prefetch(&bank.limbs[bank.row_start(row, shape)]);
            }
        }
    }

    /// The limbs of a cell; `None` if it does not exist.
    #[inline]
    pub fn cell(&self, plan: &RegisterPlan, register: usize, index: u64) -> Option<&[u64]> {
        let place = &plan.places[register];
        let bank = &self.0[place.bank];
        let row = place.shape.row(index)?;
        let start = bank.row_start(row, &place.shape) + place.start;
        Some(&bank.limbs[start..start + place.limbs])
    }

    /// The limbs of a cell, to write. The caller keeps to the cell's width.
    #[inline]
    pub fn cell_mut(
        &mut self,
        plan: &RegisterPlan,
        register: usize,
        index: u64,
    ) -> Option<&mut [u64]> {
        let place = &plan.places[register];
        let bank = &mut self.0[place.bank];
        let row = place.shape.row(index)?;
        if bank.places[row / CHUNK_ROWS] == 0 {
            bank.add_chunk(row / CHUNK_ROWS, &place.shape);
        }
        let start = bank.row_start(row, &place.shape) + place.start;
        Some(&mut bank.limbs[start..start + place.limbs])
    }

    /// The value of a cell, big-endian.
    pub fn read(&self, plan: &RegisterPlan, register: RegisterId, index: usize) -> Option<Vec<u8>> {
        self.cell(plan, register.0, index as u64)
            .map(limbs_to_bytes)
    }

    /// Sets a cell; `None` if it does not exist, or the value does not fit.
    pub fn write(
        &mut self,
        plan: &RegisterPlan,
        register: RegisterId,
        index: usize,
        value: &[u8],
    ) -> Option<()> {
        let limbs = bytes_to_limbs(value, plan.bits(register.0))?;
        let cell = self.cell_mut(plan, register.0, index as u64)?;
        cell.copy_from_slice(&limbs);
        Some(())
    }
}

impl Shape {
    /// Whether the places of its chunks are stored in the bank itself.
    fn is_small(&self) -> bool {
        self.rows <= FEW_CHUNKS * CHUNK_ROWS
    }
}

impl Bank {
    /// The row's first limb.
    #[inline]
    fn row_start(&self, row: usize, shape: &Shape) -> usize {
        let chunk = self.places[row / CHUNK_ROWS] as usize;
        (chunk * CHUNK_ROWS + row % CHUNK_ROWS) * shape.row_limbs
    }

    #[cold]
    fn add_chunk(&mut self, chunk: usize, shape: &Shape) {
        let chunk_limbs = CHUNK_ROWS * shape.row_limbs;
        // P4 sizes registers with 32 bits.
        self.places[chunk] = self.chunks as u32;
        self.chunks += 1;
        let before = self.limbs.len();
        if before < self.chunks * chunk_limbs {
            let most = (self.places.len() + 1) * chunk_limbs;
            let after = (before + GROWTH_LIMBS.max(before / 2)).min(most);
            self.limbs.reserve_exact(after - before);
            self.limbs.resize(after, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::model::registers::Place;
    use crate::pipeline::model::word::limbs_for;

    /// A register of its own bank.
    fn one(size: usize, bits: u32) -> (RegisterPlan, Registers) {
        let limbs = limbs_for(bits);
        let shape = Shape {
            rows: size,
            row_limbs: limbs,
        };
        let place = Place {
            bank: 0,
            shape,
            start: 0,
            limbs,
            bits,
        };
        let plan = RegisterPlan {
            places: vec![place],
            banks: vec![shape],
        };
        let registers = Registers::new(&plan);
        (plan, registers)
    }

    #[test]
    fn a_register_cell_keeps_to_its_width() {
        let (plan, mut register) = one(2, 72);
        let id = RegisterId(0);
        assert_eq!(register.write(&plan, id, 1, &[0xff; 9]), Some(()));
        assert_eq!(
            register.write(&plan, id, 1, &[1, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
            None
        );
        assert_eq!(register.read(&plan, id, 1), Some(vec![0xff; 9]));
        assert_eq!(register.read(&plan, id, 0), Some(vec![0]));
        assert_eq!(register.read(&plan, id, 2), None);
    }

    #[test]
    fn a_register_has_memory_only_where_it_was_written() {
        let (plan, mut register) = one(100_000, 72);
        for index in [0, 31, 32, 99_999] {
            assert_eq!(register.cell(&plan, 0, index), Some(&[0, 0][..]));
        }
        assert_eq!(register.0[0].chunks, 1);
        for index in [99_999, 0, 31] {
            let cell = register.cell_mut(&plan, 0, index).unwrap();
            cell.copy_from_slice(&[index, 7]);
        }
        assert_eq!(register.0[0].chunks, 3);
        for index in [0, 31, 99_999] {
            assert_eq!(register.cell(&plan, 0, index), Some(&[index, 7][..]));
        }
        for index in [1, 30, 32, 99_998] {
            assert_eq!(register.cell(&plan, 0, index), Some(&[0, 0][..]), "{index}");
        }
        assert_eq!(register.cell(&plan, 0, 100_000), None);
        assert!(register.cell_mut(&plan, 0, u64::MAX).is_none());
    }

    #[test]
    fn a_bank_grows_a_few_times_to_just_what_its_rows_need() {
        let (plan, mut register) = one(100_000, 64);
        let mut grew = 0;
        for index in 0..100_000 {
            let before = register.0[0].limbs.capacity();
            register.cell_mut(&plan, 0, index).unwrap()[0] = index;
            grew += usize::from(register.0[0].limbs.capacity() != before);
        }
        assert!((0..100_000).all(|index| register.cell(&plan, 0, index) == Some(&[index][..])));
        assert_eq!(register.0[0].limbs.len(), 100_000 + CHUNK_ROWS);
        assert!(grew <= 4, "{grew}");
    }
}
