// SPDX-License-Identifier: Apache-2.0

//! Decodes digests into samples.

use std::net::Ipv4Addr;

use weft_p4runtime::bytestring;
use weft_p4runtime::p4::v1::{DigestList, P4Data, p4_data};
use weft_topology::Role;

use super::program::{Error, Program};
use super::timestamps::TimestampUnit;
use crate::classes::CLASSES;
use crate::telemetry::{
    BusyPeriod, ClassSample, LossSample, QueueSample, RttSample, Sample, Waiting,
};

/// Digest of RTT samples, sent by leaves and SmartNICs.
pub const RTT_DIGEST: &str = "rtt_sample_t";

/// Digest of queue samples, sent by switches.
pub const QUEUE_DIGEST: &str = "queue_sample_t";

/// Digest of loss samples, sent by switches.
pub const LOSS_DIGEST: &str = "loss_sample_t";

/// Digest of what hosts send in each class, sent by leaves.
pub const CLASS_DIGEST: &str = "class_sample_t";

/// Digest of in-band telemetry, sent by leaves.
pub const INT_DIGEST: &str = "int_sample_t";

/// Members of a `queue_sample_t`: of the port, and depth and delay by priority.
const QUEUE_FIELDS: usize = 6 + 2 * CLASSES;

/// Its members for each hop.
const INT_HOPS: [[&str; 4]; 4] = [
    ["switch_0", "port_0", "depth_0", "delay_0"],
    ["switch_1", "port_1", "depth_1", "delay_1"],
    ["switch_2", "port_2", "depth_2", "delay_2"],
    ["switch_3", "port_3", "depth_3", "delay_3"],
];

/// A queue that a packet saw on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hop {
    /// P4Runtime device id of the switch.
    pub device_id: u64,
    /// The queue as the packet saw it.
    pub queue: QueueSample,
}

/// Member indices of an `int_sample_t`.
#[derive(Debug, Clone, Copy)]
struct IntFields {
    id: u32,
    hops: [[usize; 4]; INT_HOPS.len()],
    count_and_time: [usize; 2],
}

/// Decodes the digests of one program.
#[derive(Debug, Clone)]
pub struct Decoder {
    rtt: Option<(u32, [usize; 10])>,
    queue: Option<(u32, [usize; QUEUE_FIELDS])>,
    loss: Option<(u32, [usize; 4])>,
    classes: Option<(u32, [usize; 10])>,
    int: Option<IntFields>,
    unit_ns: u64,
    has_classes: bool,
}

impl Decoder {
    /// A decoder for the digests of `program`.
    ///
    /// # Errors
    /// If the program lacks a digest or a field of one.
    pub fn new(program: &Program, role: Role, unit: TimestampUnit) -> Result<Self, Error> {
        let rtt = match role {
            Role::Aggregation | Role::Spine | Role::Core => None,
            Role::Leaf | Role::Nic => {
                let fields = [
                    "src_addr",
                    "dst_addr",
                    "src_port",
                    "dst_port",
                    "path",
                    "length_bytes",
                    "rtt",
                    "smoothed",
                    "minimum",
                    "at",
                ];
                let fields = program.struct_fields(RTT_DIGEST, fields)?;
                Some((program.digest_id(RTT_DIGEST)?, fields))
            }
        };
        let queue = match role {
            Role::Nic => None,
            Role::Leaf | Role::Aggregation | Role::Spine | Role::Core => {
                let fields = [
                    "port",
                    "depth_packets",
                    "delay",
                    "at",
                    "busy_since",
                    "sent_bytes",
                    "depth_0",
                    "depth_1",
                    "depth_2",
                    "depth_3",
                    "depth_4",
                    "depth_5",
                    "depth_6",
                    "depth_7",
                    "delay_0",
                    "delay_1",
                    "delay_2",
                    "delay_3",
                    "delay_4",
                    "delay_5",
                    "delay_6",
                    "delay_7",
                ];
                let fields = program.struct_fields(QUEUE_DIGEST, fields)?;
                Some((program.digest_id(QUEUE_DIGEST)?, fields))
            }
        };
        let loss = match role {
            Role::Nic => None,
            Role::Leaf | Role::Aggregation | Role::Spine | Role::Core => {
                let fields = ["port", "blocks", "lost", "at"];
                let fields = program.struct_fields(LOSS_DIGEST, fields)?;
                Some((program.digest_id(LOSS_DIGEST)?, fields))
            }
        };
        let classes = match role {
            Role::Leaf => {
                let fields = [
                    "port", "at", "bytes_0", "bytes_1", "bytes_2", "bytes_3", "bytes_4", "bytes_5",
                    "bytes_6", "bytes_7",
                ];
                let fields = program.struct_fields(CLASS_DIGEST, fields)?;
                Some((program.digest_id(CLASS_DIGEST)?, fields))
            }
            Role::Aggregation | Role::Spine | Role::Core | Role::Nic => None,
        };
        Ok(Self {
            rtt,
            queue,
            loss,
            classes,
            int: match role {
                Role::Leaf => Some(IntFields::of(program)?),
                Role::Aggregation | Role::Spine | Role::Core | Role::Nic => None,
            },
            unit_ns: unit.ns(),
            has_classes: false,
        })
    }

