// SPDX-License-Identifier: Apache-2.0

//! Packets to hosts: many in one system call, each with its departure time.

use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use libc::{cmsghdr, iovec, mmsghdr, sock_txtime, sockaddr_ll};

use super::ring::set;
use crate::network::Delivery;

/// Maximum number of packets in one `sendmmsg`.
const BATCH_PACKETS: usize = 1024;
/// Room for packets that wait in `fq` for their time; all interfaces share it.
const SEND_BUFFER_BYTES: i32 = 256 << 20;

/// The sending socket.
#[derive(Debug)]
pub(super) struct Sender {
    socket: OwnedFd,
    /// Interface of each host port.
    interfaces: Vec<i32>,
    lost_packets: u64,
}

/// A control message with the departure time.
#[repr(C)]
struct TxTime {
    header: cmsghdr,
    at_ns: u64,
}

impl Sender {
    /// Sends to host ports by these interfaces.
    pub fn open(interfaces: Vec<i32>) -> io::Result<Self> {
        // Protocol 0: this socket receives nothing.
        // SAFETY: no pointers.
        let fd = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: just opened, owned by nobody else.
        let socket = unsafe { OwnedFd::from_raw_fd(fd) };
        let buffer = |option| set(fd, libc::SOL_SOCKET, option, &SEND_BUFFER_BYTES);
        match buffer(libc::SO_SNDBUFFORCE) {
            // Root in a user namespace gets only as much as any user (`net.core.wmem_max`).
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                buffer(libc::SO_SNDBUF)?;
            }
            result => result?,
        }
        let clock = sock_txtime {
            clockid: libc::CLOCK_MONOTONIC,
            flags: 0,
        };
        set(fd, libc::SOL_SOCKET, libc::SO_TXTIME, &clock)?;
        Ok(Self {
            socket,
            interfaces,
            lost_packets: 0,
        })
    }

    /// Sends all of `deliveries`. Packets that the kernel does not take are lost, as on a wire.
    pub fn send(&mut self, deliveries: &[Delivery]) {
        for batch in deliveries.chunks(BATCH_PACKETS) {
            self.send_batch(batch);
        }
    }

    fn send_batch(&mut self, batch: &[Delivery]) {
        let mut parts: Vec<(sockaddr_ll, iovec, TxTime)> =
            batch.iter().map(|delivery| self.parts(delivery)).collect();
        let mut messages: Vec<mmsghdr> = parts
            .iter_mut()
            .map(|(address, part, time)| {
                // SAFETY: plain numbers and null pointers.
                let mut message: mmsghdr = unsafe { zeroed() };
                message.msg_hdr.msg_name = std::ptr::from_mut(address).cast();
                message.msg_hdr.msg_namelen = size_of::<sockaddr_ll>() as u32;
                message.msg_hdr.msg_iov = part;
                message.msg_hdr.msg_iovlen = 1;
                message.msg_hdr.msg_control = std::ptr::from_mut(time).cast();
                message.msg_hdr.msg_controllen = size_of::<TxTime>();
                message
            })
            .collect();
        let mut sent = 0;
        while let Some(rest @ [_, ..]) = messages.get_mut(sent..) {
            // SAFETY: the messages point into `parts` and `batch`, which outlive the call and are
            // not moved meanwhile.
            let result = unsafe {
                libc::sendmmsg(
                    self.socket.as_raw_fd(),
                    rest.as_mut_ptr(),
                    rest.len() as u32,
                    libc::MSG_DONTWAIT,
                )
            };
            sent += match usize::try_from(result) {
                Ok(number @ 1..) => number,
                _ => self.lose(&io::Error::last_os_error()),
            };
        }
    }

    fn parts(&self, delivery: &Delivery) -> (sockaddr_ll, iovec, TxTime) {
        // SAFETY: plain numbers.
        let mut address: sockaddr_ll = unsafe { zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_ifindex = self.interfaces[delivery.host_port];
        let part = iovec {
            // `sendmmsg` only reads it.
            iov_base: delivery.frame.as_ptr().cast_mut().cast(),
            iov_len: delivery.frame.len(),
        };
        let time = TxTime {
            header: cmsghdr {
                cmsg_len: size_of::<TxTime>(),
                cmsg_level: libc::SOL_SOCKET,
                cmsg_type: libc::SCM_TXTIME,
            },
            at_ns: delivery.at_ns,
        };
        (address, part, time)
    }

    /// Counts a packet that could not be sent, and goes on with the next.
    fn lose(&mut self, error: &io::Error) -> usize {
        if error.kind() == io::ErrorKind::Interrupted {
            return 0;
        }
        self.lost_packets += 1;
        if self.lost_packets.is_power_of_two() {
            let lost = self.lost_packets;
            tracing::warn!(%error, lost, "a packet to a host was not sent");
        }
        1
    }
}
