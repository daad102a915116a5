// SPDX-License-Identifier: Apache-2.0

//! TCP segments in Ethernet frames.
//!
//! `etherparse` parses and checks the headers. A frame may be truncated, so lengths come from the
//! IP header.

use std::net::{Ipv4Addr, SocketAddrV4};

use etherparse::{
    EtherType, Ethernet2HeaderSlice, IpNumber, Ipv4HeaderSlice, Ipv6HeaderSlice, TcpHeaderSlice,
};
use weft_topology::ipv4_in;

/// The headers of a TCP segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment<'a> {
    /// Sender. IPv6 ends are given by the IPv4 addresses that they embed.
    pub source: SocketAddrV4,
    /// Receiver.
    pub destination: SocketAddrV4,
    /// Sequence number.
    pub sequence: u32,
    /// Acknowledgment number, if any.
    pub acknowledgment: Option<u32>,
    /// Whether SYN is set.
    pub syn: bool,
    /// Bytes of data.
    pub payload_bytes: u32,
    /// TCP options, including padding.
    pub options: &'a [u8],
}

/// The content of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content<'a> {
    /// A TCP segment.
    Tcp(Segment<'a>),
    /// Well-formed, but not TCP.
    Other,
    /// Truncated or inconsistent headers.
    Malformed,
}

/// Parses a frame.
#[must_use]
pub fn content(frame: &[u8]) -> Content<'_> {
    let Ok(ethernet) = Ethernet2HeaderSlice::from_slice(frame) else {
        return Content::Malformed;
    };
    let packet = &frame[ethernet.slice().len()..];
    let ip = match ethernet.ether_type() {
        EtherType::IPV4 => over_ipv4(packet),
        EtherType::IPV6 => over_ipv6(packet),
        _ => return Content::Other,
    };
    match ip {
        Some(Some(ip)) => segment(&ip).map_or(Content::Malformed, Content::Tcp),
        Some(None) => Content::Other,
        None => Content::Malformed,
    }
}

/// An IP packet that carries TCP.
struct Ip<'a> {
    source: Ipv4Addr,
    destination: Ipv4Addr,
    /// Payload length according to the header.
    payload_bytes: usize,
    /// The captured part of the payload.
    payload: &'a [u8],
}

/// `None` for a malformed header, `Some(None)` for a packet without TCP.
fn over_ipv4(packet: &[u8]) -> Option<Option<Ip<'_>>> {
    let ip = Ipv4HeaderSlice::from_slice(packet).ok()?;
    if ip.protocol() != IpNumber::TCP || ip.is_fragmenting_payload() {
        return Some(None);
    }
    Some(Some(Ip {
        source: ip.source_addr(),
        destination: ip.destination_addr(),
        payload_bytes: usize::from(ip.payload_len().ok()?),
        payload: &packet[ip.slice().len()..],
    }))
}

/// The same for IPv6. Packets that aren't between hosts count as other traffic.
fn over_ipv6(packet: &[u8]) -> Option<Option<Ip<'_>>> {
    let ip = Ipv6HeaderSlice::from_slice(packet).ok()?;
    let ends = [ip.source_addr(), ip.destination_addr()].map(ipv4_in);
    let ([Some(source), Some(destination)], IpNumber::TCP) = (ends, ip.next_header()) else {
        return Some(None);
    };
    Some(Some(Ip {
        source,
        destination,
        payload_bytes: usize::from(ip.payload_length()),
        payload: &packet[ip.slice().len()..],
    }))
}

fn segment<'a>(ip: &Ip<'a>) -> Option<Segment<'a>> {
    let tcp = TcpHeaderSlice::from_slice(ip.payload).ok()?;
    let header: &'a [u8] = tcp.slice();
    let payload_bytes = ip.payload_bytes.checked_sub(header.len())?;
    Some(Segment {
        source: SocketAddrV4::new(ip.source, tcp.source_port()),
        destination: SocketAddrV4::new(ip.destination, tcp.destination_port()),
        sequence: tcp.sequence_number(),
        acknowledgment: tcp.ack().then(|| tcp.acknowledgment_number()),
        syn: tcp.syn(),
        payload_bytes: u32::try_from(payload_bytes).ok()?,
        options: header.get(20..)?,
    })
}

#[cfg(test)]
mod tests {
    use etherparse::PacketBuilder;
    use weft_topology::ipv6_of;

    use super::*;

    const ENDS: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 1, 1, 1), Ipv4Addr::new(10, 2, 1, 1)];

    fn over_ipv6(source: [u8; 16]) -> Vec<u8> {
        let builder = PacketBuilder::ethernet2([2; 6], [4; 6])
            .ipv6(source, ipv6_of(ENDS[1]).octets(), 64)
            .tcp(40_000, 5201, 7, 1_000)
            .ack(9);
        let mut frame = Vec::new();
        builder.write(&mut frame, &[0; 100]).unwrap();
        frame
    }

    #[test]
    fn a_segment_over_ipv6_is_told_as_one_over_ipv4() {
        let mut over_ipv4 = Vec::new();
        PacketBuilder::ethernet2([2; 6], [4; 6])
            .ipv4(ENDS[0].octets(), ENDS[1].octets(), 64)
            .tcp(40_000, 5201, 7, 1_000)
            .ack(9)
            .write(&mut over_ipv4, &[0; 100])
            .unwrap();
        let Content::Tcp(segment) = content(&over_ipv4) else {
            panic!("no segment");
        };
        assert_eq!(segment.payload_bytes, 100);
        let twin = over_ipv6(ipv6_of(ENDS[0]).octets());
        assert_eq!(content(&twin), Content::Tcp(segment));
        // The capture has only a part of the payload.
        assert_eq!(content(&twin[..80]), Content::Tcp(segment));
        assert_eq!(content(&twin[..60]), Content::Malformed);
    }

    #[test]
    fn ipv6_of_others_is_something_else() {
        assert_eq!(content(&over_ipv6([0xfe; 16])), Content::Other);
    }
}
