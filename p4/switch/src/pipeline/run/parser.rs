// SPDX-License-Identifier: Apache-2.0

//! Runs the parser.

use super::bits::read_limbs;
use super::eval::Scope;
use super::machine::Machine;
use super::packet::PacketState;
use super::wire::read_fields;
use crate::pipeline::model::expr::Dest;
use crate::pipeline::model::layout::Header;
use crate::pipeline::model::parser::{KeyPart, KeySource, Parser, State, Step};
use crate::pipeline::model::word::{limbs_for, mask_limbs};

/// Maximum number of states that a packet may go through. Without it, a loop that extracts nothing
/// would never end.
const MAX_STATES: usize = 1024;

/// Parsing stops with this error code.
type Stop = u64;

impl Parser {
    /// Parses the packet of `machine`; returns the error code.
    pub fn parse(&self, machine: &mut Machine) -> u64 {
        let mut at = self.start;
        for _ in 0..MAX_STATES {
            let Some(state) = self.states.get(at) else {
                return self.errors.no_error;
            };
            match self.run(state, machine) {
                Ok(next) => at = next,
                Err(error) => return error,
            }
        }
        self.errors.parser_timeout
    }

    fn run(&self, state: &State, machine: &mut Machine) -> Result<usize, Stop> {
        for step in &state.steps {
            self.step(step, machine)?;
        }
        let mut key = 0u128;
        for part in &state.key {
            let value = self.key_part(part, machine)?;
            key = key.checked_shl(part.padded_bits()).unwrap_or(0) | value;
        }
        for transition in &state.transitions {
            if key & transition.mask == transition.value {
                return Ok(transition.next);
            }
        }
        Err(self.errors.no_match)
    }

    fn key_part(&self, part: &KeyPart, machine: &mut Machine) -> Result<u128, Stop> {
        let mut limbs = [0; 2];
        let used = &mut limbs[..limbs_for(part.bits)];
        match &part.source {
            KeySource::Value(value) => value.write(&scope(machine), part.bits, used),
            KeySource::Lookahead { offset } => {
                self.look(machine.packet, *offset, part.bits, used)?;
            }
        }
        Ok(u128::from(limbs[1]) << 64 | u128::from(limbs[0]))
    }

    fn step(&self, step: &Step, machine: &mut Machine) -> Result<(), Stop> {
        match step {
            Step::Extract(header, None) => {
                let header = &machine.program.layout.headers[*header];
                self.extract(machine.packet, header, 0)
            }
            Step::Extract(header, Some(bits)) => {
                let bits = bits.to_u64(&scope(machine));
                let header = &machine.program.layout.headers[*header];
                self.extract(machine.packet, header, bits)
            }
            Step::ExtractNext(stack) => {
                let layout = &machine.program.layout;
                let stack = &layout.stacks[*stack];
                let next = machine.packet.words[stack.next as usize];
                let header = stack.headers.get(next as usize);
                let header = header.ok_or(self.errors.stack_out_of_bounds)?;
                self.extract(machine.packet, &layout.headers[*header], 0)?;
                machine.packet.words[stack.next as usize] = next + 1;
                Ok(())
            }
            Step::Lookahead { to, offset, bits } => self.lookahead(machine, to, *offset, *bits),
            Step::Advance(bits) => {
                let bits = bits.to_u64(&scope(machine));
                if bits % 8 != 0 {
                    return Err(self.errors.parser_invalid_argument);
                }
                let left = machine.packet.payload().len();
                match usize::try_from(bits / 8) {
                    Ok(bytes) if bytes <= left => {
                        machine.packet.parsed += bytes;
                        Ok(())
                    }
                    _ => Err(self.errors.packet_too_short),
                }
            }
            Step::Verify(condition, error) => {
                if condition.test(&scope(machine)) {
                    Ok(())
                } else {
                    Err(*error)
                }
            }
            Step::Do(op) => {
                machine.run(std::slice::from_ref(op), &[]);
                Ok(())
            }
        }
    }

    /// Extracts a header. `variable_bits` is the length of its varbit field.
    fn extract(
        &self,
        packet: &mut PacketState,
        header: &Header,
        variable_bits: u64,
    ) -> Result<(), Stop> {
        if variable_bits % 8 != 0 {
            return Err(self.errors.parser_invalid_argument);
        }
        let total_bytes = (u64::from(header.fixed_bits) + variable_bits) / 8;
        let data = &packet.data[packet.parsed..];
        // In the order of the model in P4-16, 12.8.2.
        if (data.len() as u64) < total_bytes {
            return Err(self.errors.packet_too_short);
        }
        if header
            .max_bytes
            .is_some_and(|most| total_bytes > u64::from(most))
        {
            return Err(self.errors.header_too_short);
        }
        packet.words[header.base as usize] = 1;
        read_fields(
            &header.groups,
            data,
            variable_bits as u32,
            &mut packet.words,
        );
        packet.parsed += total_bytes as usize;
        Ok(())
    }

    fn lookahead(
        &self,
        machine: &mut Machine,
        to: &Dest,
        offset: u32,
        bits: u32,
    ) -> Result<(), Stop> {
        let Some(slot) = to.resolve(&scope(machine)) else {
            return Ok(());
        };
        let mut limbs = std::mem::take(&mut machine.externs.limbs);
        limbs.clear();
        limbs.resize(limbs_for(bits), 0);
        let seen = self.look(machine.packet, offset, bits, &mut limbs);
        limbs.resize(slot.limbs(), 0);
        mask_limbs(&mut limbs, slot.bits);
        if seen.is_ok() {
            machine.packet.words[slot.range()].copy_from_slice(&limbs);
        }
        machine.externs.limbs = limbs;
        seen
    }

    /// Reads the next bits without extracting them.
    fn look(
        &self,
        packet: &PacketState,
        offset: u32,
        bits: u32,
        limbs: &mut [u64],
    ) -> Result<(), Stop> {
        let data = packet.payload();
        if (offset as usize + bits as usize).div_ceil(8) > data.len() {
            return Err(self.errors.packet_too_short);
        }
        read_limbs(data, offset as usize, bits, limbs);
        Ok(())
    }
}

fn scope<'s>(machine: &'s Machine) -> Scope<'s> {
    Scope {
        words: &machine.packet.words,
        args: &[],
        stacks: &machine.program.layout.stacks,
    }
}
