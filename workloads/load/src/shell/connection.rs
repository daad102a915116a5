// SPDX-License-Identifier: Apache-2.0

//! A connection: its two ends, and what each still has to write and read.

use std::io;
use std::net::SocketAddrV4;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use nix::sys::socket::{self, MsgFlags};

use super::classes::Marking;
use super::counters::Counters;
use super::subflows::{self, SubflowState};
use super::{Sockets, sys};
use crate::engine::FlowId;

/// Unread bytes that wake a receiver. Unread data closes the window, and reading it opens the
/// window at once by as much, which causes a burst. With 16 KiB, twice as many flows of an
/// incast had a timeout as with 4 KiB; with 1 byte, as many as with 4 KiB.
pub(super) const LOW_WATER_BYTES: u64 = 4 * 1024;
/// Both ends of a connection, and the data in transit.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) sender: OwnedFd,
    pub(super) receiver: Option<OwnedFd>,
    pub(super) address: SocketAddrV4,
    pub(super) connected: bool,
    pub(super) used: bool,
    /// The flow that uses it, or used it last; `None` for a greeting.
    pub(super) flow: Option<FlowId>,
    /// Bytes of a request that the receiving end still has to write.
    pub(super) to_ask: u64,
    /// Bytes of it that the sending end still has to read.
    pub(super) asked: u64,
    pub(super) to_send: u64,
    pub(super) to_receive: u64,
    pub(super) low_water: u64,
    /// How the sender sets classes; `None` if it sets none.
    pub(super) marking: Option<Marking>,
    /// The counters at the start of the flow.
    pub(super) before: Counters,
}

impl Connection {
    /// The current subflows; empty for plain TCP.
    pub(super) fn subflows(&self) -> Vec<SubflowState> {
        subflows::read(self.sender.as_fd()).unwrap_or_default()
    }

    pub(super) fn counters(&self, sockets: &Sockets) -> Counters {
        Counters::read(self.sender.as_fd(), sockets.protocol).unwrap_or_default()
    }

    /// Writes the request once both ends exist. Requests are small: if one doesn't fit into the
    /// send buffer, there is already more than one in it.
    pub(super) fn send_request(&mut self, zeroes: &[u8]) -> io::Result<()> {
        let Some(receiver) = self.receiver.as_ref().filter(|_| self.to_ask > 0) else {
            return Ok(());
        };
        let request = &zeroes[..self.to_ask.min(zeroes.len() as u64) as usize];
        let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
        let count = socket::send(receiver.as_raw_fd(), request, flags)?;
        self.to_ask -= count as u64;
        Ok(())
    }

    /// Reads the available part of the request.
    pub(super) fn receive_request(&mut self, scratch: &mut [u8]) -> io::Result<u64> {
        let wanted = self.asked.min(scratch.len() as u64) as usize;
        let flags = MsgFlags::MSG_DONTWAIT;
        match socket::recv(self.sender.as_raw_fd(), &mut scratch[..wanted], flags) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => {
                self.asked -= count as u64;
                Ok(count as u64)
            }
            Err(nix::Error::EAGAIN | nix::Error::EINTR) => Ok(0),
            Err(error) => Err(error.into()),
        }
    }

    /// Writes until the kernel accepts no more.
    pub(super) fn fill_send_buffer(&mut self, zeroes: &[u8]) -> io::Result<()> {
        let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
        while self.to_send > 0 {
            if let Some(marking) = &mut self.marking {
                marking.mark(self.sender.as_fd(), self.to_send)?;
            }
            let chunk = &zeroes[..self.to_send.min(zeroes.len() as u64) as usize];
            match socket::send(self.sender.as_raw_fd(), chunk, flags) {
                Ok(count) => {
                    self.to_send -= count as u64;
                    if count < chunk.len() {
                        break;
                    }
                }
                Err(nix::Error::EAGAIN) => break,
                Err(nix::Error::EINTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Sets the low-water mark so that the receiver wakes for a good part of the missing data, or
    /// for the last byte. An idle connection keeps its mark.
    pub(super) fn adjust_low_water(&mut self) {
        let wanted = self.to_receive.min(LOW_WATER_BYTES);
        let Some(receiver) = &self.receiver else {
            return;
        };
        if wanted != self.low_water && wanted > 0 {
            let set = sys::set_socket_option(receiver.as_fd(), libc::SO_RCVLOWAT, wanted as u32);
            // Kernels that don't support it for MPTCP only wake the receiver more often.
            if set.is_ok() {
                self.low_water = wanted;
            }
        }
    }
}
