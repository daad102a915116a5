// SPDX-License-Identifier: Apache-2.0

//! The kernel's counters of a connection, summed over its subflows.

use std::io;
use std::os::fd::BorrowedFd;

use super::sys;
use crate::ideal_fabric::Protocol;

/// Bytes of `tcp_info` to request: up to and including `tcpi_total_rto` (Linux 6.7), padded
/// to 8.
const TCP_INFO_BYTES: usize = 248;
/// Offset of `tcpi_total_retrans` (u32).
const TOTAL_RETRANS: usize = 100;
/// Offset of `tcpi_total_rto` (u16).
const TOTAL_RTO: usize = 240;
/// Bytes of `mptcp_info` to request: up to and including `mptcpi_bytes_retrans` (Linux 6.5).
const MPTCP_INFO_BYTES: usize = 56;
/// Offset of `mptcpi_bytes_retrans` (u64).
const BYTES_RETRANS: usize = 48;
/// `struct mptcp_subflow_data`, which precedes the array.
const HEADER_BYTES: usize = 16;
/// More subflows than Linux allows for a connection.
const MAX_SUBFLOWS: usize = 16;

/// Counters of a connection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Subflows that exist now.
    pub subflows: u32,
    /// Packets retransmitted since the connection opened.
    pub retransmissions: u64,
    /// Retransmission timeouts since the connection opened; 0 on kernels before 6.7, which don't
    /// count them.
    pub timeouts: u64,
    /// Bytes that the connection reinjected on another subflow, because its own timer expired or a
    /// subflow went stale.
    pub reinjected_bytes: u64,
}

impl Counters {
    /// Reads the counters of the sending end of a connection.
    ///
    /// # Errors
    /// An error of the system call. An MPTCP socket that fell back to TCP is no error.
    pub(super) fn read(fd: BorrowedFd, protocol: Protocol) -> io::Result<Self> {
        match protocol {
            Protocol::Tcp => Self::read_tcp(fd),
            Protocol::Mptcp => match Self::read_mptcp(fd) {
                Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => Self::read_tcp(fd),
                other => other,
            },
        }
    }

    /// The difference to `earlier`. When a subflow closes, its counts disappear; that doesn't
    /// reduce the counts of the others.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            subflows: self.subflows,
            retransmissions: self.retransmissions.saturating_sub(earlier.retransmissions),
            timeouts: self.timeouts.saturating_sub(earlier.timeouts),
            reinjected_bytes: self
                .reinjected_bytes
                .saturating_sub(earlier.reinjected_bytes),
        }
    }

    fn read_tcp(fd: BorrowedFd) -> io::Result<Self> {
        let mut buffer = [0; TCP_INFO_BYTES];
        sys::tcp_info(fd, &mut buffer)?;
        Ok(Self::sum(std::iter::once(&buffer[..])))
    }

    fn read_mptcp(fd: BorrowedFd) -> io::Result<Self> {
        let mut buffer = [0; HEADER_BYTES + MAX_SUBFLOWS * TCP_INFO_BYTES];
        buffer[0..4].copy_from_slice(&(HEADER_BYTES as u32).to_ne_bytes());
        buffer[12..16].copy_from_slice(&(TCP_INFO_BYTES as u32).to_ne_bytes());
        sys::mptcp_tcpinfo(fd, &mut buffer)?;
        let subflows = (u32_at(&buffer, 4) as usize).min(MAX_SUBFLOWS);
        // Older kernels return shorter structures; the rest stays zero.
        let mut info = [0; MPTCP_INFO_BYTES];
        sys::mptcp_info(fd, &mut info)?;
        let infos = buffer[HEADER_BYTES..].chunks(TCP_INFO_BYTES).take(subflows);
        Ok(Self {
            reinjected_bytes: u64_at(&info, BYTES_RETRANS),
            ..Self::sum(infos)
        })
    }

    fn sum<'a>(infos: impl Iterator<Item = &'a [u8]>) -> Self {
        infos.fold(Self::default(), |sum, info| Self {
            subflows: sum.subflows + 1,
            retransmissions: sum.retransmissions + u64::from(u32_at(info, TOTAL_RETRANS)),
            timeouts: sum.timeouts
                + u64::from(u16::from_ne_bytes([info[TOTAL_RTO], info[TOTAL_RTO + 1]])),
            reinjected_bytes: 0,
        })
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(std::array::from_fn(|i| bytes[at + i]))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_ne_bytes(std::array::from_fn(|i| bytes[at + i]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_summed_over_subflows_and_differ_over_a_flow() {
        let mut infos = [[0u8; TCP_INFO_BYTES]; 2];
        for (info, retransmissions) in infos.iter_mut().zip([3u32, 4]) {
            info[TOTAL_RETRANS..TOTAL_RETRANS + 4].copy_from_slice(&retransmissions.to_ne_bytes());
            info[TOTAL_RTO..TOTAL_RTO + 2].copy_from_slice(&1u16.to_ne_bytes());
        }
        let now = Counters::sum(infos.iter().map(|info| &info[..]));
        assert_eq!(
            now,
            Counters {
                subflows: 2,
                retransmissions: 7,
                timeouts: 2,
                reinjected_bytes: 0,
            }
        );
        let before = Counters {
            subflows: 1,
            retransmissions: 5,
            timeouts: 3,
            reinjected_bytes: 0,
        };
        assert_eq!(
            now.since(before),
            Counters {
                subflows: 2,
                retransmissions: 2,
                timeouts: 0,
                reinjected_bytes: 0,
            }
        );
    }
}
