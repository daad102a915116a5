// SPDX-License-Identifier: Apache-2.0

//! The MPTCP subflows of a host, from `sock_diag`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use netlink_bindings::inet_diag::TcpState;

use crate::adaptive::Sample;
use crate::netlink::{DiagSocket, Error, TcpSocket};

/// `MPTCP_SUBFLOW_FLAG_*`: what this host requested, and what the peer agreed to.
const CAPABLE_REMOTE: u32 = 1 << 0;
const CAPABLE_LOCAL: u32 = 1 << 1;
const JOIN_REMOTE: u32 = 1 << 2;
const JOIN_LOCAL: u32 = 1 << 3;
const FULLY_ESTABLISHED: u32 = 1 << 6;
const ESTABLISHED: u8 = TcpState::Established as u8;

/// Reads the subflows of one namespace.
pub struct Subflows {
    socket: DiagSocket,
}

impl Subflows {
    /// Opens a socket in the namespace at `netns`.
    ///
    /// # Errors
    /// The namespace could not be entered.
    pub fn open(netns: &Path) -> Result<Self, Error> {
        let socket = DiagSocket::open(Some(netns))?;
        Ok(Self { socket })
    }

    /// The open and connecting subflows of all connections that this host has opened, by
    /// token.
    ///
    /// # Errors
    /// The kernel's refusal, or a malformed answer.
    pub fn by_connection(&mut self) -> Result<BTreeMap<u32, Vec<Sample>>, Error> {
        Ok(by_connection(&self.socket.tcp_sockets()?))
    }

    /// The same without connections for which the peer hasn't confirmed MPTCP yet. The kernel
    /// refuses more subflows for these until it sends an event
    /// ([`Event::Established`](crate::mptcp_pm::Event::Established)).
    ///
    /// # Errors
    /// As [`by_connection`](Self::by_connection).
    pub fn by_confirmed_connection(&mut self) -> Result<BTreeMap<u32, Vec<Sample>>, Error> {
        Ok(by_confirmed_connection(&self.socket.tcp_sockets()?))
    }
}

fn by_connection(sockets: &[TcpSocket]) -> BTreeMap<u32, Vec<Sample>> {
    let mut found: BTreeMap<u32, Vec<Sample>> = BTreeMap::new();
    for (token, sample) in sockets.iter().filter_map(subflow) {
        found.entry(token).or_default().push(sample);
    }
    found
}

fn by_confirmed_connection(sockets: &[TcpSocket]) -> BTreeMap<u32, Vec<Sample>> {
    let confirmed: BTreeSet<u32> = sockets.iter().filter_map(confirmed).collect();
    let mut found = by_connection(sockets);
    found.retain(|token, _| confirmed.contains(token));
    found
}

/// The token of the connection, if this subflow shows that the connection is confirmed. A
/// joining subflow shows it, even if the first subflow is gone.
fn confirmed(socket: &TcpSocket) -> Option<u32> {
    let mptcp = socket.mptcp.as_ref()?;
    let shows = mptcp.flags & (FULLY_ESTABLISHED | JOIN_LOCAL) != 0;
    shows.then_some(mptcp.token)
}

/// The connection's token, and the sample of the subflow. `None` for a socket that isn't, or is
/// no longer, a subflow, and for connections that the peer opened.
fn subflow(socket: &TcpSocket) -> Option<(u32, Sample)> {
    let mptcp = socket.mptcp.as_ref()?;
    let flags = mptcp.flags;
    if flags & (CAPABLE_LOCAL | JOIN_LOCAL) == 0 {
        return None;
    }
    let established = socket.info.state == ESTABLISHED;
    if established && flags & (CAPABLE_REMOTE | JOIN_REMOTE) == 0 {
        return None;
    }
    let info = &socket.info;
    let ns = |us: u32| u64::from(us) * 1_000;
    let sample = Sample {
        local: socket.local,
        remote: socket.remote,
        address_id: mptcp.address_id,
        established,
        rtt_ns: ns(info.rtt),
        // ~0 means that it has not been measured yet.
        rtt_min_ns: if info.min_rtt == u32::MAX {
            0
        } else {
            ns(info.min_rtt)
        },
        rto_ns: ns(info.rto),
        mss_bytes: info.snd_mss,
        acked_bytes: info.bytes_acked,
        sent_packets: info.data_segs_out.into(),
        retransmitted_packets: info.total_retrans.into(),
        busy_ns: info.busy_time.saturating_mul(1_000),
    };
    Some((mptcp.token, sample))
}

#[cfg(test)]
mod tests {
    use netlink_bindings::inet_diag::TcpInfo;

    use super::*;
    use crate::netlink::MptcpSubflow;

    const TOKEN: u32 = 7;
    const SYN_SENT: u8 = TcpState::SynSent as u8;

    fn socket(state: u8, flags: u32) -> TcpSocket {
        let mut info = TcpInfo::new();
        info.state = state;
        let mptcp = MptcpSubflow {
            token: TOKEN,
            flags,
            address_id: 0,
        };
        TcpSocket {
            local: "10.1.1.1:40000".parse().unwrap(),
            remote: "10.2.1.1:5000".parse().unwrap(),
            info,
            mptcp: Some(mptcp),
        }
    }

    #[test]
    fn a_connection_is_confirmed_by_its_first_subflow_or_by_one_that_joins() {
        let capable = CAPABLE_LOCAL | CAPABLE_REMOTE;
        for (subflows, all, of_confirmed) in [
            (vec![socket(SYN_SENT, CAPABLE_LOCAL)], 1, 0),
            (vec![socket(ESTABLISHED, capable)], 1, 0),
            (vec![socket(ESTABLISHED, capable | FULLY_ESTABLISHED)], 1, 1),
            (
                vec![
                    socket(ESTABLISHED, capable | FULLY_ESTABLISHED),
                    socket(SYN_SENT, JOIN_LOCAL),
                ],
                2,
                2,
            ),
            // The first is closed and another is connecting.
            (vec![socket(SYN_SENT, JOIN_LOCAL)], 1, 1),
        ] {
            let count = |found: BTreeMap<u32, Vec<Sample>>| found.get(&TOKEN).map_or(0, Vec::len);
            assert_eq!(count(by_connection(&subflows)), all, "{subflows:?}");
            let confirmed = by_confirmed_connection(&subflows);
            assert_eq!(count(confirmed), of_confirmed, "{subflows:?}");
        }
    }

    #[test]
    fn a_connection_that_the_peer_has_opened_is_left_to_it() {
        let accepted = socket(ESTABLISHED, CAPABLE_REMOTE | FULLY_ESTABLISHED);
        assert!(by_confirmed_connection(&[accepted]).is_empty());
    }
}
