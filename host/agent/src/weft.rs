//! The kernel's generic netlink family `weft`, as
//! host/kernel/include/uapi/weft.h defines it.

use std::net::Ipv4Addr;
use std::path::Path;

use serde::Serialize;

use crate::netlink::{Attribute, Attributes, Error, Family, GenericSocket};

const NAME: &str = "weft";
const VERSION: u8 = 1;

mod command {
    pub const PATTERN_SET: u8 = 1;
    pub const PATTERN_DEL: u8 = 2;
    pub const PATTERN_GET: u8 = 3;
    pub const FLOW_GET: u8 = 4;
    pub const PATTERN_RENEW: u8 = 5;
}

mod attr {
    pub const PREFIX: u16 = 1;
    pub const PREFIX_LEN: u16 = 2;
    pub const VERSION: u16 = 3;
    pub const TTL_NS: u16 = 4;
    pub const AGE_NS: u16 = 5;
    pub const PATHS: u16 = 6;
    pub const PATH: u16 = 7;
    pub const SEQUENCE: u16 = 8;
    pub const TOKEN: u16 = 9;
    pub const SOURCE: u16 = 10;
    pub const SCHEDULER: u16 = 11;
    pub const SUBFLOWS: u16 = 12;
    pub const SUBFLOW: u16 = 13;
    pub const WAIT_UNIT_NS: u16 = 15;
}

mod path_attr {
    pub const LOCAL: u16 = 1;
    pub const GAP: u16 = 2;
    pub const RTT_NS: u16 = 3;
    pub const LOWEST_RTT_NS: u16 = 5;
}

mod subflow_attr {
    pub const LOCAL: u16 = 1;
    pub const REMOTE: u16 = 2;
    pub const GAP: u16 = 3;
    pub const RTT_NS: u16 = 4;
    pub const PACKETS: u16 = 5;
    pub const BYTES: u16 = 6;
}

/// Destinations that a pattern is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Prefix {
    /// Network address.
    pub address: Ipv4Addr,
    /// 0..=32.
    pub length: u8,
}

impl std::fmt::Display for Prefix {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

/// One local address of a pattern.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LocalPath {
    /// Where its subflows start.
    pub local: Ipv4Addr,
    /// Packets per pattern.
    pub gap: u32,
    /// What the gap follows from.
    pub rtt_ns: u64,
    /// RTT without any queue; 0 if it is not known.
    pub lowest_rtt_ns: u64,
}

/// An allocation pattern as the kernel holds it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Pattern {
    /// Destinations.
    pub prefix: Prefix,
    /// The controller's version of it.
    pub version: u64,
    /// How long it is used, counted from the moment it is set or renewed.
    pub time_to_live_ns: u64,
    /// Since then; the kernel's answer, not part of a request.
    pub age_ns: u64,
    /// Local addresses, at most 8.
    pub paths: Vec<LocalPath>,
    /// Index into `paths` per position, at most 256.
    pub sequence: Vec<u8>,
    /// In which ACKs tell how long they have waited in queues; 0: they do not.
    pub wait_unit_ns: u32,
}

/// Where the pattern in use comes from (`enum weft_source`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// No RTT yet: per-packet round robin.
    None,
    /// The kernel's own RTT.
    Local,
    /// The controller's, within its time to live.
    Controller,
}

/// What a scheduler gave one subflow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Subflow {
    /// Local address.
    pub local: Ipv4Addr,
    /// Remote address.
    pub remote: Ipv4Addr,
    /// In the pattern in use.
    pub gap: u32,
    /// The kernel's own smoothed RTT.
    pub rtt_ns: u64,
    /// Packets given to it.
    pub packets: u64,
    /// Bytes given to it.
    pub bytes: u64,
}

/// An MPTCP connection that a scheduler of the module serves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Flow {
    /// MPTCP token, as `ss -M` shows it.
    pub token: u32,
    /// Scheduler's name.
    pub scheduler: String,
    /// Where its pattern comes from.
    pub source: Source,
    /// The controller's version, if from there.
    pub version: Option<u64>,
    /// Its subflows.
    pub subflows: Vec<Subflow>,
}

