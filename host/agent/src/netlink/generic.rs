//! Generic netlink: families, found by name, whose messages are attributes.

use std::path::Path;

use netlink_packet_core::{DecodeError, Emitable, NLM_F_ACK, NLM_F_DUMP, ParseableParametrized};
use netlink_packet_generic::{GenlFamily, GenlHeader, GenlMessage};
use netlink_sys::protocols::NETLINK_GENERIC;

use super::link::Link;
use super::{Attribute, Attributes, Error, attribute};

/// `GENL_ID_CTRL` of include/uapi/linux/genetlink.h: resolves names.
const CONTROL_FAMILY: u16 = 0x10;
const CONTROL_GET_FAMILY: u8 = 3;
const CONTROL_FAMILY_ID: u16 = 1;
const CONTROL_FAMILY_NAME: u16 = 2;
const CONTROL_GROUPS: u16 = 7;
const CONTROL_GROUP_NAME: u16 = 1;
const CONTROL_GROUP_ID: u16 = 2;
const CONTROL_VERSION: u8 = 2;

/// A generic netlink family, resolved in one namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Family {
    pub(super) id: u16,
    version: u8,
}

/// A generic netlink socket in one network namespace.
pub struct GenericSocket {
    link: Link,
}

impl GenericSocket {
    /// Opens a socket in the namespace at `netns`, or in the caller's own.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn open(netns: Option<&Path>) -> Result<Self, Error> {
        let link = Link::open(netns, NETLINK_GENERIC)?;
        Ok(Self { link })
    }

    /// Finds the family called `name`, whose messages have `version`.
    ///
    /// # Errors
    /// [`Error::NoFamily`] if the kernel does not know it.
    pub fn family(&mut self, name: &str, version: u8) -> Result<Family, Error> {
        let id = self
            .control(name)?
            .iter()
            .find_map(|answer| answer.u16(CONTROL_FAMILY_ID));
        id.map(|id| Family { id, version })
            .ok_or_else(|| Error::NoFamily(name.to_owned()))
    }

    /// Finds the number of a multicast group of the family called `name`.
    ///
    /// # Errors
    /// [`Error::NoFamily`], [`Error::NoGroup`].
    pub(super) fn group(&mut self, name: &str, group: &str) -> Result<u32, Error> {
        for answer in self.control(name)? {
            for member in answer.members(CONTROL_GROUPS)? {
                if member.text(CONTROL_GROUP_NAME).as_deref() == Some(group) {
                    if let Some(id) = member.u32(CONTROL_GROUP_ID) {
                        return Ok(id);
                    }
                }
            }
        }
        Err(Error::NoGroup {
            family: name.to_owned(),
            group: group.to_owned(),
        })
    }

    /// Sends `command` and waits for its acknowledgement.
    ///
    /// # Errors
    /// [`Error::Refused`] with the kernel's words.
    pub fn call(
        &mut self,
        family: Family,
        command: u8,
        attributes: Vec<Attribute>,
    ) -> Result<(), Error> {
        self.request(family, command, attributes, NLM_F_ACK)
            .map(drop)
    }

    /// Sends `command` once with each of `attributes`, and gives those that the kernel
    /// refuses by their positions.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn call_all(
        &mut self,
        family: Family,
        command: u8,
        attributes: impl IntoIterator<Item = Vec<Attribute>>,
    ) -> Result<Vec<(usize, Error)>, Error> {
        let requests = attributes.into_iter();
        self.link
            .request_all(requests.map(|attributes| message(family, command, attributes)))
    }

    /// Every object that the dump `command` gives.
    ///
    /// # Errors
    /// As [`call`](Self::call).
    pub fn dump(&mut self, family: Family, command: u8) -> Result<Vec<Attributes>, Error> {
        self.request(family, command, Vec::new(), NLM_F_DUMP)
    }

    /// What the kernel says of the family called `name`.
    fn control(&mut self, name: &str) -> Result<Vec<Attributes>, Error> {
        let control = Family {
            id: CONTROL_FAMILY,
            version: CONTROL_VERSION,
        };
        let mut text = name.as_bytes().to_vec();
        text.push(0);
        let request = vec![Attribute::new(CONTROL_FAMILY_NAME, text)];
        self.request(control, CONTROL_GET_FAMILY, request, NLM_F_ACK)
            .map_err(|error| {
                if error.is(nix::errno::Errno::ENOENT) {
                    Error::NoFamily(name.to_owned())
                } else {
                    error
                }
            })
    }

    fn request(
        &mut self,
        family: Family,
        command: u8,
        attributes: Vec<Attribute>,
        flags: u16,
    ) -> Result<Vec<Attributes>, Error> {
        let mut answers = Vec::new();
        self.link
            .request(message(family, command, attributes), flags, |answer| {
                answers.push(answer.payload.attributes.into());
            })?;
        Ok(answers)
    }
}

