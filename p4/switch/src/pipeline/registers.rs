//! Registers: arrays of cells that actions read and write.
//!
//! Programs have large ones of which few cells are used, at places that a hash spreads, and several
//! that they use at the same place: signature, time and length of one segment, say. A bank is the
//! registers that are used alike, cell beside cell, so that a packet finds what it needs of them
//! in one line of the cache; hundreds of switches do not fit into it.
//!
//! Memory is had a chunk of rows at a time, and all chunks stand beside each other: an array would
//! touch a page for almost every row, and in the lab pages that a process does not touch one after
//! the other are mappings of their own, of which Linux allows 65530. For the same reason a bank
//! touches the memory for many chunks when it needs that of one.

use std::collections::HashMap;

use smallvec::{SmallVec, smallvec};

use super::action::Op;
use super::expr::{Expr, Node};
use super::word::{bytes_to_limbs, limbs_for, limbs_to_bytes};
use super::{RegisterId, RegisterInfo};
use crate::prefetch::prefetch;

/// Rows of a bank that get memory together.
const CHUNK_ROWS: usize = 32;
/// Chunks of a bank of which their places stand in the bank itself: those of all ports.
const FEW_CHUNKS: usize = 16;
/// Memory that a bank grows by at least, in limbs: 256 KB. It grows by half if that is more.
const GROWTH_LIMBS: usize = 32 << 10;

/// Where a program's registers are.
#[derive(Debug, Default)]
pub(super) struct RegisterPlan {
    places: Vec<Place>,
    banks: Vec<Shape>,
}

/// A register's part of the rows of its bank.
#[derive(Debug, Clone, Copy)]
struct Place {
    bank: usize,
    shape: Shape,
    /// Its first limb in a row.
    start: usize,
    limbs: usize,
    bits: u32,
}

/// The registers of a bank, together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Shape {
    rows: usize,
    row_limbs: usize,
}

impl RegisterPlan {
    /// The plan for registers that actions use with these primitives.
    pub fn new<'a>(registers: &[RegisterInfo], ops: impl Iterator<Item = &'a Op> + Clone) -> Self {
        let mut plan = Self::default();
        let mut bank_of = HashMap::new();
        for (info, first) in registers.iter().zip(used_alike(registers, ops)) {
            let bank = *bank_of.entry(first).or_insert_with(|| {
                plan.banks.push(Shape {
                    rows: info.size,
                    row_limbs: 0,
                });
                plan.banks.len() - 1
            });
            let limbs = limbs_for(info.bits);
            plan.places.push(Place {
                bank,
                shape: plan.banks[bank],
                start: plan.banks[bank].row_limbs,
                limbs,
                bits: info.bits,
            });
            plan.banks[bank].row_limbs += limbs;
        }
        for place in &mut plan.places {
            place.shape = plan.banks[place.bank];
        }
        plan
    }

    /// The width of a register's cells.
    #[inline]
    pub fn bits(&self, register: usize) -> u32 {
        self.places[register].bits
    }
}

/// For each register the first one of its size that is used at the same places: whose index is the
/// same expression, or that is used like one of which that is true.
fn used_alike<'a>(
    registers: &[RegisterInfo],
    ops: impl Iterator<Item = &'a Op> + Clone,
) -> Vec<usize> {
    let sources = sources(ops.clone());
    let mut first: Vec<usize> = (0..registers.len()).collect();
    let mut by_index = HashMap::new();
    for op in ops {
        let (register, index) = match op {
            Op::RegisterRead {
                register, index, ..
            }
            | Op::RegisterWrite {
                register, index, ..
            } => (*register as usize, index),
            _ => continue,
        };
        let Expr::Word(mut index, _) = index.clone() else {
            continue;
        };
        // Every step leads to an earlier one: it ends, but for programs that p4c did not write.
        for _ in 0..sources.len() {
            match index {
                Node::Word(word) => match sources.get(&word) {
                    Some(Some(source)) => index = source.clone(),
                    _ => break,
                },
                _ => break,
            }
        }
        let key = (format!("{index:?}"), registers[register].size);
        let other = *by_index.entry(key).or_insert(register);
        let (one, two) = (first[register], first[other]);
        let apart = first.iter_mut().filter(|of| **of == one.max(two));
        apart.for_each(|of| *of = one.min(two));
    }
    first
}

/// What is assigned to each field; nothing when several expressions are. p4c computes every index
/// into a variable of its own.
fn sources<'a>(ops: impl Iterator<Item = &'a Op>) -> HashMap<u32, Option<Node<u64>>> {
    let mut sources = HashMap::new();
    for op in ops {
        let (word, value) = match op {
            Op::SetConst { word, value } => (*word, Node::Const(*value)),
            Op::SetWord { word, from, .. } => (*word, Node::Word(*from)),
            Op::Set { word, value, .. } => (*word, value.clone()),
            _ => continue,
        };
        sources
            .entry(word)
            .and_modify(|source| *source = None)
            .or_insert(Some(value));
    }
    sources
}

/// What the registers of a pipeline hold.
#[derive(Debug)]
pub(super) struct Registers(Vec<Bank>);

