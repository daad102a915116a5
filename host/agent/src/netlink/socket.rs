// SPDX-License-Identifier: Apache-2.0

//! A netlink socket in one network namespace, for requests and their answers.

use std::collections::BTreeMap;
use std::io;
use std::ops::ControlFlow::{self, Break, Continue};
use std::path::Path;

use netlink_bindings::builtin::{NlmsgerrAttrs, Nlmsghdr};
use netlink_bindings::nlctrl::{self, IterableCtrlAttrs, OpGetfamilyDo};
use netlink_bindings::traits::{NetlinkRequest, Protocol};
use netlink_bindings::utils::{nla_align_up, parse_i32};
use netlink_sys::SocketAddr;
use nix::errno::Errno;
use nix::libc::{
    GENL_ID_CTRL, NLM_F_ACK, NLM_F_DUMP, NLM_F_REQUEST, NLMSG_DONE, NLMSG_ERROR, NLMSG_MIN_TYPE,
};

use super::Error;
use crate::netns;

/// The controller family, which finds other families by name; its number is fixed.
const CONTROL: (&[u8], u16) = (nlctrl::PROTONAME.as_bytes(), GENL_ID_CTRL as u16);
/// The kernel sends dumps in parts of at most 32 KiB.
pub(super) const DATAGRAM_BYTES: usize = 64 << 10;
/// Requests in one message to the kernel. Its answers, if it refuses all of them, fit into a
/// socket's default buffer.
const BATCH_REQUESTS: usize = 64;

/// A blocking socket.
///
/// The kernel answers before `send` returns. So nothing here ever blocks, and an event loop
/// may call it directly.
pub struct Socket {
    socket: netlink_sys::Socket,
    sequence: u32,
    /// Large enough for any message of the kernel, so that no answer has to be read twice.
    buffer: Vec<u8>,
    /// Numbers of the families found so far, by name.
    families: BTreeMap<&'static [u8], u16>,
}