fn message(family: Family, command: u8, attributes: Vec<Attribute>) -> GenlMessage<Payload> {
    let payload = Payload {
        command,
        version: family.version,
        attributes,
    };
    let header = GenlHeader {
        cmd: command,
        version: family.version,
    };
    GenlMessage::new(header, payload, family.id)
}

/// A generic netlink payload of any family: those that the agent speaks are
/// nothing but attributes.
#[derive(Debug)]
pub(super) struct Payload {
    pub(super) command: u8,
    version: u8,
    pub(super) attributes: Vec<Attribute>,
}

impl GenlFamily for Payload {
    /// Not used: requests carry the id that the kernel gave.
    fn family_name() -> &'static str {
        ""
    }

    fn command(&self) -> u8 {
        self.command
    }

    fn version(&self) -> u8 {
        self.version
    }
}

impl Emitable for Payload {
    fn buffer_len(&self) -> usize {
        self.attributes.as_slice().buffer_len()
    }

    fn emit(&self, buffer: &mut [u8]) {
        self.attributes.as_slice().emit(buffer);
    }
}

impl ParseableParametrized<[u8], GenlHeader> for Payload {
    fn parse_with_param(bytes: &[u8], header: GenlHeader) -> Result<Self, DecodeError> {
        Ok(Self {
            command: header.cmd,
            version: header.version,
            attributes: attribute::parse(bytes)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::link;

    #[test]
    fn a_request_has_both_headers_and_aligned_attributes() {
        let family = Family {
            id: 0x1234,
            version: 1,
        };
        let attributes = vec![Attribute::u8(2, 24), Attribute::u32(8, 5)];
        let bytes = link::encode(message(family, 7, attributes), NLM_F_ACK, 9);
        let expected: &[u8] = &[
            36, 0, 0, 0, 0x34, 0x12, 5, 0, 9, 0, 0, 0, 0, 0, 0,
            0, // length, family, flags, sequence, port
            7, 1, 0, 0, // command, version
            5, 0, 2, 0, 24, 0, 0, 0, // u8, padded
            8, 0, 8, 0, 5, 0, 0, 0,
        ];
        assert_eq!(bytes, expected);
    }

    #[test]
    fn a_family_that_is_not_there_is_named() {
        let mut socket = GenericSocket::open(None).unwrap();
        let error = socket.family("no_such_family", 1).unwrap_err();
        assert!(error.to_string().contains("\"no_such_family\""), "{error}");
    }

    #[test]
    fn of_many_requests_those_that_are_refused_are_known_by_their_positions() {
        let mut socket = GenericSocket::open(None).unwrap();
        let control = Family {
            id: CONTROL_FAMILY,
            version: CONTROL_VERSION,
        };
        // More than go into one message; one in the middle and the last are answered.
        let is_there = |position| [70, 99].contains(&position);
        let requests = (0..100).map(|position| {
            let name: &[u8] = if is_there(position) {
                b"nlctrl\0"
            } else {
                b"no_such\0"
            };
            vec![Attribute::new(CONTROL_FAMILY_NAME, name.to_vec())]
        });
        let refused = socket
            .call_all(control, CONTROL_GET_FAMILY, requests)
            .unwrap();
        let positions: Vec<usize> = refused.iter().map(|(position, _)| *position).collect();
        let expected: Vec<usize> = (0..100).filter(|&position| !is_there(position)).collect();
        assert_eq!(positions, expected);
        let is_unknown = |error: &Error| error.is(nix::errno::Errno::ENOENT);
        assert!(refused.iter().all(|(_, error)| is_unknown(error)));
        // Nothing is left over for the next request to stumble on.
        assert!(socket.family("nlctrl", CONTROL_VERSION).is_ok());
    }

    #[test]
    fn groups_are_found_by_name() {
        let mut socket = GenericSocket::open(None).unwrap();
        assert!(socket.group("nlctrl", "notify").unwrap() > 0);
        let error = socket.group("nlctrl", "nosuch").unwrap_err();
        assert!(error.to_string().contains("\"nosuch\""), "{error}");
    }
}
