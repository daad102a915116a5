// SPDX-License-Identifier: Apache-2.0

//! The kernel's generic netlink family `mptcp_pattern`, specified in host/kernel/mptcp_pattern.yaml.

pub mod spec;
mod thresholds;

use std::net::Ipv4Addr;
use std::path::Path;

use netlink_bindings::builtin::BuiltinNfgenmsg;
use netlink_bindings::traits::{NetlinkRequest, Protocol};
use netlink_sys::protocols::NETLINK_GENERIC;
use nix::libc::NLM_F_DUMP;
use serde::Serialize;
use spec::{Command, message, path, subflow};

use crate::netlink::{Attributes, Error, Socket, Writer};

pub use spec::Source;
pub use thresholds::Thresholds;

/// A destination prefix of a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Prefix {
    /// Network address.
    pub address: Ipv4Addr,
    /// Prefix length, 0 to 32.
    pub length: u8,
}

impl std::fmt::Display for Prefix {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

/// The path from one local address in a pattern.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LocalPath {
    /// Local address of its subflows.
    pub local: Ipv4Addr,
    /// Packets per pattern.
    pub gap: u32,
    /// The cost that determines the gap.
    pub rtt_ns: u64,
    /// RTT without queues; 0 = unknown.
    pub lowest_rtt_ns: u64,
}

/// An allocation pattern as the kernel holds it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Pattern {
    /// Destinations.
    pub prefix: Prefix,
    /// The controller's version.
    pub version: u64,
    /// How long it is valid after it is set or renewed.
    pub time_to_live_ns: u64,
    /// Time since it was set or renewed; only in the kernel's answer.
    pub age_ns: u64,
    /// Local addresses, at most 8.
    pub paths: Vec<LocalPath>,
    /// For each position, an index into `paths`; at most 256.
    pub sequence: Vec<u8>,
    /// Unit in which ACKs carry their queueing time; 0 = they don't.
    pub wait_unit_ns: u32,
}

/// What a scheduler has sent over one subflow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Subflow {
    /// Local address.
    pub local: Ipv4Addr,
    /// Remote address.
    pub remote: Ipv4Addr,
    /// Its gap in the pattern in use.
    pub gap: u32,
    /// The kernel's own smoothed RTT.
    pub rtt_ns: u64,
    /// Packets scheduled on it.
    pub packets: u64,
    /// Bytes scheduled on it.
    pub bytes: u64,
}

/// An MPTCP connection that one of the module's schedulers serves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Flow {
    /// MPTCP token, as `ss -M` shows it.
    pub token: u32,
    /// Scheduler's name.
    pub scheduler: String,
    /// Origin of its pattern.
    pub source: Source,
    /// The controller's version, if the pattern is from there.
    pub version: Option<u64>,
    /// Its subflows.
    pub subflows: Vec<Subflow>,
}

/// The family in one network namespace.
pub struct Weft {
    socket: Socket,
}

impl Weft {
    /// Opens the family in the namespace at `netns`.
    ///
    /// # Errors
    /// [`Error::NoFamily`] if the module is not loaded.
    pub fn open(netns: &Path) -> Result<Self, Error> {
        let mut socket = Socket::open(Some(netns), NETLINK_GENERIC)?;
        socket.find(spec::NAME)?;
        Ok(Self { socket })
    }

