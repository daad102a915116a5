// SPDX-License-Identifier: Apache-2.0

//! Asks the kernel to hold packets back until their departure time.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

const RTM_NEWQDISC: u16 = 36;
const TCA_KIND: u16 = 1;
const TCA_OPTIONS: u16 = 2;
/// `TC_H_ROOT`.
const ROOT: u32 = u32::MAX;

/// Packets that may wait at one interface: more than any delay fills.
const WAITING_PACKETS: u32 = 1 << 20;

/// Attributes of `fq` and their values. All packets are one flow, ordered by departure time.
/// Nothing else paces them, and the timer that releases them has no slack.
const FQ: [(u16, u32); 6] = [
    (1, WAITING_PACKETS), // TCA_FQ_PLIMIT
    (2, WAITING_PACKETS), // TCA_FQ_FLOW_PLIMIT
    (5, 0),               // TCA_FQ_RATE_ENABLE
    (8, 4),               // TCA_FQ_BUCKETS_LOG
    (10, 0),              // TCA_FQ_ORPHAN_MASK
    (13, 0),              // TCA_FQ_TIMER_SLACK
];

/// Makes `fq` the root queueing discipline of `interface`.
///
/// Returns whether the kernel has `fq`.
pub(super) fn hold_until_departure(interface: i32) -> io::Result<bool> {
    let request = request(interface);
    // SAFETY: no pointers.
    let fd = unsafe {
        libc::socket(
            libc::AF_NETLINK,
            libc::SOCK_RAW | libc::SOCK_CLOEXEC,
            libc::NETLINK_ROUTE,
        )
    };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: just opened, owned by nobody else.
    let socket = unsafe { OwnedFd::from_raw_fd(fd) };
    // SAFETY: `request` is valid for its length during the call.
    let sent = unsafe {
        libc::send(
            socket.as_raw_fd(),
            request.as_ptr().cast(),
            request.len(),
            0,
        )
    };
    if sent < 0 {
        return Err(io::Error::last_os_error());
    }
    let mut answer = [0_u8; 4096];
    // SAFETY: `answer` is valid for its length during the call.
    let received = unsafe {
        libc::recv(
            socket.as_raw_fd(),
            answer.as_mut_ptr().cast(),
            answer.len(),
            0,
        )
    };
    if received < 0 {
        return Err(io::Error::last_os_error());
    }
    // An error message: header of 16 bytes, then minus the error number.
    let code = answer.get(16..20).and_then(|code| code.try_into().ok());
    match -code.map_or(0, i32::from_ne_bytes) {
        0 => Ok(true),
        libc::ENOENT | libc::EOPNOTSUPP => Ok(false),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

fn request(interface: i32) -> Vec<u8> {
    let flags = libc::NLM_F_REQUEST | libc::NLM_F_ACK | libc::NLM_F_CREATE | libc::NLM_F_REPLACE;
    let mut options = Vec::new();
    for (kind, value) in FQ {
        attribute(&mut options, kind, &value.to_ne_bytes());
    }
    let mut body = Vec::new();
    // struct tcmsg: family and padding, interface, handle, parent, info.
    body.extend_from_slice(&[0; 4]);
    body.extend_from_slice(&interface.to_ne_bytes());
    body.extend_from_slice(&0_u32.to_ne_bytes());
    body.extend_from_slice(&ROOT.to_ne_bytes());
    body.extend_from_slice(&0_u32.to_ne_bytes());
    attribute(&mut body, TCA_KIND, b"fq\0");
    attribute(&mut body, TCA_OPTIONS, &options);

    // struct nlmsghdr: length, type, flags, sequence, port.
    let mut message = Vec::new();
    message.extend_from_slice(&(16 + body.len() as u32).to_ne_bytes());
    message.extend_from_slice(&RTM_NEWQDISC.to_ne_bytes());
    message.extend_from_slice(&(flags as u16).to_ne_bytes());
    message.extend_from_slice(&1_u32.to_ne_bytes());
    message.extend_from_slice(&0_u32.to_ne_bytes());
    message.extend_from_slice(&body);
    message
}

fn attribute(to: &mut Vec<u8>, kind: u16, value: &[u8]) {
    to.extend_from_slice(&(4 + value.len() as u16).to_ne_bytes());
    to.extend_from_slice(&kind.to_ne_bytes());
    to.extend_from_slice(value);
    to.resize(to.len().next_multiple_of(4), 0);
}
