//! What the kernel takes for the RTT of each subflow of a connection.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::BorrowedFd;

use super::sys;

/// `struct mptcp_subflow_data`, in front of the arrays.
const HEADER_BYTES: usize = 16;
/// Subflows that Linux allows for a connection, and a few more.
const MAX_SUBFLOWS: usize = 16;
/// Bytes of `tcp_info` that are asked for: up to and with `tcpi_min_rtt`, padded to 8.
const TCP_INFO_BYTES: usize = 152;
/// Where `tcpi_rtt` (u32, microseconds) stands.
const RTT: usize = 68;
/// Where `tcpi_min_rtt` (u32, microseconds) stands.
const MIN_RTT: usize = 148;
/// `struct mptcp_subflow_addrs`: two `sockaddr_storage`, the local one first.
const ADDRESSES_BYTES: usize = 256;

/// A subflow and its RTT, at the end that sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SubflowRtt {
    /// The sender's end.
    pub source: SocketAddrV4,
    /// The receiver's end.
    pub destination: SocketAddrV4,
    /// Smoothed RTT (RFC 6298).
    pub srtt_ns: u64,
    /// Lowest RTT of the last minutes.
    pub min_rtt_ns: u64,
}

/// Reads the subflows of an MPTCP connection that are established.
///
/// # Errors
/// Of the system calls, also when the socket fell back to TCP.
pub(super) fn read(fd: BorrowedFd) -> io::Result<Vec<SubflowRtt>> {
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

/// `None` for a subflow without RTT, or that is not IPv4.
fn subflow(info: &[u8], ends: &[u8]) -> Option<SubflowRtt> {
    let (local, remote) = ends.split_at(ADDRESSES_BYTES / 2);
    let rtt_us = u32_at(info, RTT);
    (rtt_us > 0).then_some(SubflowRtt {
        source: ipv4(local)?,
        destination: ipv4(remote)?,
        srtt_ns: u64::from(rtt_us) * 1_000,
        min_rtt_ns: u64::from(u32_at(info, MIN_RTT)) * 1_000,
    })
}

/// A `sockaddr_in`.
fn ipv4(address: &[u8]) -> Option<SocketAddrV4> {
    let family = u16::from_ne_bytes([address[0], address[1]]);
    let port = u16::from_be_bytes([address[2], address[3]]);
    let ip = Ipv4Addr::new(address[4], address[5], address[6], address[7]);
    (i32::from(family) == libc::AF_INET).then_some(SocketAddrV4::new(ip, port))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(std::array::from_fn(|i| bytes[at + i]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subflow_has_its_ends_and_its_rtt_and_one_without_rtt_is_none() {
        let mut info = [0; TCP_INFO_BYTES];
        let mut ends = [0; ADDRESSES_BYTES];
        for (at, end) in [(0, [1, 144, 10, 1, 1, 2]), (128, [19, 137, 10, 2, 1, 1])] {
            ends[at..at + 2].copy_from_slice(&(libc::AF_INET as u16).to_ne_bytes());
            ends[at + 2..at + 8].copy_from_slice(&end);
        }
        assert_eq!(subflow(&info, &ends), None);
        info[RTT..RTT + 4].copy_from_slice(&131_u32.to_ne_bytes());
        info[MIN_RTT..MIN_RTT + 4].copy_from_slice(&118_u32.to_ne_bytes());
        let expected = SubflowRtt {
            source: "10.1.1.2:400".parse().unwrap(),
            destination: "10.2.1.1:5001".parse().unwrap(),
            srtt_ns: 131_000,
            min_rtt_ns: 118_000,
        };
        assert_eq!(subflow(&info, &ends), Some(expected));
        ends[0] = 0xff;
        assert_eq!(subflow(&info, &ends), None);
    }
}
