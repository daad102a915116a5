// SPDX-License-Identifier: Apache-2.0

//! `sock_diag` (include/uapi/linux/inet_diag.h): the TCP sockets of a namespace, with the
//! kernel's counters of each.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddrV4};
use std::path::Path;

use netlink_bindings::inet_diag::{
    IterableReplyAttrs, Msg, ReplyAttrs, ReqV2, Request, TcpInfo, TcpState, UlpInfoAttrs,
};
use netlink_bindings::mptcp_pm::SubflowAttribute;
use netlink_sys::protocols::NETLINK_SOCK_DIAG;
use nix::libc::{AF_INET, AF_INET6, IPPROTO_TCP};
use weft_topology::ipv4_in;

use super::{Error, Socket};

/// `INET_DIAG_INFO`: the attribute number to request [`TcpInfo`] with.
const INFO: u8 = 2;

/// An open or connecting TCP socket. IPv6 ends are given by the IPv4 addresses they embed.
#[derive(Debug, Clone)]
pub struct TcpSocket {
    /// Local end.
    pub local: SocketAddrV4,
    /// Remote end.
    pub remote: SocketAddrV4,
    /// The result of getsockopt(TCP_INFO).
    pub info: TcpInfo,
    /// MPTCP's data about it, if it is a subflow.
    pub mptcp: Option<MptcpSubflow>,
}

/// MPTCP's data about a subflow (`MPTCP_SUBFLOW_ATTR_*`), as far as it is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MptcpSubflow {
    /// This host's token of the connection.
    pub token: u32,
    /// `MPTCP_SUBFLOW_FLAG_*`.
    pub flags: u32,
    /// MPTCP's ID of the local address.
    pub address_id: u8,
}

impl MptcpSubflow {
    /// `None` if an attribute is missing.
    fn read(attributes: &[u8]) -> Option<Self> {
        let attributes = SubflowAttribute::new(attributes);
        Some(Self {
            token: attributes.get_token_loc().ok()?,
            flags: attributes.get_flags().ok()?,
            address_id: attributes.get_id_loc().ok()?,
        })
    }
}

/// A `sock_diag` socket in one network namespace.
pub struct DiagSocket {
    socket: Socket,
}

impl DiagSocket {
    /// Opens a socket in the namespace at `netns`, or in the caller's own.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn open(netns: Option<&Path>) -> Result<Self, Error> {
        let socket = Socket::open(netns, NETLINK_SOCK_DIAG)?;
        Ok(Self { socket })
    }

    /// All TCP sockets that are open or connecting.
    ///
    /// # Errors
    /// The kernel's refusal, or a malformed answer.
    pub fn tcp_sockets(&mut self) -> Result<Vec<TcpSocket>, Error> {
        let state = |state: TcpState| 1 << state as u32;
        let mut found = Vec::new();
        for family in [AF_INET, AF_INET6] {
            let request = Request::new().op_tcp_diag_dump(&ReqV2 {
                family: family as u8,
                protocol: IPPROTO_TCP as u8,
                ext: 1 << (INFO - 1),
                states: state(TcpState::Established) | state(TcpState::SynSent),
                ..ReqV2::default()
            });
            self.socket.request(&request, |(header, attributes)| {
                found.push(tcp_socket(&header, attributes));
            })?;
        }
        // A socket without TCP_INFO was closing while the kernel listed it.
        found.into_iter().filter_map(Result::transpose).collect()
    }
}

fn tcp_socket(
    header: &Msg,
    attributes: IterableReplyAttrs<'_>,
) -> Result<Option<TcpSocket>, Error> {
    let [Some(local), Some(remote)] =
        [&header.sockid.src, &header.sockid.dst].map(|end| ipv4(header, end))
    else {
        return Ok(None);
    };
    let mut mptcp = None;
    let mut info = None;
    for attribute in attributes {
        match attribute? {
            ReplyAttrs::TcpInfo(found) => info = Some(found),
            ReplyAttrs::UlpInfo(members) => {
                for member in members {
                    if let UlpInfoAttrs::Mptcp(found) = member? {
                        mptcp = MptcpSubflow::read(found);
                    }
                }
            }
            _ => {}
        }
    }
    Ok(info.map(|info| TcpSocket {
        local: SocketAddrV4::new(local, header.sockid.sport()),
        remote: SocketAddrV4::new(remote, header.sockid.dport()),
        info,
        mptcp,
    }))
}

/// The IPv4 address that stands for a host; `None` for addresses of no host.
fn ipv4(header: &Msg, address: &[u8; 16]) -> Option<Ipv4Addr> {
    match i32::from(header.family) {
        AF_INET => address.first_chunk::<4>().copied().map(Ipv4Addr::from),
        AF_INET6 => ipv4_in(Ipv6Addr::from(*address)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, TcpListener, TcpStream};

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
        // In braces, because fields of the kernel's struct may be unaligned.
        assert_eq!({ end(&client).info.data_segs_out }, 1);
        assert_eq!({ end(&server).info.bytes_received }, 4);
    }
}
