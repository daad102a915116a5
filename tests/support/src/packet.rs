// SPDX-License-Identifier: Apache-2.0

//! Frames to send through a switch, and views of what comes out.

use std::net::Ipv4Addr;

/// The TCP flag FIN.
pub const FIN: u8 = 0x01;
/// The TCP flag SYN.
pub const SYN: u8 = 0x02;
/// The TCP flag ACK.
pub const ACK: u8 = 0x10;

/// The Ethernet address that hosts send to.
pub const GATEWAY_MAC: [u8; 6] = [2, 0, 0, 0xff, 0, 1];
/// The Ethernet address that frames come from.
pub const HOST_MAC: [u8; 6] = [2, 0, 0, 0, 1, 1];

const ETHERNET_BYTES: usize = 14;
const IPV4_BYTES: usize = 20;
const UDP_BYTES: usize = 8;

/// The address of a host for `path`, from 1.
#[must_use]
pub fn address(leaf: u8, host: u8, path: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, leaf, host, path)
}

/// A TCP segment with zeros as options and payload.
#[derive(Debug, Clone, Copy)]
pub struct Tcp {
    /// Source address.
    pub src: Ipv4Addr,
    /// Destination address.
    pub dst: Ipv4Addr,
    /// Source port.
    pub src_port: u16,
    /// Destination port.
    pub dst_port: u16,
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgement number.
    pub ack: u32,
    /// Flags, such as [`SYN`].
    pub flags: u8,
    /// Receive window, unscaled.
    pub window: u16,
    /// Length of the options, a multiple of four.
    pub option_bytes: usize,
    /// Length of the payload.
    pub payload_bytes: usize,
}

impl Tcp {
    /// An ACK of a subflow from `src` to `dst`. The methods below make its other segments.
    #[must_use]
    pub fn subflow(src: Ipv4Addr, dst: Ipv4Addr) -> Tcp {
        Tcp {
            src,
            dst,
            src_port: 40_000,
            dst_port: 5_001,
            seq: 0,
            ack: 0,
            flags: ACK,
            window: 500,
            option_bytes: 12,
            payload_bytes: 0,
        }
    }

    /// The SYN with this initial sequence number.
    #[must_use]
    pub fn syn(self, seq: u32) -> Tcp {
        Tcp {
            seq,
            flags: SYN,
            ..self
        }
    }

    /// A segment with data from `seq` on.
    #[must_use]
    pub fn data(self, seq: u32, payload_bytes: usize) -> Tcp {
        Tcp {
            seq,
            payload_bytes,
            ..self
        }
    }

    /// The receiver's ACK of everything before `ack`.
    #[must_use]
    pub fn ack_of(self, ack: u32) -> Tcp {
        Tcp {
            src: self.dst,
            dst: self.src,
            src_port: self.dst_port,
            dst_port: self.src_port,
            seq: 7,
            ack,
            flags: ACK,
            window: 500,
            option_bytes: 12,
            payload_bytes: 0,
        }
    }

    /// The IPv4 total length.
    #[must_use]
    pub fn total_bytes(&self) -> usize {
        IPV4_BYTES + 20 + self.option_bytes + self.payload_bytes
    }

    /// The segment in an Ethernet frame.
    #[must_use]
    pub fn frame(&self) -> Vec<u8> {
        let mut tcp = Vec::new();
        tcp.extend(self.src_port.to_be_bytes());
        tcp.extend(self.dst_port.to_be_bytes());
        tcp.extend(self.seq.to_be_bytes());
        tcp.extend(self.ack.to_be_bytes());
        let header_words = (20 + self.option_bytes) / 4;
        tcp.push((header_words << 4) as u8);
        tcp.push(self.flags);
        tcp.extend(self.window.to_be_bytes());
        tcp.resize(20 + self.option_bytes + self.payload_bytes, 0);
        ipv4_frame(self.src, self.dst, 6, 64, &tcp)
    }
}

/// An ICMP echo request.
#[must_use]
pub fn ping(src: Ipv4Addr, dst: Ipv4Addr) -> Vec<u8> {
    ping_with_ttl(src, dst, 64)
}

/// An ICMP echo request with this TTL.
#[must_use]
pub fn ping_with_ttl(src: Ipv4Addr, dst: Ipv4Addr, ttl: u8) -> Vec<u8> {
    ipv4_frame(src, dst, 1, ttl, &[8, 0, 0xf7, 0xff, 0, 0, 0, 0])
}

/// A UDP datagram without payload.
#[must_use]
pub fn udp(src: Ipv4Addr, dst: Ipv4Addr, src_port: u16) -> Vec<u8> {
    udp_with(src, dst, [src_port, 53], 0, &[])
}

