// SPDX-License-Identifier: Apache-2.0

//! Links that change while traffic runs, see [`weft_topology::Schedule`].

use std::collections::VecDeque;

use weft_topology::{Change, End, Nic, Target, Topology};

use super::port::Port;

/// The changes of a topology, and which of them are still to come.
#[derive(Debug, Default)]
pub(super) struct Schedule {
    /// Each change with what it affects, by time.
    pub changes: Vec<(Place, Change)>,
    /// Number of switches; hosts' NICs follow them.
    pub switches: usize,
    /// When each is due, and its index in `changes`.
    pub to_come: VecDeque<(u64, usize)>,
}

/// What a change affects. Switches are indices into the network's.
#[derive(Debug, Clone)]
pub(super) enum Place {
    Switch(usize),
    /// The ports at the link's ends: one, where the other end is a host without a NIC.
    Link(Vec<(usize, u16)>),
}

impl Place {
    fn of(topology: &Topology, target: &Target) -> Option<Self> {
        let switches = &topology.switches;
        let place = |name: &str| switches.iter().position(|switch| switch.name == name);
        let nic = |name: &str| {
            let mut nics = topology.hosts.iter().filter(|host| host.nic.is_some());
            let nic = nics.position(|host| host.name == name)?;
            Some((switches.len() + nic, Nic::NETWORK_PORT))
        };
        match target {
            Target::Switch(name) => place(name).map(Self::Switch),
            Target::Link(link) => {
                let link = topology.links.get(*link)?;
                let port = |end: &End| match place(&end.node) {
                    Some(switch) => Some((switch, end.port)),
                    None => nic(&end.node),
                };
                Some(Self::Link(
                    [&link.a, &link.b].into_iter().filter_map(port).collect(),
                ))
            }
        }
    }

    /// Whether the link of a switch's port changes.
    pub fn is_of(&self, switch: usize, port: &Port) -> bool {
        match self {
            Self::Switch(place) => *place == switch || port.leads_to(*place),
            Self::Link(ports) => ports.contains(&(switch, port.number)),
        }
    }
}

impl Schedule {
    pub fn of(topology: &Topology) -> Self {
        let changes = topology.schedule.iter().flat_map(|known| &known.changes);
        // The topology was checked: every change names what there is.
        let mut changes: Vec<_> = changes
            .filter_map(|change| Some((Place::of(topology, &change.target)?, change.clone())))
            .collect();
        changes.sort_by_key(|(_, change)| change.at_ns);
        Self {
            changes,
            switches: topology.switches.len(),
            to_come: VecDeque::new(),
        }
    }

    /// The shortest delay that the link of a switch's port ever has.
    pub fn least_delay_ns(&self, switch: usize, port: &Port) -> u64 {
        let of_port = self
            .changes
            .iter()
            .filter(|(place, _)| place.is_of(switch, port));
        let delays = of_port.filter_map(|(_, change)| change.delay_ns);
        delays.min().unwrap_or(u64::MAX)
    }

    /// When the next change comes.
    pub fn next_ns(&self) -> Option<u64> {
        self.to_come.front().map(|(at_ns, _)| *at_ns)
    }
}

#[cfg(test)]
mod tests {
    use weft_topology::Schedule;

    use super::super::Network;
    use super::super::tests::{
        BETWEEN, DELAY_NS, FULL_BYTES, FULL_NS, GBPS, frame, network_of, settle, stats, topology,
    };
    use super::*;

    const MS: u64 = 1_000_000;

    /// The network `h1_1 - spine1 - spine2 - h2_1` whose links change.
    fn changing(changes: Vec<Change>) -> Network {
        let mut topology = topology(GBPS, 100);
        topology.schedule = Some(Schedule {
            socket: "".into(),
            changes,
        });
        network_of(&topology)
    }

    fn change(at_ns: u64) -> Change {
        Change {
            at_ns,
            target: Target::Switch("spine2".into()),
            rate_bps: None,
            delay_ns: None,
            queue_packets: None,
            loss_ppm: None,
            up: None,
        }
    }

    /// When a full frame that h1_1 sends at `sent_ns` arrives.
    fn arrival_ns(network: &mut Network, sent_ns: u64) -> Option<u64> {
        network.receive(0, sent_ns, &frame(2, FULL_BYTES, 0));
        network.run(sent_ns + MS / 2);
        let mut deliveries = Vec::new();
        network.take_deliveries(&mut deliveries);
        deliveries.first().map(|delivery| delivery.at_ns - sent_ns)
    }

    const USUAL_NS: u64 = 3 * DELAY_NS + 2 * FULL_NS;

