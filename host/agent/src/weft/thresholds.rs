// SPDX-License-Identifier: Apache-2.0

//! The thresholds between classes (`host/kernel/thresholds.c`).

use serde::Serialize;

use super::Message;
use super::spec::message;
use crate::netlink::Writer;

/// Thresholds between classes as the kernel holds them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Thresholds {
    /// The controller's version.
    pub version: u64,
    /// How long they hold after they are set.
    pub time_to_live_ns: u64,
    /// Time since they were set; only in the kernel's answer.
    pub age_ns: u64,
    /// The most bytes left to send with which a packet is in class 1, 2, ...; rising.
    pub most_bytes: Vec<u64>,
}

impl Thresholds {
    pub(super) fn encode(&self, request: &mut Writer<'_, message::Set>) {
        request
            .put(message::VERSION, self.version)
            .put(message::TTL_NS, self.time_to_live_ns)
            .nest(message::THRESHOLDS, |thresholds| {
                for &most_bytes in &self.most_bytes {
                    thresholds.put(message::THRESHOLD, most_bytes);
                }
            });
    }

    pub(super) fn decode(answer: &Message<'_>) -> Option<Self> {
        let thresholds = answer.get(message::THRESHOLDS)?;
        Some(Self {
            version: answer.get(message::VERSION)?,
            time_to_live_ns: answer.get(message::TTL_NS)?,
            age_ns: answer.get(message::AGE_NS)?,
            most_bytes: thresholds.all(message::THRESHOLD).collect::<Option<_>>()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use netlink_bindings::traits::NetlinkRequest as _;

    use super::super::Request;
    use super::super::spec::Command;
    use super::*;

    #[test]
    fn thresholds_survive_the_way_into_attributes_and_back() {
        let thresholds = Thresholds {
            version: 7,
            time_to_live_ns: 200_000_000,
            age_ns: 5,
            most_bytes: vec![15_000, 5_000_000_000],
        };
        let mut request = Request::new(Command::ThresholdsGet);
        let mut attributes = request.attributes();
        thresholds.encode(&mut attributes);
        attributes.put(message::AGE_NS, 5);
        let answer = Request::decode_reply(&request.payload);
        assert_eq!(Thresholds::decode(&answer), Some(thresholds));
    }
}