/// A UDP datagram from and to these ports.
#[must_use]
pub fn udp_with(
    src: Ipv4Addr,
    dst: Ipv4Addr,
    ports: [u16; 2],
    checksum: u16,
    payload: &[u8],
) -> Vec<u8> {
    let length_bytes = (UDP_BYTES + payload.len()) as u16;
    let header = [ports[0], ports[1], length_bytes, checksum];
    let header = header.iter().flat_map(|word| word.to_be_bytes());
    let datagram: Vec<u8> = header.chain(payload.iter().copied()).collect();
    ipv4_frame(src, dst, 17, 64, &datagram)
}

/// A UDP datagram in a frame of `frame_bytes`, whose last byte is `tag`.
///
/// # Panics
/// If the headers do not fit.
#[must_use]
pub fn udp_of(src: Ipv4Addr, dst: Ipv4Addr, frame_bytes: usize, tag: u8) -> Vec<u8> {
    let headers_bytes = ETHERNET_BYTES + IPV4_BYTES + UDP_BYTES;
    let mut payload = vec![0; frame_bytes - headers_bytes];
    if let Some(last) = payload.last_mut() {
        *last = tag;
    }
    udp_with(src, dst, [0, 0], 0, &payload)
}

fn ipv4_frame(src: Ipv4Addr, dst: Ipv4Addr, protocol: u8, ttl: u8, payload: &[u8]) -> Vec<u8> {
    let mut ip = vec![0x45, 0];
    ip.extend(((IPV4_BYTES + payload.len()) as u16).to_be_bytes());
    ip.extend([0, 1, 0x40, 0, ttl, protocol, 0, 0]);
    ip.extend(src.octets());
    ip.extend(dst.octets());
    let checksum = internet_checksum(&ip);
    ip[10..12].copy_from_slice(&checksum.to_be_bytes());

    let mut frame = [GATEWAY_MAC, HOST_MAC].concat();
    frame.extend([0x08, 0x00]);
    frame.extend(ip);
    frame.extend(payload);
    frame
}

/// The IPv6 prefix of all hosts.
pub const IPV6_PREFIX: [u8; 12] = [0xfd, 0x57, 0x65, 0x66, 0x74, 0, 0, 0, 0, 0, 0, 0];

/// The same packet between the IPv6 addresses of the same hosts.
#[must_use]
pub fn over_ipv6(frame: &[u8]) -> Vec<u8> {
    let (ethernet, ip) = frame.split_at(ETHERNET_BYTES);
    let (ip, payload) = ip.split_at(IPV4_BYTES);
    let mut twin = ethernet[..12].to_vec();
    twin.extend([0x86, 0xdd, 0x60 | ip[1] >> 4, ip[1] << 4, 0, 0]);
    twin.extend((payload.len() as u16).to_be_bytes());
    twin.extend([ip[9], ip[8]]);
    for address in [&ip[12..16], &ip[16..20]] {
        twin.extend(IPV6_PREFIX);
        twin.extend(address);
    }
    twin.extend(payload);
    twin
}

/// Changes the IPv4 header of a frame, and then corrects its checksum.
pub fn edit_ipv4(frame: &mut [u8], edit: impl FnOnce(&mut [u8])) {
    let header = &mut frame[ETHERNET_BYTES..ETHERNET_BYTES + IPV4_BYTES];
    edit(header);
    header[10..12].fill(0);
    let checksum = internet_checksum(header);
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
}

/// The TTL of a frame with IPv4.
#[must_use]
pub fn ttl(frame: &[u8]) -> u8 {
    frame[ETHERNET_BYTES + 8]
}

/// Whether the checksum of the IPv4 header is right.
#[must_use]
pub fn checksum_is_right(frame: &[u8]) -> bool {
    internet_checksum(&frame[ETHERNET_BYTES..ETHERNET_BYTES + IPV4_BYTES]) == 0
}

/// The Internet checksum (RFC 1071).
#[must_use]
pub fn internet_checksum(bytes: &[u8]) -> u16 {
    let words = bytes
        .chunks(2)
        .map(|word| (word[0] as u32) << 8 | word[1] as u32);
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// CRC-32/ISO-HDLC, bit by bit: v1model's `HashAlgorithm.crc32`.
#[must_use]
pub fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ if crc & 1 == 1 { 0xedb8_8320 } else { 0 }
        })
    })
}

/// CRC-16/ARC, bit by bit: v1model's `HashAlgorithm.crc16`.
#[must_use]
pub fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| {
        (0..8).fold(crc ^ *byte as u16, |crc, _| {
            (crc >> 1) ^ if crc & 1 == 1 { 0xa001 } else { 0 }
        })
    })
}

/// The path, from 0, that a leaf chooses between two addresses: the sum of both path numbers
/// and of the crc16 of the two subnets, modulo `paths`.
#[must_use]
pub fn expected_path(src: Ipv4Addr, dst: Ipv4Addr, paths: u32) -> u8 {
    let (src, dst) = (src.octets(), dst.octets());
    let pair: Vec<u8> = (0..3).map(|byte| src[byte] ^ dst[byte]).collect();
    ((src[3] as u32 + dst[3] as u32 + crc16(&pair) as u32) % paths) as u8
}