#[derive(Debug)]
struct Bank {
    /// By chunk: its place in `limbs`, in chunks. The first place stays zero, and is that of every
    /// chunk that nobody wrote to.
    places: SmallVec<[u32; FEW_CHUNKS]>,
    limbs: Vec<u64>,
    /// Chunks that are in use.
    chunks: usize,
}

impl Registers {
    /// Registers that hold zero.
    pub fn new(plan: &RegisterPlan) -> Self {
        let bank = |shape: &Shape| Bank {
            places: smallvec![0; shape.rows.div_ceil(CHUNK_ROWS)],
            limbs: vec![0; CHUNK_ROWS * shape.row_limbs],
            chunks: 1,
        };
        Self(plan.banks.iter().map(bank).collect())
    }

    /// Lets come nearer the cells of a port, of registers as small as those that have a cell for
    /// each port.
    #[inline]
    pub fn prefetch(&self, plan: &RegisterPlan, port: u16) {
        for (bank, shape) in self.0.iter().zip(&plan.banks) {
            if let Some(row) = shape.row(port.into()).filter(|_| shape.is_small()) {
                prefetch(&bank.limbs[bank.row_start(row, shape)]);
            }
        }
    }

    /// The limbs of a cell; `None` where there is none.
    #[inline]
    pub fn cell(&self, plan: &RegisterPlan, register: usize, index: u64) -> Option<&[u64]> {
        let place = &plan.places[register];
        let bank = &self.0[place.bank];
        let row = place.shape.row(index)?;
        let start = bank.row_start(row, &place.shape) + place.start;
        Some(&bank.limbs[start..start + place.limbs])
    }

    /// The limbs of a cell, to write; the writer keeps to its width.
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

    /// What a cell holds, big-endian.
    pub fn read(&self, plan: &RegisterPlan, register: RegisterId, index: usize) -> Option<Vec<u8>> {
        self.cell(plan, register.0, index as u64)
            .map(limbs_to_bytes)
    }

    /// Sets a cell; `None` when it does not exist or the value does not fit.
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
    /// Whether the places of its chunks stand in the bank itself.
    fn is_small(&self) -> bool {
        self.rows <= FEW_CHUNKS * CHUNK_ROWS
    }

    /// The row of that index.
    #[inline]
    fn row(&self, index: u64) -> Option<usize> {
        let index = usize::try_from(index).ok()?;
        (index < self.rows).then_some(index)
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
    use super::super::expr::Dest;
    use super::super::layout::Slot;
    use super::*;

    fn info(size: usize, bits: u32) -> RegisterInfo {
        RegisterInfo {
            name: String::new(),
            size,
            bits,
        }
    }

    fn read(register: u32, word: u32) -> Op {
        Op::RegisterRead {
            to: Dest::Field(Slot {
                word: 0,
                bits: 64,
                signed: false,
            }),
            register,
            index: Expr::Word(Node::Word(word), false),
        }
    }

    fn one(size: usize, bits: u32) -> (RegisterPlan, Registers) {
        let plan = RegisterPlan::new(&[info(size, bits)], [].iter());
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

    #[test]
    fn an_index_that_is_computed_twice_is_the_same() {
        let registers = [info(8, 32), info(8, 32), info(8, 32)];
        let set = |word, value| Op::Set {
            word,
            mask: u64::MAX,
            value,
        };
        let ops = [
            set(5, Node::BitNot(Box::new(Node::Word(1)))),
            read(0, 5),
            set(6, Node::BitNot(Box::new(Node::Word(1)))),
            read(1, 6),
            // Of this nobody can tell what it is.
            set(7, Node::BitNot(Box::new(Node::Word(1)))),
            set(7, Node::Word(2)),
            read(2, 7),
        ];
        assert_eq!(used_alike(&registers, ops.iter()), [0, 0, 2]);
    }

    #[test]
    fn registers_that_one_field_indexes_share_their_rows_and_no_cell() {
        let registers = [
            info(64, 32),
            info(64, 72),
            info(64, 48),
            info(8, 32),
            info(64, 16),
        ];
        // 0 and 2 by way of 1; 3 is of another size; nobody uses 4.
        let ops = [read(0, 5), read(1, 5), read(1, 6), read(2, 6), read(3, 6)];
        let plan = RegisterPlan::new(&registers, ops.iter());
        let shape = |rows, row_limbs| Shape { rows, row_limbs };
        assert_eq!(plan.banks, [shape(64, 4), shape(8, 1), shape(64, 1)]);
        let mut state = Registers::new(&plan);
        for (register, info) in registers.iter().enumerate() {
            for index in 0..info.size as u64 {
                let cell = state.cell_mut(&plan, register, index).unwrap();
                cell.fill(100 * register as u64 + index);
            }
        }
        for (register, info) in registers.iter().enumerate() {
            for index in 0..info.size as u64 {
                let cell = state.cell(&plan, register, index).unwrap();
                assert_eq!(cell.len(), limbs_for(info.bits));
                assert!(
                    cell.iter()
                        .all(|limb| *limb == 100 * register as u64 + index)
                );
            }
        }
    }
}