impl Socket {
    /// Opens a socket of `protocol` (`NETLINK_*`) in the namespace at `netns`, or in the
    /// caller's own.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn open(netns: Option<&Path>, protocol: isize) -> Result<Self, Error> {
        Ok(Self {
            socket: open(netns, || connected(protocol))?,
            sequence: 0,
            buffer: vec![0; DATAGRAM_BYTES],
            families: BTreeMap::from([CONTROL]),
        })
    }

    /// Looks up the family `name`. Requests look up their own family; call this to find out
    /// early if it is missing.
    ///
    /// # Errors
    /// [`Error::NoFamily`] if the kernel doesn't know it.
    pub fn find(&mut self, name: &'static str) -> Result<(), Error> {
        self.family(name.as_bytes()).map(drop)
    }

    /// Sends `request` and waits for its acknowledgement.
    ///
    /// # Errors
    /// [`Error::Refused`] with the kernel's text; [`Error::NoFamily`].
    pub fn call<R: NetlinkRequest>(&mut self, request: &R) -> Result<(), Error> {
        self.request(request, |_| {})
    }

    /// Sends `request` and passes each answer to `take`, until the kernel signals the end.
    ///
    /// # Errors
    /// As [`call`](Self::call).
    pub fn request<R: NetlinkRequest>(
        &mut self,
        request: &R,
        mut take: impl for<'a> FnMut(R::ReplyType<'a>),
    ) -> Result<(), Error> {
        let kind = self.kind(request)?;
        self.sequence = self.sequence.wrapping_add(1);
        let asked = self.sequence;
        // A dump ends with its own message, without an acknowledgement.
        let ack = if request.flags() & DUMP == DUMP {
            0
        } else {
            ACK
        };
        let mut message = Vec::new();
        encode(&mut message, kind, request, ack, asked);
        self.socket.send(&message, 0)?;
        self.receive(|sequence, answer| match answer {
            _ if sequence != asked => Continue(()),
            Answer::End(outcome) => Break(outcome),
            Answer::Object(payload) => {
                take(R::decode_reply(payload));
                Continue(())
            }
        })
    }

    /// Sends all `requests`, which have no answers. Returns those that the kernel refuses, by
    /// position. The kernel processes them in order; one system call each for sending and
    /// receiving serves `BATCH_REQUESTS` of them.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::NoFamily`].
    pub fn request_all<R: NetlinkRequest>(
        &mut self,
        mut requests: impl Iterator<Item = R>,
    ) -> Result<Vec<(usize, Error)>, Error> {
        let mut refused = Vec::new();
        let mut done = 0;
        loop {
            let batch: Vec<R> = requests.by_ref().take(BATCH_REQUESTS).collect();
            let count = batch.len();
            let Some(one) = batch.first() else {
                return Ok(refused);
            };
            // Requests of one type belong to one family. Looking it up takes a sequence number.
            let kind = self.kind(one)?;
            let first = self.sequence.wrapping_add(1);
            let mut message = Vec::new();
            for (index, request) in batch.iter().enumerate() {
                self.sequence = self.sequence.wrapping_add(1);
                // The kernel doesn't answer the others unless it refuses them.
                let ack = if index + 1 == count { ACK } else { 0 };
                encode(&mut message, kind, request, ack, self.sequence);
            }
            self.socket.send(&message, 0)?;
            let last = self.sequence;
            self.receive(|sequence, answer| {
                let Answer::End(outcome) = answer else {
                    return Continue(());
                };
                let index = sequence.wrapping_sub(first) as usize;
                // Skip unread answers to an earlier request.
                if index >= count {
                    return Continue(());
                }
                if let Err(error) = outcome {
                    refused.push((done + index, error));
                }
                if sequence == last {
                    Break(Ok(()))
                } else {
                    Continue(())
                }
            })?;
            done += count;
        }
    }

    /// Looks up the number of a multicast group of the family `name`.
    pub(super) fn group(&mut self, name: &'static str, group: &str) -> Result<u32, Error> {
        let found = self.control(name.as_bytes(), |family| {
            let mut groups = family.get_mcast_groups().ok()?;
            let of_name = groups.find(|member| {
                let known = member.get_name();
                known.is_ok_and(|known| known.to_bytes() == group.as_bytes())
            });
            of_name?.get_id().ok()
        })?;
        found.ok_or_else(|| Error::NoGroup {
            family: name.to_owned(),
            group: group.to_owned(),
        })
    }

    /// The message type of a request: the number of its family.
    fn kind<R: NetlinkRequest>(&mut self, request: &R) -> Result<u16, Error> {
        match request.protocol() {
            Protocol::Raw { request_type, .. } => Ok(request_type),
            Protocol::Generic(name) => self.family(name),
        }
    }

    fn family(&mut self, name: &'static [u8]) -> Result<u16, Error> {
        if let Some(number) = self.families.get(name) {
            return Ok(*number);
        }
        let found = self.control(name, |family| family.get_family_id().ok())?;
        let number = found.ok_or_else(|| no_family(name))?;
        self.families.insert(name, number);
        Ok(number)
    }

    /// Returns what `read` makes of the controller's answer about the family `name`.
    fn control<T>(
        &mut self,
        name: &[u8],
        read: impl Fn(IterableCtrlAttrs<'_>) -> Option<T>,
    ) -> Result<Option<T>, Error> {
        let mut found = None;
        match self.request(&get_family(name), |family| found = read(family)) {
            Err(error) if error.is(Errno::ENOENT) => Err(no_family(name)),
            other => other.map(|()| found),
        }
    }

    /// Passes every answer with its sequence number to `take`, until `take` breaks off.
    fn receive(
        &mut self,
        mut take: impl FnMut(u32, Answer<'_>) -> ControlFlow<Result<(), Error>>,
    ) -> Result<(), Error> {
        loop {
            let mut datagram = &mut self.buffer[..];
            let received = self.socket.recv(&mut datagram, 0)?;
            for message in messages(&self.buffer[..received]) {
                let (header, payload) = message?;
                let Some(answer) = answer(&header, payload)? else {
                    continue;
                };
                if let Break(outcome) = take(header.seq, answer) {
                    return outcome;
                }
            }
        }
    }
}

const REQUEST: u16 = NLM_F_REQUEST as u16;
const ACK: u16 = NLM_F_ACK as u16;
const DUMP: u16 = NLM_F_DUMP as u16;

/// A message in answer to a request.
enum Answer<'a> {
    /// The payload of a message of the family.
    Object(&'a [u8]),
    /// An acknowledgement, a refusal, or the end of a dump.
    End(Result<(), Error>),
}

/// Parses a message; `None` for messages without content.
fn answer<'a>(header: &Nlmsghdr, payload: &'a [u8]) -> Result<Option<Answer<'a>>, Error> {
    let kind = i32::from(header.r#type);
    // After the code, an error repeats the header of the request (NETLINK_CAP_ACK).
    let repeated = match kind {
        NLMSG_ERROR => Nlmsghdr::len(),
        NLMSG_DONE => 0,
        _ if kind < NLMSG_MIN_TYPE => return Ok(None),
        _ => return Ok(Some(Answer::Object(payload))),
    };
    let code = parse_i32(payload).ok_or_else(cut_short)?;
    let extended_ack = payload.get(size_of::<i32>() + repeated..);
    Ok(Some(Answer::End(match code {
        0 => Ok(()),
        _ => Err(refusal(code, extended_ack.unwrap_or_default())),
    })))
}