    /// Whether priorities are those of classes; otherwise samples do not say what waits in each.
    #[must_use]
    pub fn with_classes(mut self, has_classes: bool) -> Self {
        self.has_classes = has_classes;
        self
    }

    /// The queues in `list` if it is in-band telemetry, packet by packet.
    #[must_use]
    pub fn hops(&self, list: &DigestList) -> Option<Vec<Hop>> {
        let fields = self.int.filter(|fields| fields.id == list.digest_id)?;
        let packets = list.data.iter();
        Some(
            packets
                .flat_map(|data| self.hops_of(&fields, data))
                .collect(),
        )
    }

    fn hops_of(&self, fields: &IntFields, data: &P4Data) -> Vec<Hop> {
        let Some([count, at]) = values(data, &fields.count_and_time) else {
            return Vec::new();
        };
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        let hop = |places| {
            let [device_id, port, depth, delay] = values(data, places)?;
            // As in queue samples: an empty queue has no delay.
            let delay = if depth == 0 { 0 } else { delay };
            Some(Hop {
                device_id,
                queue: QueueSample {
                    port: port.try_into().ok()?,
                    depth_packets: depth.try_into().ok()?,
                    delay_ns: delay.checked_mul(self.unit_ns)?,
                    at_ns: at.checked_mul(self.unit_ns)?,
                    busy_period: None,
                    classes: None,
                },
            })
        };
        fields.hops.iter().take(count).filter_map(hop).collect()
    }

    /// The samples in `list`, and the number of those that cannot be decoded.
    #[must_use]
    pub fn samples(&self, list: &DigestList) -> (Vec<Sample>, usize) {
        let samples: Vec<Sample> = list
            .data
            .iter()
            .filter_map(|data| self.sample(list.digest_id, data))
            .collect();
        let unread = list.data.len() - samples.len();
        (samples, unread)
    }

    fn sample(&self, digest_id: u32, data: &P4Data) -> Option<Sample> {
        match (&self.rtt, &self.queue, &self.loss) {
            (Some((id, fields)), _, _) if *id == digest_id => {
                let [
                    source,
                    destination,
                    source_port,
                    destination_port,
                    path,
                    length,
                    rtt,
                    smoothed,
                    minimum,
                    at,
                ] = values(data, fields)?;
                Some(Sample::Rtt(RttSample {
                    source: Ipv4Addr::from(u32::try_from(source).ok()?),
                    destination: Ipv4Addr::from(u32::try_from(destination).ok()?),
                    source_port: source_port.try_into().ok()?,
                    destination_port: destination_port.try_into().ok()?,
                    path: path.try_into().ok()?,
                    length_bytes: length.try_into().ok()?,
                    rtt_ns: rtt.checked_mul(self.unit_ns)?,
                    smoothed_ns: smoothed.checked_mul(self.unit_ns)?,
                    min_ns: minimum.checked_mul(self.unit_ns)?,
                    at_ns: at.checked_mul(self.unit_ns)?,
                }))
            }
            (_, Some((id, fields)), _) if *id == digest_id => {
                let [
                    port,
                    depth,
                    delay,
                    at,
                    busy_since,
                    sent_bytes,
                    by_priority @ ..,
                ] = values(data, fields)?;
                Some(Sample::Queue(QueueSample {
                    port: port.try_into().ok()?,
                    depth_packets: depth.try_into().ok()?,
                    delay_ns: delay.checked_mul(self.unit_ns)?,
                    at_ns: at.checked_mul(self.unit_ns)?,
                    busy_period: Some(BusyPeriod {
                        since_ns: busy_since.checked_mul(self.unit_ns)?,
                        sent_bytes: sent_bytes.try_into().ok()?,
                    }),
                    classes: if self.has_classes {
                        Some(self.classes_of(&by_priority)?)
                    } else {
                        None
                    },
                }))
            }
            (_, _, Some((id, fields))) if *id == digest_id => {
                let [port, blocks, lost, at] = values(data, fields)?;
                Some(Sample::Loss(LossSample {
                    port: port.try_into().ok()?,
                    blocks: blocks.try_into().ok()?,
                    lost: lost.try_into().ok()?,
                    at_ns: at.checked_mul(self.unit_ns)?,
                }))
            }
            _ => self.class_sample(digest_id, data),
        }
    }