    /// Sets each of `patterns` in place of its prefix's current one. Returns those that the
    /// kernel refuses, by position.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn set(&mut self, patterns: &[Pattern]) -> Result<Vec<(usize, Error)>, Error> {
        self.socket.request_all(patterns.iter().map(|pattern| {
            let mut request = Request::new(Command::PatternSet);
            encode(&mut request.attributes(), pattern);
            request
        }))
    }

    /// Renews all patterns.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub fn renew(&mut self) -> Result<(), Error> {
        self.socket.call(&Request::new(Command::PatternRenew))
    }

    /// Deletes the pattern of `prefix`.
    ///
    /// # Errors
    /// The kernel's refusal; `ENOENT` if there is no such pattern.
    pub fn delete(&mut self, prefix: Prefix) -> Result<(), Error> {
        let mut request = Request::new(Command::PatternDel);
        encode_prefix(&mut request.attributes(), prefix);
        self.socket.call(&request)
    }

    /// All patterns.
    ///
    /// # Errors
    /// The kernel's refusal, or a malformed answer.
    pub fn patterns(&mut self) -> Result<Vec<Pattern>, Error> {
        self.dump(Command::PatternGet, |answer| {
            decode(answer).ok_or("a pattern lacks an attribute")
        })
    }

    /// Replaces the thresholds between classes.
    ///
    /// # Errors
    /// The kernel's refusal; `ESTALE` while thresholds of a newer version live.
    pub fn set_thresholds(&mut self, thresholds: &Thresholds) -> Result<(), Error> {
        let mut request = Request::new(Command::ThresholdsSet);
        thresholds.encode(&mut request.attributes());
        self.socket.call(&request)
    }

    /// The thresholds that were set last; none if the built-in ones have held ever since.
    ///
    /// # Errors
    /// As [`patterns`](Self::patterns).
    pub fn thresholds(&mut self) -> Result<Vec<Thresholds>, Error> {
        self.dump(Command::ThresholdsGet, |answer| {
            Thresholds::decode(answer).ok_or("thresholds lack an attribute")
        })
    }

    /// All connections.
    ///
    /// # Errors
    /// As [`patterns`](Self::patterns).
    pub fn flows(&mut self) -> Result<Vec<Flow>, Error> {
        self.dump(Command::FlowGet, |answer| {
            decode_flow(answer).ok_or("a flow lacks an attribute")
        })
    }

    fn dump<T>(
        &mut self,
        command: Command,
        decode: impl Fn(&Message<'_>) -> Result<T, &'static str>,
    ) -> Result<Vec<T>, Error> {
        let mut found = Vec::new();
        let request = Request::dump(command);
        self.socket
            .request(&request, |answer| found.push(decode(&answer)))?;
        let all: Result<_, _> = found.into_iter().collect();
        all.map_err(|lacks| Error::Decode(lacks.to_owned()))
    }
}

type Message<'a> = Attributes<'a, message::Set>;

/// A request to the family.
struct Request {
    payload: Vec<u8>,
    flags: u16,
}

impl Request {
    fn new(command: Command) -> Self {
        let header = BuiltinNfgenmsg {
            cmd: command as u8,
            version: spec::VERSION,
            reserved: 0,
        };
        Self {
            payload: header.as_slice().to_vec(),
            flags: 0,
        }
    }

    fn dump(command: Command) -> Self {
        Self {
            flags: NLM_F_DUMP as u16,
            ..Self::new(command)
        }
    }

    fn attributes(&mut self) -> Writer<'_, message::Set> {
        Writer::new(&mut self.payload)
    }
}

impl NetlinkRequest for Request {
    type ReplyType<'a> = Message<'a>;

    fn protocol(&self) -> Protocol {
        Protocol::Generic(spec::NAME.as_bytes())
    }

    fn flags(&self) -> u16 {
        self.flags
    }

    fn payload(&self) -> &[u8] {
        &self.payload
    }

    fn decode_reply(payload: &[u8]) -> Message<'_> {
        let attributes = payload.get(BuiltinNfgenmsg::len()..);
        Message::new(attributes.unwrap_or_default())
    }
}

fn encode_prefix(request: &mut Writer<'_, message::Set>, prefix: Prefix) {
    request
        .put(message::PREFIX, prefix.address)
        .put(message::PREFIX_LEN, prefix.length);
}

fn encode(request: &mut Writer<'_, message::Set>, pattern: &Pattern) {
    encode_prefix(request, pattern.prefix);
    request
        .put(message::VERSION, pattern.version)
        .put(message::TTL_NS, pattern.time_to_live_ns)
        .nest(message::PATHS, |paths| {
            for one in &pattern.paths {
                paths.nest(message::PATH, |members| {
                    members
                        .put(path::LOCAL, one.local)
                        .put(path::GAP, one.gap)
                        .put(path::RTT_NS, one.rtt_ns)
                        .put(path::LOWEST_RTT_NS, one.lowest_rtt_ns);
                });
            }
        })
        .put(message::SEQUENCE, &pattern.sequence)
        .put(message::WAIT_UNIT_NS, pattern.wait_unit_ns);
}