/// The family in one network namespace.
pub struct Weft {
    socket: GenericSocket,
    family: Family,
}

impl Weft {
    /// Opens it in the namespace at `netns`.
    ///
    /// # Errors
    /// [`Error::NoFamily`] where the module is not loaded.
    pub fn open(netns: &Path) -> Result<Self, Error> {
        let mut socket = GenericSocket::open(Some(netns))?;
        let family = socket.family(NAME, VERSION)?;
        Ok(Self { socket, family })
    }

    /// Puts each of `patterns` in place of what its prefix had; gives those that the
    /// kernel refuses by their positions.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn set(&mut self, patterns: &[Pattern]) -> Result<Vec<(usize, Error)>, Error> {
        let patterns = patterns.iter().map(encode);
        self.socket
            .call_all(self.family, command::PATTERN_SET, patterns)
    }

    /// Lets all patterns live from now on.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub fn renew(&mut self) -> Result<(), Error> {
        self.socket
            .call(self.family, command::PATTERN_RENEW, Vec::new())
    }

    /// Takes the pattern of `prefix` away.
    ///
    /// # Errors
    /// The kernel's refusal; `ENOENT` where there is none.
    pub fn delete(&mut self, prefix: Prefix) -> Result<(), Error> {
        self.socket.call(
            self.family,
            command::PATTERN_DEL,
            encode_prefix(prefix).into(),
        )
    }

    /// All patterns.
    ///
    /// # Errors
    /// The kernel's refusal, or an answer that is not understood.
    pub fn patterns(&mut self) -> Result<Vec<Pattern>, Error> {
        self.socket
            .dump(self.family, command::PATTERN_GET)?
            .iter()
            .map(decode)
            .collect()
    }

    /// All connections.
    ///
    /// # Errors
    /// As [`patterns`](Self::patterns).
    pub fn flows(&mut self) -> Result<Vec<Flow>, Error> {
        self.socket
            .dump(self.family, command::FLOW_GET)?
            .iter()
            .map(decode_flow)
            .collect()
    }
}

fn encode_prefix(prefix: Prefix) -> [Attribute; 2] {
    [
        Attribute::ipv4(attr::PREFIX, prefix.address),
        Attribute::u8(attr::PREFIX_LEN, prefix.length),
    ]
}

fn encode(pattern: &Pattern) -> Vec<Attribute> {
    let path = |path: &LocalPath| {
        let members = [
            Attribute::ipv4(path_attr::LOCAL, path.local),
            Attribute::u32(path_attr::GAP, path.gap),
            Attribute::u64(path_attr::RTT_NS, path.rtt_ns),
            Attribute::u64(path_attr::LOWEST_RTT_NS, path.lowest_rtt_ns),
        ];
        Attribute::nest(attr::PATH, &members)
    };
    let mut attributes = Vec::from(encode_prefix(pattern.prefix));
    attributes.push(Attribute::u64(attr::VERSION, pattern.version));
    attributes.push(Attribute::u64(attr::TTL_NS, pattern.time_to_live_ns));
    attributes.push(Attribute::nest(
        attr::PATHS,
        &pattern.paths.iter().map(path).collect::<Vec<_>>(),
    ));
    attributes.push(Attribute::new(attr::SEQUENCE, pattern.sequence.clone()));
    attributes.push(Attribute::u32(attr::WAIT_UNIT_NS, pattern.wait_unit_ns));
    attributes
}

