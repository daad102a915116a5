// SPDX-License-Identifier: Apache-2.0

//! Classes of packets of plain TCP: an application that knows what it sends says so.
//!
//! MPTCP's packets have the class that the kernel writes (`host/kernel/priority.c`). Plain TCP
//! has no scheduler that could; here the sender sets it whenever it writes, by what is left of
//! its flow. That is what pFabric and Homa take for granted, and so a baseline for what classes
//! bring without several paths.

use std::io;
use std::os::fd::BorrowedFd;

use weft_topology::{CLASSES_MAX, class_of, dscp_of_class};

use super::sys;

/// Puts what a socket sends from now on into the class of what its flow has left to send.
///
/// `before` is the class that the socket has; gives the one that it has now.
pub(super) fn mark(
    socket: BorrowedFd,
    bytes_left: u64,
    classes: u8,
    before: Option<u8>,
) -> io::Result<Option<u8>> {
    let class = class_of(bytes_left, classes);
    if before != Some(class) {
        sys::set_traffic_class(socket, dscp_of_class(class) << 2)?;
        // The bands of the host's own queue, as the kernel's module sets them.
        let band = u32::from(CLASSES_MAX + class);
        sys::set_socket_option(socket, libc::SO_PRIORITY, band)?;
    }
    Ok(Some(class))
}
