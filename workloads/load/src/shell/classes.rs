// SPDX-License-Identifier: Apache-2.0

//! Classes of packets that applications set: one that knows what it sends says so.
//!
//! MPTCP's packets have the class that the kernel writes (`host/kernel/priority.c`), which
//! heeds that of the application while it does not know the end of a flow. Plain TCP has no
//! scheduler that could estimate anything. The sender sets the class whenever it writes, by
//! what is left of its flow. That is what pFabric and Homa take for granted, and so a baseline
//! for what classes bring without several paths. Equal flows get a random order, as the kernel
//! gives it.

use std::io;
use std::os::fd::BorrowedFd;

use rand::RngCore;
use rand_chacha::ChaCha12Rng;
use weft_topology::{CLASSES_MAX, class_of, dscp_of_class, spread_left};

use super::sys;
use crate::engine::FlowId;

/// How applications choose classes.
#[derive(Debug, Clone)]
pub struct Classes {
    /// From 2 to [`CLASSES_MAX`].
    pub count: u8,
    /// What a flow has left counts as up to so many percent of a doubling more or less.
    pub spread_percent: u32,
    /// Its numbers are those by which flows count as more or less: the first is flow 0's.
    pub draws: ChaCha12Rng,
}

/// The class of what a socket sends.
#[derive(Debug)]
pub(super) struct Marking {
    classes: Classes,
    ipv6: bool,
    /// What decides by how much its flow counts as more or less.
    draw: u32,
    /// The one that the socket has; `None` before the first.
    class: Option<u8>,
}

impl Marking {
    /// Of a socket that has none yet, over IPv4 or IPv6.
    pub(super) fn new(classes: Classes, ipv6: bool) -> Self {
        Self {
            classes,
            ipv6,
            draw: 0,
            class: None,
        }
    }

    /// The socket sends a flow from now on.
    pub(super) fn begin(&mut self, flow: FlowId) {
        self.classes.draws.set_word_pos(flow as u128);
        self.draw = self.classes.draws.next_u32();
    }

    /// Puts what the socket sends from now on into the class of what its flow has left to send.
    pub(super) fn mark(&mut self, socket: BorrowedFd, bytes_left: u64) -> io::Result<()> {
        let left = spread_left(bytes_left, self.draw, self.classes.spread_percent);
        let class = class_of(left, self.classes.count);
        if self.class != Some(class) {
            sys::set_traffic_class(socket, self.ipv6, dscp_of_class(class) << 2)?;
            // The bands of the host's own queue, as the kernel's module sets them.
            let band = u32::from(CLASSES_MAX + class);
            sys::set_socket_option(socket, libc::SO_PRIORITY, band)?;
            self.class = Some(class);
        }
        Ok(())
    }
}
