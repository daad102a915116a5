//! `sock_diag` (include/uapi/linux/inet_diag.h): the TCP sockets of a
//! namespace, with what the kernel counts for each.

use std::net::{IpAddr, Ipv4Addr, SocketAddrV4};
use std::path::Path;

use netlink_packet_core::{NLM_F_DUMP, Nla as _};
use netlink_packet_sock_diag::constants::{AF_INET, AF_INET6, IPPROTO_TCP};
use netlink_packet_sock_diag::inet::nlas::{Nla, TcpInfo};
use netlink_packet_sock_diag::inet::{
    ExtensionFlags, InetRequest, InetResponse, SocketId, StateFlags,
};
use netlink_packet_sock_diag::message::SockDiagMessage;
use netlink_sys::protocols::NETLINK_SOCK_DIAG;
use weft_topology::ipv4_in;

use super::link::Link;
use super::{Attributes, Error};

/// `INET_DIAG_ULP_INFO` and, inside it, `INET_ULP_INFO_MPTCP`.
const ULP_INFO: u16 = 19;
const ULP_INFO_MPTCP: u16 = 3;
const NESTED: u16 = 1 << 15;

/// An open or opening TCP socket; its ends are called by their IPv4 addresses.
#[derive(Debug, Clone)]
pub struct TcpSocket {
    /// This end.
    pub local: SocketAddrV4,
    /// The other end.
    pub remote: SocketAddrV4,
    /// What getsockopt(TCP_INFO) gives.
    pub info: TcpInfo,
    /// What MPTCP says of it (`MPTCP_SUBFLOW_ATTR_*`), if it is a subflow.
    pub mptcp: Option<Attributes>,
}

/// A `sock_diag` socket in one network namespace.
pub struct DiagSocket {
    link: Link,
}

impl DiagSocket {
    /// Opens a socket in the namespace at `netns`, or in the caller's own.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn open(netns: Option<&Path>) -> Result<Self, Error> {
        let link = Link::open(netns, NETLINK_SOCK_DIAG)?;
        Ok(Self { link })
    }

    /// All TCP sockets that are open or begin to connect.
    ///
    /// # Errors
    /// The kernel's refusal, or an answer that is not understood.
    pub fn tcp_sockets(&mut self) -> Result<Vec<TcpSocket>, Error> {
        let mut found = Vec::new();
        for (family, socket_id) in [
            (AF_INET, SocketId::new_v4()),
            (AF_INET6, SocketId::new_v6()),
        ] {
            let request = SockDiagMessage::InetRequest(InetRequest {
                family,
                protocol: IPPROTO_TCP,
                extensions: ExtensionFlags::INFO,
                states: StateFlags::ESTABLISHED | StateFlags::SYN_SENT,
                socket_id,
            });
            self.link.request(request, NLM_F_DUMP, |answer| {
                if let SockDiagMessage::InetResponse(answer) = answer {
                    found.push(socket(&answer));
                }
            })?;
        }
        // One without TCP_INFO was closing while the kernel looked at it.
        found.into_iter().filter_map(Result::transpose).collect()
    }
}

fn socket(answer: &InetResponse) -> Result<Option<TcpSocket>, Error> {
    let id = &answer.header.socket_id;
    let [Some(local), Some(remote)] = [id.source_address, id.destination_address].map(ipv4) else {
        return Ok(None);
    };
    let mut mptcp = None;
    let mut info = None;
    for attribute in &answer.nlas {
        match attribute {
            Nla::TcpInfo(found) => info = Some(found.clone()),
            Nla::Other(other) if other.kind() & !NESTED == ULP_INFO => {
                let mut value = vec![0; other.value_len()];
                other.emit_value(&mut value);
                if let Some(found) = Attributes::parse(&value)?.bytes(ULP_INFO_MPTCP) {
                    mptcp = Some(Attributes::parse(found)?);
                }
            }
            _ => {}
        }
    }
    Ok(info.map(|info| TcpSocket {
        local: SocketAddrV4::new(local, id.source_port),
        remote: SocketAddrV4::new(remote, id.destination_port),
        info,
        mptcp,
    }))
}

/// What a host is called; `None` for addresses that are not of hosts.
fn ipv4(address: IpAddr) -> Option<Ipv4Addr> {
    match address {
        IpAddr::V4(address) => Some(address),
        IpAddr::V6(address) => ipv4_in(address),
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn both_ends_of_a_connection_are_found_with_their_counters() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let server = listener.accept().unwrap().0;
        std::io::Write::write_all(&mut &client, b"data").unwrap();
        let mut read = [0; 4];
        std::io::Read::read_exact(&mut &server, &mut read).unwrap();

        let sockets = DiagSocket::open(None).unwrap().tcp_sockets().unwrap();
        let end = |stream: &TcpStream| {
            let local = stream.local_addr().unwrap();
            let found = sockets.iter().find(|found| {
                IpAddr::V4(*found.local.ip()) == local.ip() && found.local.port() == local.port()
            });
            found.unwrap().clone()
        };
        assert_eq!(end(&client).remote, end(&server).local);
        assert_eq!(end(&client).info.data_segs_out, 1);
        assert_eq!(end(&server).info.bytes_received, 4);
    }
}