    /// What waits in each class, from the depths by priority and the delays by priority.
    fn classes_of(&self, by_priority: &[u64; 2 * CLASSES]) -> Option<[Waiting; CLASSES]> {
        let mut classes = [Waiting::default(); CLASSES];
        let (depths, delays) = by_priority.split_at(CLASSES);
        // Class 0 has the greatest priority.
        for (class, (&depth, &delay)) in classes.iter_mut().rev().zip(depths.iter().zip(delays)) {
            *class = Waiting {
                depth_packets: depth.try_into().ok()?,
                delay_ns: delay.checked_mul(self.unit_ns)?,
            };
        }
        Some(classes)
    }

    fn class_sample(&self, digest_id: u32, data: &P4Data) -> Option<Sample> {
        let (id, fields) = self.classes.as_ref()?;
        if *id != digest_id {
            return None;
        }
        let [port, at, bytes @ ..] = values(data, fields)?;
        Some(Sample::Classes(ClassSample {
            port: port.try_into().ok()?,
            bytes,
            at_ns: at.checked_mul(self.unit_ns)?,
        }))
    }
}

impl IntFields {
    fn of(program: &Program) -> Result<Self, Error> {
        let mut hops = [[0; 4]; INT_HOPS.len()];
        for (places, names) in hops.iter_mut().zip(INT_HOPS) {
            *places = program.struct_fields(INT_DIGEST, names)?;
        }
        Ok(Self {
            id: program.digest_id(INT_DIGEST)?,
            hops,
            count_and_time: program.struct_fields(INT_DIGEST, ["hops", "at"])?,
        })
    }
}

/// The struct members with these indices, as numbers.
fn values<const N: usize>(data: &P4Data, places: &[usize; N]) -> Option<[u64; N]> {
    let Some(p4_data::Data::Struct(fields)) = &data.data else {
        return None;
    };
    let mut values = [0; N];
    for (value, &place) in values.iter_mut().zip(places) {
        let Some(p4_data::Data::Bitstring(bytes)) = &fields.members.get(place)?.data else {
            return None;
        };
        *value = u64::try_from(bytestring::decode(bytes, 64).ok()?).ok()?;
    }
    Some(values)
}

#[cfg(test)]
mod tests {
    use weft_p4runtime::p4::v1::P4StructLike;

    use super::*;
    use crate::testing::program;

    fn list(digest_id: u32, values: &[u128]) -> DigestList {
        let members = values
            .iter()
            .map(|&value| P4Data {
                data: Some(p4_data::Data::Bitstring(bytestring::encode(value))),
            })
            .collect();
        DigestList {
            digest_id,
            data: vec![P4Data {
                data: Some(p4_data::Data::Struct(P4StructLike { members })),
            }],
            ..DigestList::default()
        }
    }

    #[test]
    fn an_rtt_of_a_microsecond_clock_becomes_nanoseconds() {
        let leaf = program(Role::Leaf);
        let decoder = Decoder::new(&leaf, Role::Leaf, TimestampUnit::Microseconds).unwrap();
        let id = leaf.digest_id(RTT_DIGEST).unwrap();
        let subflow = [0x0a01_0102, 0x0a02_0301, 40_000, 5_001];
        let list = list(
            id,
            &[&subflow[..], &[1, 1400, 117, 121, 119, 5_000]].concat(),
        );
        let (samples, unread) = decoder.samples(&list);
        assert_eq!(unread, 0);
        assert_eq!(
            samples,
            [Sample::Rtt(RttSample {
                source: Ipv4Addr::new(10, 1, 1, 2),
                destination: Ipv4Addr::new(10, 2, 3, 1),
                source_port: 40_000,
                destination_port: 5_001,
                path: 1,
                length_bytes: 1400,
                rtt_ns: 117_000,
                smoothed_ns: 121_000,
                min_ns: 119_000,
                at_ns: 5_000_000,
            })]
        );
    }

