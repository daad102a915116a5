//! A blocking generic netlink socket.
//!
//! The kernel answers a generic netlink request before `send` returns, so
//! that nothing here ever waits and an event loop may call it as it is.

mod attribute;

use std::io;
use std::path::Path;

use netlink_packet_core::{
    DecodeError, ErrorMessage, NLM_F_ACK, NLM_F_DUMP, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage,
    NetlinkPayload, ParseableParametrized,
};
use netlink_packet_generic::{GenlFamily, GenlHeader, GenlMessage};
use netlink_sys::protocols::NETLINK_GENERIC;
use netlink_sys::{Socket, SocketAddr};

pub use attribute::{Attribute, Attributes};

use crate::netns;

/// `GENL_ID_CTRL` of include/uapi/linux/genetlink.h: resolves names.
const CONTROL_FAMILY: u16 = 0x10;
const CONTROL_GET_FAMILY: u8 = 3;
const CONTROL_FAMILY_ID: u16 = 1;
const CONTROL_FAMILY_NAME: u16 = 2;
const CONTROL_VERSION: u8 = 2;
/// `NLMSGERR_ATTR_MSG` of include/uapi/linux/netlink.h.
const EXTENDED_ACK_TEXT: u16 = 1;
/// The kernel fills dumps in parts of at most 32 KiB.
const DATAGRAM_BYTES: usize = 64 << 10;
/// What a capped ACK repeats of the request: its header.
const CAPPED_REQUEST_BYTES: usize = 16;

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The namespace could not be entered, or the socket failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The kernel has no such family.
    #[error("the kernel has no generic netlink family {0:?}; is its module loaded?")]
    NoFamily(String),
    /// The kernel refused; its own words where it has any.
    #[error("the kernel refused: {}", .text.as_deref().unwrap_or("no reason given"))]
    Refused {
        /// The errno.
        source: io::Error,
        /// The extended ACK.
        text: Option<String>,
    },
    /// The kernel's answer does not have the expected shape.
    #[error("netlink answer not understood: {0}")]
    Decode(String),
}

impl Error {
    /// Whether the kernel said `errno`.
    #[must_use]
    pub fn is(&self, errno: nix::errno::Errno) -> bool {
        matches!(self, Self::Refused { source, .. } if source.raw_os_error() == Some(errno as i32))
    }
}

impl From<DecodeError> for Error {
    fn from(error: DecodeError) -> Self {
        Self::Decode(error.to_string())
    }
}

/// A generic netlink family, resolved in one namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Family {
    id: u16,
    version: u8,
}

/// A generic netlink socket in one network namespace.
pub struct GenericSocket {
    socket: Socket,
    sequence: u32,
    /// Big enough for what the kernel sends at once, so that no answer has to
    /// be looked at twice.
    buffer: Vec<u8>,
}

impl GenericSocket {
    /// Opens a socket in the namespace at `netns`, or in the caller's own.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn open(netns: Option<&Path>) -> Result<Self, Error> {
        let socket = match netns {
            Some(path) => netns::inside(path, connected)??,
            None => connected()?,
        };
        Ok(Self {
            socket,
            sequence: 0,
            buffer: vec![0; DATAGRAM_BYTES],
        })
    }

    /// Finds the family called `name`, whose messages have `version`.
    ///
    /// # Errors
    /// [`Error::NoFamily`] if the kernel does not know it.
    pub fn family(&mut self, name: &str, version: u8) -> Result<Family, Error> {
        let control = Family {
            id: CONTROL_FAMILY,
            version: CONTROL_VERSION,
        };
        let mut text = name.as_bytes().to_vec();
        text.push(0);
        let request = vec![Attribute::new(CONTROL_FAMILY_NAME, text)];
        let answers = self
            .request(control, CONTROL_GET_FAMILY, request, NLM_F_ACK)
            .map_err(|error| {
                if error.is(nix::errno::Errno::ENOENT) {
                    Error::NoFamily(name.to_owned())
                } else {
                    error
                }
            })?;
        let id = answers
            .iter()
            .find_map(|answer| answer.u16(CONTROL_FAMILY_ID));
        id.map(|id| Family { id, version })
            .ok_or_else(|| Error::NoFamily(name.to_owned()))
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

    /// Every object that the dump `command` gives.
    ///
    /// # Errors
    /// As [`call`](Self::call).
    pub fn dump(&mut self, family: Family, command: u8) -> Result<Vec<Attributes>, Error> {
        self.request(family, command, Vec::new(), NLM_F_DUMP)
    }

    fn request(
        &mut self,
        family: Family,
        command: u8,
        attributes: Vec<Attribute>,
        flags: u16,
    ) -> Result<Vec<Attributes>, Error> {
        self.sequence = self.sequence.wrapping_add(1);
        let bytes = encode(family, command, attributes, flags, self.sequence);
        self.socket.send(&bytes, 0)?;
        let mut answers = Vec::new();
        loop {
            let mut datagram = &mut self.buffer[..];
            let received = self.socket.recv(&mut datagram, 0)?;
            let mut rest = &self.buffer[..received];
            while !rest.is_empty() {
                let message = NetlinkMessage::<GenlMessage<Payload>>::deserialize(rest)?;
                let length = align(message.header.length as usize).clamp(1, rest.len());
                rest = &rest[length..];
                if message.header.sequence_number != self.sequence {
                    continue;
                }
                match message.payload {
                    NetlinkPayload::Done(done) if done.code == 0 => return Ok(answers),
                    NetlinkPayload::Done(done) => {
                        return Err(refusal(done.code, &done.extended_ack));
                    }
                    NetlinkPayload::Error(error) => {
                        return acknowledgement(&error).map(|()| answers);
                    }
                    NetlinkPayload::InnerMessage(inner) => {
                        answers.push(inner.payload.attributes.into())
                    }
                    _ => {}
                }
            }
        }
    }
}