fn decode(answer: &Attributes) -> Result<Pattern, Error> {
    let path = |path: &Attributes| {
        Some(LocalPath {
            local: path.ipv4(path_attr::LOCAL)?,
            gap: path.u32(path_attr::GAP)?,
            rtt_ns: path.u64(path_attr::RTT_NS)?,
            lowest_rtt_ns: path.u64(path_attr::LOWEST_RTT_NS)?,
        })
    };
    let paths = answer.nested(attr::PATHS, attr::PATH)?;
    let pattern = || {
        Some(Pattern {
            prefix: Prefix {
                address: answer.ipv4(attr::PREFIX)?,
                length: answer.u8(attr::PREFIX_LEN)?,
            },
            version: answer.u64(attr::VERSION)?,
            time_to_live_ns: answer.u64(attr::TTL_NS)?,
            age_ns: answer.u64(attr::AGE_NS)?,
            paths: paths.iter().map(path).collect::<Option<_>>()?,
            sequence: answer.bytes(attr::SEQUENCE)?.to_vec(),
            wait_unit_ns: answer.u32(attr::WAIT_UNIT_NS)?,
        })
    };
    pattern().ok_or_else(|| Error::Decode("a pattern lacks an attribute".to_owned()))
}

fn decode_flow(answer: &Attributes) -> Result<Flow, Error> {
    let subflow = |subflow: &Attributes| {
        Some(Subflow {
            local: subflow.ipv4(subflow_attr::LOCAL)?,
            remote: subflow.ipv4(subflow_attr::REMOTE)?,
            gap: subflow.u32(subflow_attr::GAP)?,
            rtt_ns: subflow.u64(subflow_attr::RTT_NS)?,
            packets: subflow.u64(subflow_attr::PACKETS)?,
            bytes: subflow.u64(subflow_attr::BYTES)?,
        })
    };
    let subflows = answer.nested(attr::SUBFLOWS, attr::SUBFLOW)?;
    let flow = || {
        Some(Flow {
            token: answer.u32(attr::TOKEN)?,
            scheduler: answer.text(attr::SCHEDULER)?,
            source: match answer.u8(attr::SOURCE)? {
                0 => Source::None,
                1 => Source::Local,
                2 => Source::Controller,
                _ => return None,
            },
            version: answer.u64(attr::VERSION),
            subflows: subflows.iter().map(subflow).collect::<Option<_>>()?,
        })
    };
    flow().ok_or_else(|| Error::Decode("a flow lacks an attribute".to_owned()))
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

    #[test]
    fn a_pattern_survives_the_way_into_attributes_and_back() {
        let mut answer = encode(&pattern());
        answer.push(Attribute::u64(attr::AGE_NS, 5));
        assert_eq!(
            decode(&answer.into()).unwrap(),
            Pattern {
                age_ns: 5,
                ..pattern()
            }
        );
    }

    #[test]
    fn an_answer_without_its_version_is_an_error() {
        let mut answer = encode(&pattern());
        answer.remove(2);
        assert!(decode(&answer.into()).is_err());
    }

    #[test]
    fn the_numbers_are_those_of_the_kernels_header() {
        let header = include_str!("../../kernel/include/uapi/weft.h");
        let number = |name: &str| {
            let body = header
                .split("\nenum weft_")
                .find(|part| part.contains(&format!("\t{name},")))
                .unwrap();
            let names = body.lines().filter(|line| line.starts_with("\tWEFT_"));
            names
                .map(|line| line.trim().split(',').next().unwrap())
                .position(|found| found == name)
                .unwrap()
        };
        assert_eq!(number("WEFT_CMD_FLOW_GET"), usize::from(command::FLOW_GET));
        let renew = usize::from(command::PATTERN_RENEW);
        assert_eq!(number("WEFT_CMD_PATTERN_RENEW"), renew);
        assert_eq!(number("WEFT_A_SUBFLOW"), usize::from(attr::SUBFLOW));
        assert_eq!(number("WEFT_A_SEQUENCE"), usize::from(attr::SEQUENCE));
        assert_eq!(number("WEFT_PATH_A_RTT_NS"), usize::from(path_attr::RTT_NS));
        assert_eq!(
            number("WEFT_SUBFLOW_A_BYTES"),
            usize::from(subflow_attr::BYTES)
        );
        assert_eq!(number("WEFT_SOURCE_CONTROLLER"), 2);
    }
}
