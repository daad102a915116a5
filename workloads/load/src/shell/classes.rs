// SPDX-License-Identifier: Apache-2.0

//! Classes of packets that applications set: one that knows what it sends says so.
//!
//! MPTCP's packets have the class that the kernel writes (`host/kernel/priority.c`), which
//! heeds that of the application while it does not know the end of a flow. Plain TCP has no
//! scheduler that could estimate anything. The sender sets the class whenever it writes, by
//! what is left of its flow. That is what pFabric and Homa take for granted, and so a baseline
//! for what classes bring without several paths.

use std::io;
use std::os::fd::BorrowedFd;

use weft_topology::{CLASSES_MAX, class_of, dscp_of_class};

use super::sys;

/// The class of what a socket sends.
#[derive(Debug)]
pub(super) struct Marking {
    classes: u8,
    ipv6: bool,
    /// The one that the socket has; `None` before the first.
    class: Option<u8>,
}

impl Marking {
    /// Of a socket that has none yet, over IPv4 or IPv6.
    pub(super) fn new(classes: u8, ipv6: bool) -> Self {
        Self {
            classes,
            ipv6,
            class: None,
        }
    }

    /// Puts what the socket sends from now on into the class of what its flow has left to send.
    pub(super) fn mark(&mut self, socket: BorrowedFd, bytes_left: u64) -> io::Result<()> {
        let class = class_of(bytes_left, self.classes);
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
