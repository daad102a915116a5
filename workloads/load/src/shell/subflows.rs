// SPDX-License-Identifier: Apache-2.0

//! The kernel's state of each subflow of a connection: its RTT and its window.

use std::io;
use std::net::SocketAddrV4;
use std::os::fd::BorrowedFd;

use super::ends::end_of_bytes;
use super::sys;

/// `struct mptcp_subflow_data`, which precedes the arrays.
const HEADER_BYTES: usize = 16;
/// More subflows than Linux allows for a connection.
const MAX_SUBFLOWS: usize = 16;
/// Bytes of `tcp_info` to request: up to and including `tcpi_min_rtt`, padded to 8.
const TCP_INFO_BYTES: usize = 152;
/// Offsets of `tcpi_unacked`, `tcpi_sacked`, `tcpi_lost` and `tcpi_retrans` (u32, packets).
const UNACKED: usize = 24;
const SACKED: usize = 28;
const LOST: usize = 32;
const RETRANS: usize = 36;
/// Offset of `tcpi_snd_cwnd` (u32, packets).
const SND_CWND: usize = 80;
/// Offset of `tcpi_rtt` (u32, microseconds).
const RTT: usize = 68;
/// Offset of `tcpi_min_rtt` (u32, microseconds).
const MIN_RTT: usize = 148;
/// `struct mptcp_subflow_addrs`: two `sockaddr_storage`, the local one first.
const ADDRESSES_BYTES: usize = 256;

/// The state of a subflow at its sending end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SubflowState {
    /// The sender's end.
    pub source: SocketAddrV4,
    /// The receiver's end.
    pub destination: SocketAddrV4,
    /// Smoothed RTT (RFC 6298).
    pub srtt_ns: u64,
    /// Lowest RTT of the last minutes.
    pub min_rtt_ns: u64,
    /// Congestion window.
    pub cwnd_packets: u32,
    /// Packets in flight, as congestion control counts them.
    pub in_flight_packets: u32,
}

/// Reads the established subflows of an MPTCP connection.
///
/// # Errors
/// An error of a system call, also if the socket fell back to TCP.
pub(super) fn read(fd: BorrowedFd) -> io::Result<Vec<SubflowState>> {
    let mut infos = [0; HEADER_BYTES + MAX_SUBFLOWS * TCP_INFO_BYTES];
    ask(&mut infos, TCP_INFO_BYTES);
    sys::mptcp_tcpinfo(fd, &mut infos)?;
    let mut addresses = [0; HEADER_BYTES + MAX_SUBFLOWS * ADDRESSES_BYTES];
    ask(&mut addresses, ADDRESSES_BYTES);
    sys::mptcp_subflow_addresses(fd, &mut addresses)?;
    let count = (u32_at(&infos, 4) as usize).min(u32_at(&addresses, 4) as usize);
    let infos = infos[HEADER_BYTES..].chunks(TCP_INFO_BYTES);
    let addresses = addresses[HEADER_BYTES..].chunks(ADDRESSES_BYTES);
    Ok(infos
        .zip(addresses)
        .take(count)
        .filter_map(|(info, ends)| subflow(info, ends))
        .collect())
}

/// Writes the request: the sizes of the header and of one element.
fn ask(buffer: &mut [u8], element_bytes: usize) {
    buffer[0..4].copy_from_slice(&(HEADER_BYTES as u32).to_ne_bytes());
    buffer[12..16].copy_from_slice(&(element_bytes as u32).to_ne_bytes());
}

/// `None` for a subflow without an RTT, or if an end isn't a host.
fn subflow(info: &[u8], ends: &[u8]) -> Option<SubflowState> {
    let (local, remote) = ends.split_at(ADDRESSES_BYTES / 2);
    let rtt_us = u32_at(info, RTT);
    // `tcp_packets_in_flight` in include/net/tcp.h.
    let out = u32_at(info, UNACKED) + u32_at(info, RETRANS);
    let left = u32_at(info, SACKED) + u32_at(info, LOST);
    (rtt_us > 0).then_some(SubflowState {
        source: end_of_bytes(local)?,
        destination: end_of_bytes(remote)?,
        srtt_ns: u64::from(rtt_us) * 1_000,
        min_rtt_ns: u64::from(u32_at(info, MIN_RTT)) * 1_000,
        cwnd_packets: u32_at(info, SND_CWND),
        in_flight_packets: out.saturating_sub(left),
    })
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(std::array::from_fn(|i| bytes[at + i]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subflow_has_its_ends_rtt_and_window_and_one_without_rtt_is_none() {
        let mut info = [0; TCP_INFO_BYTES];
        let mut ends = [0; ADDRESSES_BYTES];
        for (at, end) in [(0, [1, 144, 10, 1, 1, 2]), (128, [19, 137, 10, 2, 1, 1])] {
            ends[at..at + 2].copy_from_slice(&(libc::AF_INET as u16).to_ne_bytes());
            ends[at + 2..at + 8].copy_from_slice(&end);
        }
        assert_eq!(subflow(&info, &ends), None);
        info[RTT..RTT + 4].copy_from_slice(&131_u32.to_ne_bytes());
        info[MIN_RTT..MIN_RTT + 4].copy_from_slice(&118_u32.to_ne_bytes());
        for (at, packets) in [(UNACKED, 20), (SACKED, 3), (LOST, 4), (RETRANS, 1)] {
            info[at..at + 4].copy_from_slice(&u32::to_ne_bytes(packets));
        }
        info[SND_CWND..SND_CWND + 4].copy_from_slice(&30_u32.to_ne_bytes());
        let expected = SubflowState {
            source: "10.1.1.2:400".parse().unwrap(),
            destination: "10.2.1.1:5001".parse().unwrap(),
            srtt_ns: 131_000,
            min_rtt_ns: 118_000,
            cwnd_packets: 30,
            in_flight_packets: 14,
        };
        assert_eq!(subflow(&info, &ends), Some(expected));
        ends[0] = 0xff;
        assert_eq!(subflow(&info, &ends), None);
    }
}
