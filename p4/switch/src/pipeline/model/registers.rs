// SPDX-License-Identifier: Apache-2.0

//! Where a program's registers are.
//!
//! Programs have large registers of which they use few cells, at indices that a hash spreads. Often
//! they use several registers at the same index, for example for signature, time and length of one
//! segment. A bank holds registers that are used together, cell beside cell. So a packet finds all
//! its cells in one cache line, which matters because hundreds of switches do not fit into the
//! cache.

/// Where a program's registers are.
#[derive(Debug, Default)]
pub struct RegisterPlan {
    pub places: Vec<Place>,
    pub banks: Vec<Shape>,
}

/// A register's part of the rows of its bank.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    pub bank: usize,
    pub shape: Shape,
    /// Its first limb in a row.
    pub start: usize,
    pub limbs: usize,
    pub bits: u32,
}

/// The registers of a bank, together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    pub rows: usize,
    pub row_limbs: usize,
}

impl RegisterPlan {
    /// The width of a register's cells.
    #[inline]
    pub fn bits(&self, register: usize) -> u32 {
        self.places[register].bits
    }
}

impl Shape {
    /// The row of that index.
    #[inline]
    pub fn row(&self, index: u64) -> Option<usize> {
        let index = usize::try_from(index).ok()?;
        (index < self.rows).then_some(index)
    }
}