/// `code` is a negative errno, `extended_ack` the attributes after it.
fn refusal(code: i32, extended_ack: &[u8]) -> Error {
    let text = NlmsgerrAttrs::new(extended_ack).get_msg().ok();
    Error::Refused {
        source: io::Error::from_raw_os_error(code.saturating_neg()),
        text: text.map(|text| text.to_string_lossy().into_owned()),
    }
}

/// A request for the family `name`.
fn get_family(name: &[u8]) -> OpGetfamilyDo<'static> {
    let mut request = nlctrl::Request::new().op_getfamily_do();
    request.encode().push_family_name_bytes(name);
    request
}

fn no_family(name: &[u8]) -> Error {
    Error::NoFamily(String::from_utf8_lossy(name).into_owned())
}

/// Opens a socket in the namespace at `netns`, or in the caller's own.
pub(super) fn open<S: Send>(
    netns: Option<&Path>,
    make: impl FnOnce() -> io::Result<S> + Send,
) -> Result<S, Error> {
    Ok(match netns {
        Some(path) => netns::inside(path, make)??,
        None => make()?,
    })
}

fn connected(protocol: isize) -> io::Result<netlink_sys::Socket> {
    let mut socket = netlink_sys::Socket::new(protocol)?;
    socket.bind_auto()?;
    socket.connect(&SocketAddr::new(0, 0))?;
    socket.set_cap_ack(true)?;
    socket.set_ext_ack(true)?;
    Ok(socket)
}

/// Appends a request to a message.
fn encode<R: NetlinkRequest>(
    message: &mut Vec<u8>,
    kind: u16,
    request: &R,
    flags: u16,
    sequence: u32,
) {
    message.resize(nla_align_up(message.len()), 0);
    let header = Nlmsghdr {
        len: (Nlmsghdr::len() + request.payload().len()) as u32,
        r#type: kind,
        flags: REQUEST | request.flags() | flags,
        seq: sequence,
        pid: 0,
    };
    message.extend(header.as_slice());
    message.extend(request.payload());
}

/// The messages in a datagram, each with header and payload.
pub(super) fn messages(mut rest: &[u8]) -> impl Iterator<Item = Result<(Nlmsghdr, &[u8]), Error>> {
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let message = first_message(rest);
        let length = message
            .as_ref()
            .map_or(rest.len(), |(header, _)| header.len as usize);
        rest = rest.get(nla_align_up(length)..).unwrap_or_default();
        Some(message.ok_or_else(cut_short))
    })
}

fn first_message(bytes: &[u8]) -> Option<(Nlmsghdr, &[u8])> {
    let header = Nlmsghdr::new_from_slice(bytes.get(..Nlmsghdr::len())?)?;
    let payload = bytes.get(Nlmsghdr::len()..header.len as usize)?;
    Some((header, payload))
}

fn cut_short() -> Error {
    Error::Decode("truncated message".to_owned())
}

