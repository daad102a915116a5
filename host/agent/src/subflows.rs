//! The MPTCP subflows of a host, as `sock_diag` shows them.

use std::collections::BTreeMap;
use std::path::Path;

use crate::adaptive::Sample;
use crate::netlink::{DiagSocket, Error, TcpSocket};

/// `MPTCP_SUBFLOW_ATTR_*`.
const TOKEN_LOCAL: u16 = 2;
const FLAGS: u16 = 8;
const ID_LOCAL: u16 = 10;
/// `MPTCP_SUBFLOW_FLAG_*`: what was asked for, and what the peer agreed to.
const CAPABLE_REMOTE: u32 = 1 << 0;
const CAPABLE_LOCAL: u32 = 1 << 1;
const JOIN_REMOTE: u32 = 1 << 2;
const JOIN_LOCAL: u32 = 1 << 3;
/// `TCP_ESTABLISHED`.
const ESTABLISHED: u8 = 1;

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

    /// The open and opening subflows of all connections that this host has
    /// opened, by the connections' tokens.
    ///
    /// # Errors
    /// The kernel's refusal, or an answer that is not understood.
    pub fn by_connection(&mut self) -> Result<BTreeMap<u32, Vec<Sample>>, Error> {
        let mut found: BTreeMap<u32, Vec<Sample>> = BTreeMap::new();
        for (token, sample) in self.socket.tcp_sockets()?.iter().filter_map(subflow) {
            found.entry(token).or_default().push(sample);
        }
        Ok(found)
    }
}

/// The connection's token, and what was counted; `None` for what is no subflow
/// (any more), and for those of connections that the peer has opened.
fn subflow(socket: &TcpSocket) -> Option<(u32, Sample)> {
    let mptcp = socket.mptcp.as_ref()?;
    let flags = mptcp.u32(FLAGS)?;
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
        address_id: mptcp.u8(ID_LOCAL)?,
        established,
        rtt_ns: ns(info.rtt),
        // Not measured yet, the kernel says ~0.
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
    Some((mptcp.u32(TOKEN_LOCAL)?, sample))
}
