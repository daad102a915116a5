// SPDX-License-Identifier: Apache-2.0

//! Addresses of connection ends. They are IPv4 addresses everywhere; for IPv6 they are
//! converted here to what the kernel takes, and back.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4};

use nix::sys::socket::SockaddrStorage;
use weft_topology::{ipv4_in, ipv6_of};

/// The kernel's address of an end, for IPv6 or IPv4.
pub(super) fn sockaddr(end: SocketAddrV4, ipv6: bool) -> SockaddrStorage {
    let ip = if ipv6 {
        IpAddr::V6(ipv6_of(*end.ip()))
    } else {
        IpAddr::V4(*end.ip())
    };
    SocketAddr::new(ip, end.port()).into()
}

/// The end with the kernel's address; `None` if it isn't a host's.
pub(super) fn end(address: &SockaddrStorage) -> Option<SocketAddrV4> {
    if let Some(ipv4) = address.as_sockaddr_in() {
        return Some((*ipv4).into());
    }
    let ipv6 = address.as_sockaddr_in6()?;
    Some(SocketAddrV4::new(ipv4_in(ipv6.ip())?, ipv6.port()))
}

/// The same from the bytes of a `struct sockaddr_storage`.
pub(super) fn end_of_bytes(address: &[u8]) -> Option<SocketAddrV4> {
    let family = u16::from_ne_bytes([address[0], address[1]]);
    let port = u16::from_be_bytes([address[2], address[3]]);
    let ip = match i32::from(family) {
        libc::AF_INET => Ipv4Addr::from(*address[4..].first_chunk::<4>()?),
        // After the flow label.
        libc::AF_INET6 => ipv4_in((*address[8..].first_chunk::<16>()?).into())?,
        _ => return None,
    };
    Some(SocketAddrV4::new(ip, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_survives_the_kernels_form() {
        let host: SocketAddrV4 = "10.2.1.4:5201".parse().unwrap();
        for ipv6 in [false, true] {
            let address = sockaddr(host, ipv6);
            assert_eq!(address.as_sockaddr_in6().is_some(), ipv6);
            assert_eq!(end(&address), Some(host));
        }
    }

    #[test]
    fn bytes_of_an_ipv6_end_give_its_host() {
        let mut bytes = [0; 128];
        bytes[..2].copy_from_slice(&(libc::AF_INET6 as u16).to_ne_bytes());
        bytes[2..4].copy_from_slice(&5201_u16.to_be_bytes());
        bytes[8..24].copy_from_slice(&ipv6_of([10, 2, 1, 4].into()).octets());
        assert_eq!(end_of_bytes(&bytes), Some("10.2.1.4:5201".parse().unwrap()));
        bytes[8] = 0xfe;
        assert_eq!(end_of_bytes(&bytes), None);
    }
}
