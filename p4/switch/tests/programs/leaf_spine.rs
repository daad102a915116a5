// SPDX-License-Identifier: Apache-2.0

//! Leaves and spines together, joined by hand.

use std::collections::BTreeMap;
use weft_testing::packet::{Tcp, address, checksum_is_right, ping, ttl};

use crate::bench::{Bench, HOSTS, LEAVES, PATHS, mac_of, uplink};

/// All switches. Each hop takes `HOP`.
struct LeafSpine {
    leaves: BTreeMap<u16, Bench>,
    spines: BTreeMap<u16, Bench>,
}

const HOP: u64 = 10_000;

/// A frame that arrives at a host: leaf, host, time, frame.
type Delivery = (u16, u16, u64, Vec<u8>);

impl LeafSpine {
    fn new() -> LeafSpine {
        LeafSpine {
            leaves: (1..=LEAVES).map(|leaf| (leaf, Bench::leaf(leaf))).collect(),
            spines: (1..=PATHS).map(|spine| (spine, Bench::spine())).collect(),
        }
    }

    /// Carries a frame from a host to its destination.
    fn carry(&mut self, leaf: u16, host: u16, frame: &[u8], mut now: u64) -> Option<Delivery> {
        let mut hop = |switch: &mut Bench, port: u16, frame: &[u8]| {
            now += HOP;
            switch.send(port, frame, now).sent.map(|sent| (sent, now))
        };
        let ((port, frame), now) = hop(self.leaves.get_mut(&leaf)?, host, frame)?;
        if port <= HOSTS {
            return Some((leaf, port, now, frame));
        }
        let spine = port - HOSTS;
        let ((leaf, frame), _) = hop(self.spines.get_mut(&spine)?, leaf, &frame)?;
        let from_spine = uplink((spine - 1) as u8);
        let ((port, frame), now) = hop(self.leaves.get_mut(&leaf)?, from_spine, &frame)?;
        Some((leaf, port, now, frame))
    }
}

#[test]
fn ping_reaches_every_host_from_every_host() {
    let mut topology = LeafSpine::new();
    let hosts = || (1..=LEAVES).flat_map(|leaf| (1..=HOSTS).map(move |host| (leaf, host)));
    for (src_leaf, src_host) in hosts() {
        for (dst_leaf, dst_host) in hosts().filter(|dst| *dst != (src_leaf, src_host)) {
            for path in 1..=PATHS as u8 {
                let src = address(src_leaf as u8, src_host as u8, path);
                let dst = address(dst_leaf as u8, dst_host as u8, 1);
                let request = ping(src, dst);
                let (leaf, host, _, frame) =
                    topology.carry(src_leaf, src_host, &request, 0).unwrap();
                assert_eq!((leaf, host), (dst_leaf, dst_host), "{src} to {dst}");
                assert_eq!(frame[0..6], mac_of(leaf, host));
                assert_eq!(frame[34..], request[34..]);
                assert!(checksum_is_right(&frame));
                assert_eq!(ttl(&frame), if src_leaf == dst_leaf { 63 } else { 61 });
            }
        }
    }
}

#[test]
fn the_rtt_of_a_segment_is_the_time_through_the_network_and_back() {
    let mut topology = LeafSpine::new();
    let flow = Tcp::subflow(address(1, 1, 2), address(2, 1, 1));
    let (leaf, host, arrived, _) = topology.carry(1, 1, &flow.syn(0).frame(), 0).unwrap();
    let ack = flow.ack_of(1).frame();
    let port = topology
        .leaves
        .get_mut(&leaf)
        .unwrap()
        .send(host, &ack, arrived + HOP);
    let spine = port.port().unwrap() - HOSTS;
    let back = topology
        .spines
        .get_mut(&spine)
        .unwrap()
        .send(leaf, &ack, arrived + 2 * HOP);
    assert_eq!(back.port(), Some(1));
    let near = topology.leaves.get_mut(&1).unwrap();
    let samples = near
        .send(uplink((spine - 1) as u8), &ack, arrived + 3 * HOP)
        .rtt;
    // Stored after the first hop, matched after the third on the way back.
    assert_eq!(samples[0].rtt, 5 * HOP);
    assert_eq!(uplink(samples[0].path), uplink((spine - 1) as u8));
}