fn decode(answer: &Message<'_>) -> Option<Pattern> {
    let path = |members: Attributes<'_, path::Set>| {
        Some(LocalPath {
            local: members.get(path::LOCAL)?,
            gap: members.get(path::GAP)?,
            rtt_ns: members.get(path::RTT_NS)?,
            lowest_rtt_ns: members.get(path::LOWEST_RTT_NS)?,
        })
    };
    let paths = answer.get(message::PATHS)?.all(message::PATH);
    Some(Pattern {
        prefix: Prefix {
            address: answer.get(message::PREFIX)?,
            length: answer.get(message::PREFIX_LEN)?,
        },
        version: answer.get(message::VERSION)?,
        time_to_live_ns: answer.get(message::TTL_NS)?,
        age_ns: answer.get(message::AGE_NS)?,
        paths: paths.map(|one| path(one?)).collect::<Option<_>>()?,
        sequence: answer.get(message::SEQUENCE)?.to_vec(),
        wait_unit_ns: answer.get(message::WAIT_UNIT_NS)?,
    })
}

fn decode_flow(answer: &Message<'_>) -> Option<Flow> {
    let subflow = |members: Attributes<'_, subflow::Set>| {
        Some(Subflow {
            local: members.get(subflow::LOCAL)?,
            remote: members.get(subflow::REMOTE)?,
            gap: members.get(subflow::GAP)?,
            rtt_ns: members.get(subflow::RTT_NS)?,
            packets: members.get(subflow::PACKETS)?,
            bytes: members.get(subflow::BYTES)?,
        })
    };
    let subflows = answer.get(message::SUBFLOWS)?.all(message::SUBFLOW);
    Some(Flow {
        token: answer.get(message::TOKEN)?,
        scheduler: answer.get(message::SCHEDULER)?.into_owned(),
        source: answer.get(message::SOURCE)?,
        version: answer.get(message::VERSION),
        subflows: subflows.map(|one| subflow(one?)).collect::<Option<_>>()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern() -> Pattern {
        Pattern {
            prefix: Prefix {
                address: Ipv4Addr::new(10, 2, 1, 0),
                length: 24,
            },
            version: 7,
            time_to_live_ns: 200_000_000,
            age_ns: 0,
            paths: vec![
                LocalPath {
                    local: Ipv4Addr::new(10, 1, 1, 1),
                    gap: 4,
                    rtt_ns: 100_000,
                    lowest_rtt_ns: 90_000,
                },
                LocalPath {
                    local: Ipv4Addr::new(10, 1, 1, 2),
                    gap: 1,
                    rtt_ns: 400_000,
                    lowest_rtt_ns: 0,
                },
            ],
            sequence: vec![0, 0, 0, 0, 1],
            wait_unit_ns: 1024,
        }
    }

    fn decoded(write: impl FnOnce(&mut Writer<'_, message::Set>)) -> Option<Pattern> {
        let mut request = Request::new(Command::PatternGet);
        write(&mut request.attributes());
        decode(&Request::decode_reply(&request.payload))
    }

    #[test]
    fn the_controller_knows_how_long_kernels_accept_patterns_for() {
        assert_eq!(weft_proto::TIME_TO_LIVE_MAX_NS, spec::TTL_NS_MAX);
    }

    #[test]
    fn a_pattern_survives_the_way_into_attributes_and_back() {
        let answer = decoded(|to| {
            encode(to, &pattern());
            to.put(message::AGE_NS, 5);
        });
        let expected = Pattern {
            age_ns: 5,
            ..pattern()
        };
        assert_eq!(answer, Some(expected));
    }

    #[test]
    fn an_answer_without_its_age_is_not_understood() {
        assert_eq!(decoded(|to| encode(to, &pattern())), None);
    }

    #[test]
    fn a_request_has_the_familys_header_before_its_attributes() {
        let mut request = Request::new(Command::PatternDel);
        encode_prefix(&mut request.attributes(), pattern().prefix);
        let expected: &[u8] = &[
            2, 1, 0, 0, // command, version
            8, 0, 1, 0, 10, 2, 1, 0, // prefix
            5, 0, 2, 0, 24, // its length
        ];
        assert_eq!(request.payload, expected);
    }

    #[test]
    fn no_source_is_read_from_a_number_that_has_none() {
        use crate::netlink::Type as _;
        assert_eq!(Source::read(&[2]), Some(Source::Controller));
        assert_eq!(Source::read(&[3]), None);
        assert_eq!(Source::read(&[]), None);
    }
}
