// SPDX-License-Identifier: Apache-2.0

//! Probe frames: from a leaf over a path to the controller's address at another leaf.
//!
//! They are BFD Echo packets, whose payload is up to the sender (RFC 5881, section 4; UDP
//! port 3785). Each leaf has one probe address that no host has. The leaf's routing table
//! sends packets for it to the controller. The addresses next to it are the probes' sources,
//! one for each path, as with subflows.

use std::net::Ipv4Addr;

use crate::fabric::{LeafPair, RoutedFabric};
use crate::liveness::Probe;

/// UDP port of BFD Echo.
const PORT: u16 = 3785;

const ETHERNET_BYTES: usize = 14;
const IP_BYTES: usize = 20;
const UDP_BYTES: usize = 8;
/// Source leaf, destination leaf, path, padding, round.
const PAYLOAD_BYTES: usize = 12;
const FRAME_BYTES: usize = ETHERNET_BYTES + IP_BYTES + UDP_BYTES + PAYLOAD_BYTES;

/// TTL: more hops than any route has.
const HOPS: u8 = 8;
const UDP: u8 = 17;

/// A frame and where to send it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outgoing {
    /// The switch that sends it.
    pub switch: String,
    /// Its egress port.
    pub port: u16,
    /// The whole Ethernet frame.
    pub frame: Vec<u8>,
}

/// The probe address of `leaf`: in its hosts' /16, after the last host.
#[must_use]
pub fn address(fabric: &RoutedFabric, leaf: u8) -> Option<Ipv4Addr> {
    let host = fabric.hosts_of(leaf).next()?.addresses.first()?.octets();
    Some(Ipv4Addr::new(host[0], host[1], 255, 1))
}

/// The source address next to the probe address of `leaf` that makes switches select `path`.
fn source(fabric: &RoutedFabric, leaf: u8, destination: Ipv4Addr, path: u8) -> Option<Ipv4Addr> {
    let [first, second, third, _] = address(fabric, leaf)?.octets();
    (1..=fabric.paths())
        .map(|last| Ipv4Addr::new(first, second, third, last))
        .find(|&source| fabric.path_of(source, destination) == path)
}

/// The frame of `probe` as the first leaf is to send it; `None` if there is no such path.
#[must_use]
pub fn encode(fabric: &RoutedFabric, probe: Probe) -> Option<Outgoing> {
    let Probe { pair, path, round } = probe;
    let first = fabric.route(pair, path).next()?;
    let leaf = first.switch(fabric.topology());
    let port = first.port(fabric.topology()).number;
    let destination = address(fabric, pair.destination)?;
    let source = source(fabric, pair.source, destination, path)?;
    let mut frame = vec![2, 0, 0, 0xff, 0, pair.source, 2, 0, 0, 0xff, 0xff, 0, 8, 0];
    let length = (FRAME_BYTES - ETHERNET_BYTES) as u16;
    let mut ip = vec![0x45, 0];
    ip.extend(length.to_be_bytes());
    ip.extend([0, 0, 0x40, 0, HOPS, UDP, 0, 0]);
    ip.extend(source.octets());
    ip.extend(destination.octets());
    let sum = checksum(&ip);
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    frame.extend(ip);
    for word in [PORT, PORT, (UDP_BYTES + PAYLOAD_BYTES) as u16, 0] {
        frame.extend(word.to_be_bytes());
    }
    frame.extend([pair.source, pair.destination, path, 0]);
    frame.extend(round.to_be_bytes());
    Some(Outgoing {
        switch: leaf.name.clone(),
        port,
        frame,
    })
}

/// The probe in `frame`, if it is one.
#[must_use]
pub fn decode(frame: &[u8]) -> Option<Probe> {
    let frame = frame.get(..FRAME_BYTES)?;
    let ip = &frame[ETHERNET_BYTES..];
    let udp = &ip[IP_BYTES..];
    let is_probe =
        frame[12..14] == [8, 0] && ip[0] == 0x45 && ip[9] == UDP && udp[2..4] == PORT.to_be_bytes();
    let payload = &udp[UDP_BYTES..];
    let round = payload[4..].try_into().ok()?;
    is_probe.then_some(Probe {
        pair: LeafPair {
            source: payload[0],
            destination: payload[1],
        },
        path: payload[2],
        round: u64::from_be_bytes(round),
    })
}

/// The Internet checksum (RFC 1071).
fn checksum(header: &[u8]) -> u16 {
    let sum: u32 = header
        .chunks(2)
        .map(|pair| (u32::from(pair[0]) << 8) | pair.get(1).copied().map_or(0, u32::from))
        .sum();
    // At most ten words, so one carry is enough.
    !((sum & 0xffff) + (sum >> 16)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{fabric, fat_tree};

    const PROBE: Probe = Probe {
        pair: LeafPair {
            source: 1,
            destination: 2,
        },
        path: 1,
        round: 0x0102_0304_0506,
    };

    #[test]
    fn a_probe_survives_its_frame() {
        let outgoing = encode(&fabric(2, 2, 4), PROBE).unwrap();
        // Four hosts, then the uplinks.
        assert_eq!((&*outgoing.switch, outgoing.port), ("leaf1", 6));
        assert_eq!(decode(&outgoing.frame), Some(PROBE));
        // The checksum of a header with its checksum is zero.
        assert_eq!(checksum(&outgoing.frame[14..34]), 0);
    }

    #[test]
    fn switches_on_the_way_up_find_the_path_of_a_probe_in_its_addresses() {
        let fabric = RoutedFabric::new(fat_tree(6)).unwrap();
        for path in 0..8 {
            let frame = encode(&fabric, Probe { path, ..PROBE }).unwrap().frame;
            let address = |at: usize| Ipv4Addr::from([0, 1, 2, 3].map(|byte| frame[at + byte]));
            assert_eq!(fabric.path_of(address(26), address(30)), path);
        }
    }

    #[test]
    fn other_frames_are_no_probes() {
        let frame = encode(&fabric(2, 2, 4), PROBE).unwrap().frame;
        for length in 0..frame.len() {
            assert_eq!(decode(&frame[..length]), None);
        }
        for place in [12, 14, 23, 36] {
            let mut other = frame.clone();
            other[place] ^= 1;
            assert_eq!(decode(&other), None);
        }
        let nowhere = Probe { path: 9, ..PROBE };
        assert_eq!(encode(&fabric(2, 2, 4), nowhere), None);
    }
}
