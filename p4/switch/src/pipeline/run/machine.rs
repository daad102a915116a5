// SPDX-License-Identifier: Apache-2.0

//! Runs actions.

use super::api::Digest;
use super::eval::Scope;
use super::externs::Externs;
use super::meter::Color;
use super::packet::PacketState;
use crate::pipeline::model::action::Op;
use crate::pipeline::model::expr::{Dest, Expr};
use crate::pipeline::model::info::MeterUnit;
use crate::pipeline::model::intrinsics::DROP_PORT;
use crate::pipeline::model::layout::Header;
use crate::pipeline::model::program::Program;
use crate::pipeline::model::word::{limbs_for, limbs_to_bytes, mask_limbs, mask64};

/// The parts of a pipeline that an action works on.
pub struct Machine<'a> {
    pub program: &'a Program,
    pub packet: &'a mut PacketState,
    pub externs: &'a mut Externs,
    pub digests: &'a mut Vec<Digest>,
}

impl Machine<'_> {
    /// Runs the primitives of an action with its arguments.
    pub fn run(&mut self, ops: &[Op], args: &[u64]) {
        for op in ops {
            self.step(op, args);
            if self.packet.exited {
                return;
            }
        }
    }

    fn scope<'s>(&'s self, args: &'s [u64]) -> Scope<'s> {
        Scope {
            words: &self.packet.words,
            args,
            stacks: &self.program.layout.stacks,
        }
    }

    #[inline]
    fn step(&mut self, op: &Op, args: &[u64]) {
        match op {
            Op::SetConst { word, value } => self.packet.words[*word as usize] = *value,
            Op::SetWord { word, mask, from } => {
                self.packet.words[*word as usize] = self.packet.words[*from as usize] & mask;
            }
            Op::Set { word, mask, value } => {
                let value = value.eval(&self.scope(args)) & mask;
                self.packet.words[*word as usize] = value;
            }
            Op::Assign { to, value } => self.assign(to, value, args),
            Op::Copy { from, to, words } => {
                let from = *from as usize;
                let range = from..from + *words as usize;
                self.packet.words.copy_within(range, *to as usize);
            }
            Op::AddHeader(header) => self.add_header(*header),
            Op::RemoveHeader(header) => {
                let header = &self.program.layout.headers[*header];
                self.packet.words[header.base as usize] = 0;
            }
            Op::CopyStack { from, to } => self.copy_stack(*from, *to),
            Op::Push { stack, count } => self.push(*stack, *count),
            Op::Pop { stack, count } => self.pop(*stack, *count),
            Op::Hash {
                to,
                calculation,
                base_and_size,
            } => {
                let hash = self.hash(*calculation);
                let [base, size] = &**base_and_size;
                let scope = &self.scope(args);
                let hash = hash.checked_rem(size.to_u64(scope)).unwrap_or(0);
                let value = base.to_u64(scope).wrapping_add(hash);
                self.store(to, value, args);
            }
            Op::Random { to, bounds } => {
                let [low, high] = &**bounds;
                let scope = &self.scope(args);
                let (low, high) = (low.to_u64(scope), high.to_u64(scope));
                let value = self.externs.random.between(low, high);
                self.store(to, value, args);
            }
            Op::Drop => {
                let intrinsics = &self.program.intrinsics;
                let words = &mut self.packet.words;
                intrinsics.egress_spec.set(words, DROP_PORT.into());
                intrinsics.mcast_grp.set(words, 0);
            }
            Op::Count { counter, index } => self.count(*counter, index, args),
            Op::Meter { to, meter, index } => self.meter(to, *meter as usize, index, args),
            Op::RegisterRead {
                to,
                register,
                index,
            } => self.register_read(to, *register as usize, index, args),
            Op::RegisterWrite {
                register,
                index,
                value,
            } => self.register_write(*register as usize, index, value, args),
            Op::Digest(digest) => self.digest(*digest, args),
            Op::Truncate(length) => {
                let length = length.to_u64(&self.scope(args));
                self.packet.truncate = Some(usize::try_from(length).unwrap_or(usize::MAX));
            }
            Op::Clone { session, list } => {
                let session = session.to_u64(&self.scope(args)) as u16;
                self.packet.clone = Some((session, *list));
            }
            Op::Resubmit(list) => self.packet.resubmit = Some(*list),
            Op::Recirculate(list) => self.packet.recirculate = Some(*list),
            Op::Log { text, values } => self.log(text, values, args),
            Op::Assert { condition, place } => {
                if !condition.test(&self.scope(args)) {
                    tracing::error!("{place}: assertion failed, packet dropped");
                    self.packet.condemned = true;
                    self.packet.exited = true;
                }
            }
            Op::Exit => self.packet.exited = true,
        }
    }

    fn assign(&mut self, to: &Dest, value: &Expr, args: &[u64]) {
        let Some(slot) = to.resolve(&self.scope(args)) else {
            return;
        };
        let mut limbs = std::mem::take(&mut self.externs.limbs);
        limbs.clear();
        limbs.resize(slot.limbs(), 0);
        value.write(&self.scope(args), slot.bits, &mut limbs);
        self.packet.words[slot.range()].copy_from_slice(&limbs);
        self.externs.limbs = limbs;
    }

    /// Assigns a number; the upper limbs of a wider field become 0.
    fn store(&mut self, to: &Dest, value: u64, args: &[u64]) {
        if let Some(slot) = to.resolve(&self.scope(args)) {
            let limbs = &mut self.packet.words[slot.range()];
            limbs.fill(0);
            limbs[0] = value;
            mask_limbs(limbs, slot.bits);
        }
    }

    fn add_header(&mut self, header: usize) {
        let header = &self.program.layout.headers[header];
        if !header.is_valid(&self.packet.words) {
            let words = &mut self.packet.words[header.range()];
            words.fill(0);
            words[0] = 1;
        }
    }

    fn copy_stack(&mut self, from: usize, to: usize) {
        let stacks = &self.program.layout.stacks;
        let (from, to) = (&stacks[from], &stacks[to]);
        for (from, to) in from.headers.iter().zip(&to.headers) {
            self.copy_header(*from, *to);
        }
        self.packet.words[to.next as usize] = self.packet.words[from.next as usize];
    }

    fn copy_header(&mut self, from: usize, to: usize) {
        let headers = &self.program.layout.headers;
        let to = headers[to].base as usize;
        self.packet.words.copy_within(headers[from].range(), to);
    }

    fn push(&mut self, stack: usize, count: usize) {
        let stack = &self.program.layout.stacks[stack];
        let size = stack.headers.len();
        let count = count.min(size);
        for index in (count..size).rev() {
            self.copy_header(stack.headers[index - count], stack.headers[index]);
        }
        for header in &stack.headers[..count] {
            self.clear_header(*header);
        }
        let next = &mut self.packet.words[stack.next as usize];
        *next = (*next + count as u64).min(size as u64);
    }

    fn pop(&mut self, stack: usize, count: usize) {
        let stack = &self.program.layout.stacks[stack];
        let size = stack.headers.len();
        let count = count.min(size);
        for index in count..size {
            self.copy_header(stack.headers[index], stack.headers[index - count]);
        }
        for header in &stack.headers[size - count..] {
            self.clear_header(*header);
        }
        let next = &mut self.packet.words[stack.next as usize];
        *next = next.saturating_sub(count as u64);
    }

    fn clear_header(&mut self, header: usize) {
        let header: &Header = &self.program.layout.headers[header];
        self.packet.words[header.range()].fill(0);
    }

    fn hash(&mut self, calculation: usize) -> u64 {
        self.program.calculations[calculation].compute(
            &self.program.layout,
            &self.packet.words,
            self.packet.payload(),
            &mut self.externs.scratch,
        )
    }

    fn count(&mut self, counter: usize, index: &Expr, args: &[u64]) {
        let index = index.to_u64(&self.scope(args));
        let cells = &mut self.externs.counters[counter];
        if let Some(cell) = usize::try_from(index).ok().and_then(|i| cells.get_mut(i)) {
            cell.add(self.packet.length());
        }
    }

    fn meter(&mut self, to: &Dest, meter: usize, index: &Expr, args: &[u64]) {
        let index = index.to_u64(&self.scope(args));
        let units = match self.program.meter_infos[meter].unit {
            MeterUnit::Bytes => self.packet.length() as u64,
            MeterUnit::Packets => 1,
        };
        let (now, ticks_per_s) = (self.externs.now, self.externs.ticks_per_s);
        let cells = &mut self.externs.meters[meter];
        let cell = usize::try_from(index).ok().and_then(|i| cells.get_mut(i));
        let color = cell
            .and_then(Option::as_mut)
            .map_or(Color::Green, |cell| cell.color(units, ticks_per_s, now));
        self.store(to, color as u64, args);
    }

    fn register_read(&mut self, to: &Dest, register: usize, index: &Expr, args: &[u64]) {
        let scope = &self.scope(args);
        let (Some(slot), index) = (to.resolve(scope), index.to_u64(scope)) else {
            return;
        };
        let plan = &self.program.registers;
        let cell = self.externs.registers.cell(plan, register, index);
        let to = &mut self.packet.words[slot.range()];
        match cell {
            Some([cell]) if to.len() == 1 => to[0] = *cell & mask64(slot.bits),
            Some(cell) => {
                let common = cell.len().min(to.len());
                to[..common].copy_from_slice(&cell[..common]);
                to[common..].fill(0);
                mask_limbs(to, slot.bits);
            }
            None => to.fill(0),
        }
    }

    fn register_write(&mut self, register: usize, index: &Expr, value: &Expr, args: &[u64]) {
        let scope = &Scope {
            words: &self.packet.words,
            args,
            stacks: &self.program.layout.stacks,
        };
        let index = index.to_u64(scope);
        let plan = &self.program.registers;
        let bits = plan.bits(register);
        let cell = self.externs.registers.cell_mut(plan, register, index);
        match (cell, value) {
            (Some([cell]), Expr::Word(value, _)) => *cell = value.eval(scope) & mask64(bits),
            (Some(cell), value) => value.write(scope, bits, cell),
            (None, _) => {}
        }
    }

    fn digest(&mut self, digest: usize, args: &[u64]) {
        let elements = &self.program.digest_elements[digest];
        let scope = &self.scope(args);
        let fields = elements.iter().map(|(value, bits)| {
            let mut limbs = vec![0; limbs_for(*bits)];
            value.write(scope, *bits, &mut limbs);
            limbs_to_bytes(&limbs)
        });
        let fields = fields.collect();
        self.digests.push(Digest { digest, fields });
    }

    fn log(&self, text: &str, values: &[Expr], args: &[u64]) {
        let scope = &self.scope(args);
        let mut parts = text.split("{}");
        let mut message = String::from(parts.next().unwrap_or_default());
        let mut values = values.iter();
        for part in parts {
            match values.next() {
                Some(Expr::Word(node, false)) => message += &node.eval(scope).to_string(),
                Some(Expr::Word(node, true)) => message += &(node.eval(scope) as i64).to_string(),
                Some(Expr::Double(node, false)) => message += &node.eval(scope).to_string(),
                Some(Expr::Double(node, true)) => {
                    message += &(node.eval(scope) as i128).to_string();
                }
                Some(Expr::Big(node)) => message += &node.eval(scope).to_string(),
                None => message += "{}",
            }
            message += part;
        }
        tracing::info!("{message}");
    }
}