fn connected() -> io::Result<Socket> {
    let mut socket = Socket::new(NETLINK_GENERIC)?;
    socket.bind_auto()?;
    socket.connect(&SocketAddr::new(0, 0))?;
    socket.set_cap_ack(true)?;
    socket.set_ext_ack(true)?;
    Ok(socket)
}

/// The bytes of a request.
fn encode(
    family: Family,
    command: u8,
    attributes: Vec<Attribute>,
    flags: u16,
    sequence: u32,
) -> Vec<u8> {
    let payload = Payload {
        command,
        version: family.version,
        attributes,
    };
    let header = GenlHeader {
        cmd: command,
        version: family.version,
    };
    let mut netlink = NetlinkHeader::default();
    netlink.flags = NLM_F_REQUEST | flags;
    netlink.sequence_number = sequence;
    let mut message = NetlinkMessage::new(
        netlink,
        NetlinkPayload::from(GenlMessage::new(header, payload, family.id)),
    );
    message.finalize();
    let mut bytes = vec![0; message.buffer_len()];
    message.serialize(&mut bytes);
    bytes
}

fn acknowledgement(error: &ErrorMessage) -> Result<(), Error> {
    match error.code {
        None => Ok(()),
        Some(code) => Err(refusal(
            code.get(),
            error.header.get(CAPPED_REQUEST_BYTES..).unwrap_or_default(),
        )),
    }
}

/// `code` is a negative errno, `extended_ack` the attributes behind it.
fn refusal(code: i32, extended_ack: &[u8]) -> Error {
    let attributes = Attributes::parse(extended_ack).unwrap_or_default();
    Error::Refused {
        source: io::Error::from_raw_os_error(code.saturating_neg()),
        text: attributes.text(EXTENDED_ACK_TEXT),
    }
}

fn align(length: usize) -> usize {
    length.next_multiple_of(4)
}

/// A generic netlink payload of any family: the agent speaks two, and both
/// are nothing but attributes.
#[derive(Debug)]
struct Payload {
    command: u8,
    version: u8,
    attributes: Vec<Attribute>,
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

impl netlink_packet_core::Emitable for Payload {
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

    #[test]
    fn a_request_has_both_headers_and_aligned_attributes() {
        let family = Family {
            id: 0x1234,
            version: 1,
        };
        let bytes = encode(
            family,
            7,
            vec![Attribute::u8(2, 24), Attribute::u32(8, 5)],
            NLM_F_ACK,
            9,
        );
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
    fn a_refusal_carries_the_kernels_words() {
        let mut extended_ack = vec![12, 0, 1, 0];
        extended_ack.extend(b"no path\0");
        let error = refusal(-22, &extended_ack);
        assert!(error.is(nix::errno::Errno::EINVAL));
        assert_eq!(error.to_string(), "the kernel refused: no path");
    }

    #[test]
    fn a_family_that_is_not_there_is_named() {
        let mut socket = GenericSocket::open(None).unwrap();
        let error = socket.family("no_such_family", 1).unwrap_err();
        assert!(error.to_string().contains("\"no_such_family\""), "{error}");
    }
}
