//! TCP segments in Ethernet frames.
//!
//! `etherparse` checks and takes apart the headers. The frame's end may be missing: lengths come
//! from the IP header.

use std::net::SocketAddrV4;

use etherparse::{EtherType, Ethernet2HeaderSlice, IpNumber, Ipv4HeaderSlice, TcpHeaderSlice};

/// A TCP segment, as far as its headers tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment<'a> {
    /// Who sent it.
    pub source: SocketAddrV4,
    /// Whom it is for.
    pub destination: SocketAddrV4,
    /// Sequence number.
    pub sequence: u32,
    /// Acknowledgment number, if there is one.
    pub acknowledgment: Option<u32>,
    /// Whether it opens a subflow.
    pub syn: bool,
    /// Bytes of data.
    pub payload_bytes: u32,
    /// TCP options, with their padding.
    pub options: &'a [u8],
}

/// What a frame carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content<'a> {
    /// A TCP segment.
    Tcp(Segment<'a>),
    /// Something well-formed that is none.
    Other,
    /// Headers that are cut off or contradict each other.
    Malformed,
}

/// Takes a frame apart.
#[must_use]
pub fn content(frame: &[u8]) -> Content<'_> {
    let Ok(ethernet) = Ethernet2HeaderSlice::from_slice(frame) else {
        return Content::Malformed;
    };
    if ethernet.ether_type() != EtherType::IPV4 {
        return Content::Other;
    }
    let packet = &frame[ethernet.slice().len()..];
    let Ok(ip) = Ipv4HeaderSlice::from_slice(packet) else {
        return Content::Malformed;
    };
    if ip.protocol() != IpNumber::TCP || ip.is_fragmenting_payload() {
        return Content::Other;
    }
    match segment(&ip, &packet[ip.slice().len()..]) {
        Some(segment) => Content::Tcp(segment),
        None => Content::Malformed,
    }
}

fn segment<'a>(ip: &Ipv4HeaderSlice<'_>, rest: &'a [u8]) -> Option<Segment<'a>> {
    let tcp = TcpHeaderSlice::from_slice(rest).ok()?;
    let header: &'a [u8] = tcp.slice();
    let payload_bytes = usize::from(ip.payload_len().ok()?).checked_sub(header.len())?;
    Some(Segment {
        source: SocketAddrV4::new(ip.source_addr(), tcp.source_port()),
        destination: SocketAddrV4::new(ip.destination_addr(), tcp.destination_port()),
        sequence: tcp.sequence_number(),
        acknowledgment: tcp.ack().then(|| tcp.acknowledgment_number()),
        syn: tcp.syn(),
        payload_bytes: u32::try_from(payload_bytes).ok()?,
        options: header.get(20..)?,
    })
}