    #[test]
    fn links_change_when_traffic_has_run_for_so_long_and_not_before_it_starts() {
        let mut network = changing(vec![
            Change {
                rate_bps: Some(GBPS / 10),
                ..change(2 * MS)
            },
            Change {
                delay_ns: Some(5 * DELAY_NS),
                ..change(3 * MS)
            },
        ]);
        assert_eq!(arrival_ns(&mut network, 9 * MS), Some(USUAL_NS));
        network.start_schedule(10 * MS);
        assert_eq!(arrival_ns(&mut network, 11 * MS), Some(USUAL_NS));
        // The link to spine2; the one from there to the host stays.
        let slow_ns = USUAL_NS + 9 * FULL_NS;
        assert_eq!(arrival_ns(&mut network, 12 * MS), Some(slow_ns));
        let far_ns = slow_ns + 4 * DELAY_NS;
        assert_eq!(arrival_ns(&mut network, 13 * MS), Some(far_ns));
        // The next traffic finds the links as they were at first.
        network.start_schedule(20 * MS);
        assert_eq!(arrival_ns(&mut network, 20 * MS), Some(USUAL_NS));
    }

    #[test]
    fn a_delay_that_shrinks_lets_no_frame_overtake() {
        let mut network = changing(vec![
            Change {
                delay_ns: Some(MS),
                ..change(0)
            },
            Change {
                delay_ns: Some(0),
                ..change(MS / 2)
            },
        ]);
        network.start_schedule(0);
        network.receive(0, 0, &frame(2, FULL_BYTES, 1));
        network.receive(0, MS / 2, &frame(2, FULL_BYTES, 2));
        let tags: Vec<_> = settle(&mut network).iter().map(|(_, tag)| *tag).collect();
        assert_eq!(tags, [1, 2]);
    }

    #[test]
    fn a_switch_that_is_down_loses_what_arrives_and_what_waits_until_it_is_up() {
        let mut network = changing(vec![
            Change {
                up: Some(false),
                ..change(MS)
            },
            Change {
                up: Some(true),
                ..change(2 * MS)
            },
        ]);
        network.start_schedule(0);
        assert_eq!(arrival_ns(&mut network, 0), Some(USUAL_NS));
        assert_eq!(arrival_ns(&mut network, MS), None);
        assert_eq!(arrival_ns(&mut network, 2 * MS), Some(USUAL_NS));
        assert_eq!(stats(&mut network, 1, 2).lost_packets, 1);
    }

    #[test]
    fn a_link_that_is_down_or_loses_all_does_so_alone_and_both_ways() {
        for (link, lossy) in [(0, (0, 1)), (BETWEEN, (1, 2)), (2, (1, 1))] {
            let of_link = |at_ns| Change {
                target: Target::Link(link),
                ..change(at_ns)
            };
            let mut network = changing(vec![
                Change {
                    up: Some(false),
                    ..of_link(MS)
                },
                Change {
                    up: Some(true),
                    loss_ppm: Some(1_000_000),
                    ..of_link(2 * MS)
                },
                Change {
                    loss_ppm: Some(0),
                    ..of_link(3 * MS)
                },
            ]);
            network.start_schedule(0);
            let arrivals = [0, 1, 2, 3].map(|ms| arrival_ns(&mut network, ms * MS));
            assert_eq!(arrivals, [Some(USUAL_NS), None, None, Some(USUAL_NS)]);
            let (switch, port) = lossy;
            assert_eq!(
                stats(&mut network, switch, port).lost_packets,
                2,
                "link {link}"
            );
        }
    }

    #[test]
    fn a_link_of_its_own_rate_slows_nobody_else() {
        let slow = Change {
            target: Target::Link(BETWEEN),
            rate_bps: Some(GBPS / 10),
            delay_ns: Some(2 * DELAY_NS),
            ..change(0)
        };
        let mut network = changing(vec![slow]);
        network.start_schedule(0);
        let slow_ns = USUAL_NS + 9 * FULL_NS + DELAY_NS;
        assert_eq!(arrival_ns(&mut network, 0), Some(slow_ns));
    }

    #[test]
    fn a_change_between_two_calls_is_exact() {
        let slow = Change {
            rate_bps: Some(GBPS / 10),
            ..change(MS)
        };
        let mut network = changing(vec![slow]);
        network.start_schedule(0);
        // spine1 begins to send at 1 ms, and the link is slow from then on.
        network.receive(0, MS - DELAY_NS, &frame(2, FULL_BYTES, 0));
        // One nanosecond earlier it still has its old rate.
        let mut early = changing(vec![change(0)]);
        early.start_schedule(0);
        early.receive(0, MS - DELAY_NS - 1, &frame(2, FULL_BYTES, 0));
        assert_eq!(settle(&mut network)[0].0, MS + 11 * FULL_NS + 2 * DELAY_NS);
        assert_eq!(settle(&mut early)[0].0, MS - 1 + 2 * FULL_NS + 2 * DELAY_NS);
    }
}