    #[test]
    fn what_a_packet_met_is_a_queue_sample_of_every_hop() {
        let leaf = program(Role::Leaf);
        let decoder = Decoder::new(&leaf, Role::Leaf, TimestampUnit::Nanoseconds).unwrap();
        let id = leaf.digest_id(INT_DIGEST).unwrap();
        let spine = [101, 2, 17, 200_000];
        let source = [1, 6, 0, 300];
        let none = [0; 8];
        let at = 5_000_000;
        let met = list(id, &[&[2][..], &spine, &source, &none, &[at]].concat());
        let hop = |device_id, port, depth_packets, delay_ns| Hop {
            device_id,
            queue: QueueSample {
                port,
                depth_packets,
                delay_ns,
                at_ns: at as u64,
                busy_period: None,
                classes: None,
            },
        };
        let expected = vec![hop(101, 2, 17, 200_000), hop(1, 6, 0, 0)];
        assert_eq!(decoder.hops(&met), Some(expected));
        assert_eq!(decoder.hops(&list(id + 1, &[])), None);
        assert_eq!(decoder.hops(&list(id, &[7])), Some(vec![]));
    }

    #[test]
    fn a_queue_sample_has_what_the_link_has_sent_and_what_waits_by_class() {
        let leaf = program(Role::Leaf);
        let decoder = Decoder::new(&leaf, Role::Leaf, TimestampUnit::Microseconds).unwrap();
        let decoder = decoder.with_classes(true);
        let id = leaf.digest_id(QUEUE_DIGEST).unwrap();
        let port = [6, 17, 200, 5_000, 4_000, 125_000];
        // By priority, and so from the last class to the first.
        let depths = [12, 0, 0, 0, 0, 0, 3, 2];
        let delays = [900, 0, 0, 0, 0, 0, 20, 10];
        let (samples, _) = decoder.samples(&list(id, &[&port[..], &depths, &delays].concat()));
        let waiting = |depth_packets, delay_ns| Waiting {
            depth_packets,
            delay_ns,
        };
        let mut classes = [Waiting::default(); CLASSES];
        (classes[0], classes[1]) = (waiting(2, 10_000), waiting(3, 20_000));
        classes[7] = waiting(12, 900_000);
        let expected = QueueSample {
            port: 6,
            depth_packets: 17,
            delay_ns: 200_000,
            at_ns: 5_000_000,
            busy_period: Some(BusyPeriod {
                since_ns: 4_000_000,
                sent_bytes: 125_000,
            }),
            classes: Some(classes),
        };
        assert_eq!(samples, [Sample::Queue(expected)]);
    }

    #[test]
    fn a_loss_sample_has_the_counts_of_its_port() {
        let spine = program(Role::Spine);
        let decoder = Decoder::new(&spine, Role::Spine, TimestampUnit::Microseconds).unwrap();
        let id = spine.digest_id(LOSS_DIGEST).unwrap();
        let (samples, _) = decoder.samples(&list(id, &[2, 1_000, 17, 5]));
        let expected = LossSample {
            port: 2,
            blocks: 1_000,
            lost: 17,
            at_ns: 5_000,
        };
        assert_eq!(samples, [Sample::Loss(expected)]);
    }

    #[test]
    fn a_class_sample_has_the_bytes_of_every_class() {
        let leaf = program(Role::Leaf);
        let decoder = Decoder::new(&leaf, Role::Leaf, TimestampUnit::Microseconds).unwrap();
        let id = leaf.digest_id(CLASS_DIGEST).unwrap();
        let (samples, _) = decoder.samples(&list(id, &[3, 5, 10, 11, 12, 13, 14, 15, 16, 17]));
        let expected = ClassSample {
            port: 3,
            bytes: [10, 11, 12, 13, 14, 15, 16, 17],
            at_ns: 5_000,
        };
        assert_eq!(samples, [Sample::Classes(expected)]);
    }

    #[test]
    fn what_cannot_be_read_is_counted() {
        let spine = program(Role::Spine);
        let decoder = Decoder::new(&spine, Role::Spine, TimestampUnit::Nanoseconds).unwrap();
        let id = spine.digest_id(QUEUE_DIGEST).unwrap();
        let port = [2, 17, 200_000, 5_000_000, 4_000_000, 125_000];
        let good = list(id, &[&port[..], &[0; 2 * CLASSES]].concat());
        assert_eq!(decoder.samples(&good).0.len(), 1);
        for bad in [
            list(id, &[2, 17, 200_000]),
            list(id, &[70_000, 17, 200_000, 5_000_000]),
            list(id + 1, &[2, 17, 200_000, 5_000_000]),
        ] {
            assert_eq!(decoder.samples(&bad), (vec![], 1));
        }
    }
}