#[cfg(test)]
mod tests {
    use netlink_sys::protocols::NETLINK_GENERIC;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_request_has_its_header_and_begins_aligned() {
        let mut request = nlctrl::Request::new().op_getfamily_do();
        request.encode().push_family_name_bytes(b"ab");
        let mut message = vec![0xff; 3];
        encode(&mut message, 0x1234, &request, ACK, 9);
        let expected: &[u8] = &[
            0xff, 0xff, 0xff, 0, // what is there before
            27, 0, 0, 0, 0x34, 0x12, 5, 0, 9, 0, 0, 0, 0, 0, 0,
            0, // length, family, flags, sequence, port
            3, 1, 0, 0, // command, version
            7, 0, 2, 0, b'a', b'b', 0, // family name
        ];
        assert_eq!(message, expected);
    }

    #[test]
    fn a_family_that_is_not_there_is_named() {
        let mut socket = Socket::open(None, NETLINK_GENERIC).unwrap();
        let error = socket.find("no_such_family").unwrap_err();
        assert!(error.to_string().contains("\"no_such_family\""), "{error}");
        let error = socket.group("no_such_family", "events").unwrap_err();
        assert!(error.to_string().contains("\"no_such_family\""), "{error}");
    }

    #[test]
    fn of_many_requests_those_that_are_refused_are_known_by_their_positions() {
        let mut socket = Socket::open(None, NETLINK_GENERIC).unwrap();
        // More than fit in one message; one in the middle and the last are answered.
        let is_there = |position| [70, 99].contains(&position);
        let requests = (0..100).map(|position| {
            get_family(if is_there(position) {
                b"nlctrl"
            } else {
                b"no_such"
            })
        });
        let refused = socket.request_all(requests).unwrap();
        let positions: Vec<usize> = refused.iter().map(|(position, _)| *position).collect();
        let expected: Vec<usize> = (0..100).filter(|&position| !is_there(position)).collect();
        assert_eq!(positions, expected);
        let is_unknown = |error: &Error| error.is(Errno::ENOENT);
        assert!(refused.iter().all(|(_, error)| is_unknown(error)));
        // No answer is left for the next request to misread.
        assert!(socket.call(&get_family(b"nlctrl")).is_ok());
    }

    #[test]
    fn what_an_earlier_request_left_unread_is_no_refusal_of_a_later_one() {
        let mut socket = Socket::open(None, NETLINK_GENERIC).unwrap();
        let mut earlier = Vec::new();
        encode(
            &mut earlier,
            CONTROL.1,
            &get_family(b"no_such"),
            0,
            socket.sequence,
        );
        socket.socket.send(&earlier, 0).unwrap();

        let refused =
            socket.request_all([get_family(b"no_such"), get_family(b"no_such")].into_iter());
        let refused = refused.unwrap().into_iter();
        let positions: Vec<usize> = refused.map(|(position, _)| position).collect();
        assert_eq!(positions, [0, 1]);
    }

    #[test]
    fn groups_are_found_by_name() {
        let mut socket = Socket::open(None, NETLINK_GENERIC).unwrap();
        assert!(socket.group("nlctrl", "notify").unwrap() > 0);
        let error = socket.group("nlctrl", "nosuch").unwrap_err();
        assert!(error.to_string().contains("\"nosuch\""), "{error}");
    }

    #[test]
    fn a_refusal_carries_the_kernels_words() {
        let mut payload = Vec::from((-22_i32).to_ne_bytes());
        payload.extend([0; 16]);
        payload.extend([12, 0, 1, 0]);
        payload.extend(b"no path\0");
        let header = Nlmsghdr {
            r#type: NLMSG_ERROR as u16,
            ..Nlmsghdr::default()
        };
        let Some(Answer::End(Err(error))) = answer(&header, &payload).unwrap() else {
            panic!("not a refusal");
        };
        assert!(error.is(Errno::EINVAL));
        assert_eq!(error.to_string(), "the kernel refused: no path");
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_reader_panic_or_read_for_ever(
            bytes in proptest::collection::vec(0_u8..40, 0..200),
        ) {
            for (header, payload) in messages(&bytes).flatten() {
                let _ = answer(&header, payload);
            }
        }
    }
}
