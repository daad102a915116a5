// SPDX-License-Identifier: Apache-2.0

//! Safe wrappers of the few system calls that no library covers.

use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

use crate::ideal_fabric::Protocol;

/// Level of MPTCP's socket options.
const SOL_MPTCP: libc::c_int = 284;
/// Option for the `mptcp_info` of a connection.
const MPTCP_INFO: libc::c_int = 1;
/// Option for the `tcp_info` of every subflow.
const MPTCP_TCPINFO: libc::c_int = 2;
/// Option for the addresses of every subflow.
const MPTCP_SUBFLOW_ADDRS: libc::c_int = 3;

/// An epoll event: what is ready, and the token of the descriptor.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ready {
    pub(super) token: u64,
    pub(super) readable: bool,
    pub(super) writable: bool,
    pub(super) broken: bool,
}

/// What to wait for on a descriptor.
#[derive(Debug, Clone, Copy)]
pub(super) enum Interest {
    /// Data (at least the socket's low-water mark) or a connection to accept.
    Readable,
    /// Changes: when the socket becomes writable, or gets data.
    Changes,
}

/// An epoll instance.
#[derive(Debug)]
pub(super) struct Epoll {
    fd: OwnedFd,
    events: Vec<libc::epoll_event>,
}

impl Epoll {
    pub(super) fn new() -> io::Result<Self> {
        // SAFETY: takes no pointers; the result is checked and then owned.
        let fd = check(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        Ok(Self {
            // SAFETY: a fresh descriptor that nobody else owns.
            fd: unsafe { OwnedFd::from_raw_fd(fd) },
            events: vec![libc::epoll_event { events: 0, u64: 0 }; 256],
        })
    }

    pub(super) fn add(&self, fd: BorrowedFd, interest: Interest, token: u64) -> io::Result<()> {
        let flags = match interest {
            Interest::Readable => libc::EPOLLIN,
            Interest::Changes => libc::EPOLLIN | libc::EPOLLOUT | libc::EPOLLET,
        };
        let mut event = libc::epoll_event {
            events: flags as u32,
            u64: token,
        };
        // SAFETY: `event` outlives the call, which copies it.
        check(unsafe {
            libc::epoll_ctl(
                self.fd.as_raw_fd(),
                libc::EPOLL_CTL_ADD,
                fd.as_raw_fd(),
                &mut event,
            )
        })?;
        Ok(())
    }

    /// Waits, with nanosecond resolution, until something is ready or `timeout` has passed (`None`:
    /// forever).
    pub(super) fn wait(&mut self, timeout: Option<Duration>) -> io::Result<Vec<Ready>> {
        let timeout = timeout.map(|timeout| libc::timespec {
            tv_sec: timeout.as_secs().try_into().unwrap_or(libc::time_t::MAX),
            tv_nsec: timeout.subsec_nanos().into(),
        });
        let timeout = timeout.as_ref().map_or(std::ptr::null(), |t| t as *const _);
        // SAFETY: the buffer is as long as stated; `timeout` is null or valid;
        // a null signal mask means none.
        let count = unsafe {
            libc::syscall(
                libc::SYS_epoll_pwait2,
                self.fd.as_raw_fd(),
                self.events.as_mut_ptr(),
                self.events.len() as libc::c_int,
                timeout,
                std::ptr::null::<libc::sigset_t>(),
                0usize,
            )
        };
        let count = match usize::try_from(count) {
            Ok(count) => count,
            Err(_) => {
                let error = io::Error::last_os_error();
                if error.kind() == io::ErrorKind::Interrupted {
                    0
                } else {
                    return Err(error);
                }
            }
        };
        let ready = self.events[..count].iter().map(|event| {
            let flags = event.events as libc::c_int;
            Ready {
                token: event.u64,
                readable: flags & libc::EPOLLIN != 0,
                writable: flags & libc::EPOLLOUT != 0,
                broken: flags & (libc::EPOLLERR | libc::EPOLLHUP) != 0,
            }
        });
        Ok(ready.collect())
    }
}

/// `CLOCK_MONOTONIC`, in nanoseconds.
pub(super) fn now_ns() -> io::Result<u64> {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is valid for writing.
    check(unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) })?;
    Ok(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

fn family(ipv6: bool) -> libc::c_int {
    if ipv6 { libc::AF_INET6 } else { libc::AF_INET }
}

/// A non-blocking stream socket in the current network namespace.
pub(super) fn stream_socket(protocol: Protocol, ipv6: bool) -> io::Result<OwnedFd> {
    let protocol = match protocol {
        Protocol::Mptcp => libc::IPPROTO_MPTCP,
        Protocol::Tcp => libc::IPPROTO_TCP,
    };
    let kind = libc::SOCK_STREAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: takes no pointers.
    let fd = check(unsafe { libc::socket(family(ipv6), kind, protocol) })?;
    // SAFETY: a fresh descriptor that nobody else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// A non-blocking UDP socket.
pub(super) fn datagram_socket(ipv6: bool) -> io::Result<OwnedFd> {
    let kind = libc::SOCK_DGRAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: takes no pointers.
    let fd = check(unsafe { libc::socket(family(ipv6), kind, 0) })?;
    // SAFETY: a fresh descriptor that nobody else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Accepts a connection without blocking; `None` if none is waiting.
pub(super) fn accept(listener: BorrowedFd) -> io::Result<Option<OwnedFd>> {
    // SAFETY: null pointers mean that the peer's address is not wanted.
    let fd = check(unsafe {
        libc::accept4(
            listener.as_raw_fd(),
            std::ptr::null_mut(),
            std::ptr::null_mut(),
            libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC,
        )
    });
    match fd {
        // SAFETY: a fresh descriptor that nobody else owns.
        Ok(fd) => Ok(Some(unsafe { OwnedFd::from_raw_fd(fd) })),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether `error` means that the system has no room for another file.
pub(super) fn is_exhausted(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM)
    )
}

/// Sets an integer option of level `SOL_SOCKET`.
pub(super) fn set_socket_option(fd: BorrowedFd, name: libc::c_int, value: u32) -> io::Result<()> {
    let value = libc::c_int::try_from(value).unwrap_or(libc::c_int::MAX);
    set_option(fd, libc::SOL_SOCKET, name, value)
}

fn set_option(
    fd: BorrowedFd,
    level: libc::c_int,
    name: libc::c_int,
    value: libc::c_int,
) -> io::Result<()> {
    // SAFETY: `value` is an int, as these options take, and outlives the call.
    check(unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            level,
            name,
            (&raw const value).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    })?;
    Ok(())
}

/// Sets the DSCP of what a socket sends, as the upper bits of `octet`; TCP keeps the ECN bits.
pub(super) fn set_traffic_class(fd: BorrowedFd, ipv6: bool, octet: u8) -> io::Result<()> {
    let (level, name) = if ipv6 {
        (libc::IPPROTO_IPV6, libc::IPV6_TCLASS)
    } else {
        (libc::IPPROTO_IP, libc::IP_TOS)
    };
    set_option(fd, level, name, octet.into())
}

/// The kernel's `tcp_info` of a TCP socket, as bytes; newer kernels give more.
pub(super) fn tcp_info(fd: BorrowedFd, buffer: &mut [u8]) -> io::Result<usize> {
    socket_option(fd, libc::IPPROTO_TCP, libc::TCP_INFO, buffer)
}

/// The kernel's `mptcp_info` of an MPTCP socket, as bytes.
pub(super) fn mptcp_info(fd: BorrowedFd, buffer: &mut [u8]) -> io::Result<usize> {
    socket_option(fd, SOL_MPTCP, MPTCP_INFO, buffer)
}

/// The kernel's answer to `MPTCP_TCPINFO`; `buffer` starts with the request.
pub(super) fn mptcp_tcpinfo(fd: BorrowedFd, buffer: &mut [u8]) -> io::Result<usize> {
    socket_option(fd, SOL_MPTCP, MPTCP_TCPINFO, buffer)
}

/// The kernel's answer to `MPTCP_SUBFLOW_ADDRS`; `buffer` starts with the request.
pub(super) fn mptcp_subflow_addresses(fd: BorrowedFd, buffer: &mut [u8]) -> io::Result<usize> {
    socket_option(fd, SOL_MPTCP, MPTCP_SUBFLOW_ADDRS, buffer)
}

fn socket_option(
    fd: BorrowedFd,
    level: libc::c_int,
    name: libc::c_int,
    buffer: &mut [u8],
) -> io::Result<usize> {
    let mut length = buffer.len() as libc::socklen_t;
    // SAFETY: `buffer` is valid for reading and writing of `length` bytes.
    check(unsafe {
        libc::getsockopt(
            fd.as_raw_fd(),
            level,
            name,
            buffer.as_mut_ptr().cast(),
            &mut length,
        )
    })?;
    Ok(length as usize)
}

fn check(result: libc::c_int) -> io::Result<RawFd> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}
