// SPDX-License-Identifier: Apache-2.0

//! Background traffic over real sockets. It runs from the warm-up to the end of the run. What its
//! TCP flows deliver counts from the start of the run. If it fails, the run fails.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddrV4;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use anyhow::{Context, Result, bail};
use nix::sys::socket::{self, MsgFlags};

use super::hosts::Hosts;
use super::sys::{Epoll, Interest, Ready};
use super::{CHUNK_BYTES, Sockets, Token, connection};
use crate::ideal_fabric::Protocol;
use crate::plan::{Background, OnOff};

/// The sockets of all background traffic.
pub(super) struct Traffic {
    flows: Vec<Flow>,
    /// TCP flows whose receiving end hasn't been accepted yet, by the sender's address.
    unaccepted: BTreeMap<SocketAddrV4, usize>,
    sources: Vec<Source>,
    datagram_bytes: usize,
}

struct Flow {
    source: usize,
    destination: usize,
    sender: OwnedFd,
    receiver: Option<OwnedFd>,
    received_bytes: u64,
}

/// What a TCP flow in the background has delivered during a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delivered {
    /// Host that sent.
    pub source: usize,
    /// Host that received.
    pub destination: usize,
    /// Bytes that the receiver read.
    pub bytes: u64,
}

struct Source {
    sender: OwnedFd,
    /// Bound, so that no "port unreachable" is sent; never read.
    _receiver: OwnedFd,
    times: OnOff,
}

impl Traffic {
    /// Opens all sockets. TCP receivers must already listen.
    pub(super) fn open(
        plan: Background,
        hosts: &mut Hosts,
        sockets: &Sockets,
        epoll: &Epoll,
    ) -> Result<Self> {
        let plain = Sockets {
            protocol: Protocol::Tcp,
            ..sockets.clone()
        };
        let mut flows = Vec::new();
        let mut unaccepted = BTreeMap::new();
        for (index, (source, destination)) in plan.tcp.into_iter().enumerate() {
            let (sender, address) = hosts
                .connect(source, destination, &plain)
                .context("background TCP")?;
            let token = Token::Background(2 * index).encode();
            epoll.add(sender.as_fd(), Interest::Changes, token)?;
            unaccepted.insert(address, index);
            flows.push(Flow {
                source,
                destination,
                sender,
                receiver: None,
                received_bytes: 0,
            });
        }
        let open = |(source, destination, times)| {
            let (sender, receiver) = hosts.datagrams(source, destination, sockets.port)?;
            Ok(Source {
                sender,
                _receiver: receiver,
                times,
            })
        };
        let sources: io::Result<Vec<Source>> = plan.udp.into_iter().map(open).collect();
        Ok(Self {
            flows,
            unaccepted,
            sources: sources.context("background UDP")?,
            datagram_bytes: hosts.datagram_bytes(),
        })
    }

    /// Takes the receiving end of a connection from `peer` if it is a background flow.
    pub(super) fn accept(&mut self, peer: SocketAddrV4, fd: OwnedFd, epoll: &Epoll) {
        let Some(index) = self.unaccepted.remove(&peer) else {
            return;
        };
        let token = Token::Background(2 * index + 1).encode();
        let watched = epoll.add(fd.as_fd(), Interest::Readable, token);
        let _ = super::sys::set_socket_option(
            fd.as_fd(),
            libc::SO_RCVLOWAT,
            connection::LOW_WATER_BYTES as u32,
        );
        if watched.is_ok() {
            self.flows[index].receiver = Some(fd);
        }
    }

    /// The next time at which a datagram is due.
    pub(super) fn poll_timeout(&self) -> Option<u64> {
        let times = self.sources.iter();
        times.filter_map(|source| source.times.poll_timeout()).min()
    }

    /// Sends the datagrams that are due. If the host's own queue is full, they are dropped, as they
    /// would be later.
    pub(super) fn handle_timeout(&mut self, now: u64, zeroes: &[u8]) {
        for source in &mut self.sources {
            for _ in 0..source.times.handle_timeout(now) {
                let packet = &zeroes[..self.datagram_bytes];
                let _ = socket::send(source.sender.as_raw_fd(), packet, MsgFlags::MSG_DONTWAIT);
            }
        }
    }

    /// Writes or reads at one end of a TCP flow. What is read counts if the run `has_started`.
    pub(super) fn handle(
        &mut self,
        end: usize,
        ready: Ready,
        buffer: &mut [u8],
        has_started: bool,
    ) -> Result<()> {
        let flow = &mut self.flows[end / 2];
        if ready.broken {
            bail!("background TCP: a flow broke");
        }
        match &flow.receiver {
            Some(receiver) if end % 2 == 1 => {
                let count = drain(receiver, buffer).context("background TCP")?;
                if has_started {
                    flow.received_bytes += count as u64;
                }
            }
            _ if ready.writable => fill(&flow.sender, buffer).context("background TCP")?,
            _ => {}
        }
        Ok(())
    }

    /// What each TCP flow has delivered since the start of the run.
    pub(super) fn delivered(&self) -> Vec<Delivered> {
        let delivered = |flow: &Flow| Delivered {
            source: flow.source,
            destination: flow.destination,
            bytes: flow.received_bytes,
        };
        self.flows.iter().map(delivered).collect()
    }
}

/// Reads once and returns how many bytes; epoll reports again if there is more.
fn drain(receiver: &OwnedFd, buffer: &mut [u8]) -> io::Result<usize> {
    match socket::recv(receiver.as_raw_fd(), buffer, MsgFlags::MSG_DONTWAIT) {
        Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
        Ok(count) => Ok(count),
        Err(nix::Error::EAGAIN | nix::Error::EINTR) => Ok(0),
        Err(error) => Err(error.into()),
    }
}

/// Writes until the kernel accepts no more.
fn fill(sender: &OwnedFd, buffer: &[u8]) -> io::Result<()> {
    let chunk = &buffer[..buffer.len().min(CHUNK_BYTES)];
    let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
    loop {
        match socket::send(sender.as_raw_fd(), chunk, flags) {
            Ok(count) if count == chunk.len() => {}
            Ok(_) | Err(nix::Error::EAGAIN) => return Ok(()),
            Err(nix::Error::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}
