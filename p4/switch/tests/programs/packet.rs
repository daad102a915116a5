//! Frames to feed to a switch, and the views to look at what it makes of them.

use std::net::Ipv4Addr;

pub const FIN: u8 = 0x01;
pub const SYN: u8 = 0x02;
pub const ACK: u8 = 0x10;

/// What hosts address their frames to.
pub const GATEWAY_MAC: [u8; 6] = [2, 0, 0, 0xff, 0, 1];
pub const HOST_MAC: [u8; 6] = [2, 0, 0, 0, 1, 1];

const ETHERNET_BYTES: usize = 14;
const IPV4_BYTES: usize = 20;

/// Address `path` (from 1) of a host.
pub fn address(leaf: u8, host: u8, path: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, leaf, host, path)
}

/// A TCP segment with zeros as options and payload.
#[derive(Debug, Clone, Copy)]
pub struct Tcp {
    pub src: Ipv4Addr,
    pub dst: Ipv4Addr,
    pub src_port: u16,
    pub dst_port: u16,
    pub seq: u32,
    pub ack: u32,
    pub flags: u8,
    pub window: u16,
    pub option_bytes: usize,
    pub payload_bytes: usize,
}

impl Tcp {
    /// A subflow from `src` to `dst`; its segments are made from this by the methods below.
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
    pub fn syn(self, seq: u32) -> Tcp {
        Tcp {
            seq,
            flags: SYN,
            ..self
        }
    }

    /// Payload from `seq` on.
    pub fn data(self, seq: u32, payload_bytes: usize) -> Tcp {
        Tcp {
            seq,
            payload_bytes,
            ..self
        }
    }

    /// What the other end answers to acknowledge everything before `ack`.
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

    /// IPv4 total length.
    pub fn total_bytes(&self) -> usize {
        IPV4_BYTES + 20 + self.option_bytes + self.payload_bytes
    }

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
pub fn ping(src: Ipv4Addr, dst: Ipv4Addr) -> Vec<u8> {
    ping_with_ttl(src, dst, 64)
}

pub fn ping_with_ttl(src: Ipv4Addr, dst: Ipv4Addr, ttl: u8) -> Vec<u8> {
    ipv4_frame(src, dst, 1, ttl, &[8, 0, 0xf7, 0xff, 0, 0, 0, 0])
}

/// A UDP datagram without payload.
pub fn udp(src: Ipv4Addr, dst: Ipv4Addr, src_port: u16) -> Vec<u8> {
    udp_with(src, dst, [src_port, 53], 0, &[])
}

/// A UDP datagram from and to these ports.
pub fn udp_with(
    src: Ipv4Addr,
    dst: Ipv4Addr,
    ports: [u16; 2],
    checksum: u16,
    payload: &[u8],
) -> Vec<u8> {
    let length_bytes = 8 + payload.len() as u16;
    let header = [ports[0], ports[1], length_bytes, checksum];
    let header = header.iter().flat_map(|word| word.to_be_bytes());
    let datagram: Vec<u8> = header.chain(payload.iter().copied()).collect();
    ipv4_frame(src, dst, 17, 64, &datagram)
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

/// Changes the IPv4 header of a frame and sets its checksum right again.
pub fn edit_ipv4(frame: &mut [u8], edit: impl FnOnce(&mut [u8])) {
    let header = &mut frame[ETHERNET_BYTES..ETHERNET_BYTES + IPV4_BYTES];
    edit(header);
    header[10..12].fill(0);
    let checksum = internet_checksum(header);
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
}

pub fn ttl(frame: &[u8]) -> u8 {
    frame[ETHERNET_BYTES + 8]
}

/// Whether the checksum of the IPv4 header is right.
pub fn checksum_is_right(frame: &[u8]) -> bool {
    internet_checksum(&frame[ETHERNET_BYTES..ETHERNET_BYTES + IPV4_BYTES]) == 0
}

fn internet_checksum(bytes: &[u8]) -> u16 {
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
pub fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ if crc & 1 == 1 { 0xedb8_8320 } else { 0 }
        })
    })
}

/// CRC-16/ARC, bit by bit: v1model's `HashAlgorithm.crc16`.
pub fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| {
        (0..8).fold(crc ^ *byte as u16, |crc, _| {
            (crc >> 1) ^ if crc & 1 == 1 { 0xa001 } else { 0 }
        })
    })
}

/// The path (from 0) between two addresses, as the design says.
pub fn expected_path(src: Ipv4Addr, dst: Ipv4Addr, paths: u32) -> u8 {
    let (src, dst) = (src.octets(), dst.octets());
    let pair: Vec<u8> = (0..3).map(|byte| src[byte] ^ dst[byte]).collect();
    ((src[3] as u32 + dst[3] as u32 + crc16(&pair) as u32) % paths) as u8
}
