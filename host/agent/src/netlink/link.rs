//! A netlink socket of any protocol, in one network namespace, that asks and
//! reads the answers.

use std::io;
use std::ops::ControlFlow::{self, Break, Continue};
use std::path::Path;

use netlink_packet_core::{
    ErrorMessage, NLM_F_ACK, NLM_F_REQUEST, NetlinkDeserializable, NetlinkMessage, NetlinkPayload,
    NetlinkSerializable,
};
use netlink_sys::{Socket, SocketAddr};

use super::{Attributes, Error};
use crate::netns;

/// `NLMSGERR_ATTR_MSG` of include/uapi/linux/netlink.h.
const EXTENDED_ACK_TEXT: u16 = 1;
/// The kernel fills dumps in parts of at most 32 KiB.
pub(super) const DATAGRAM_BYTES: usize = 64 << 10;
/// What a capped ACK repeats of the request: its header.
const CAPPED_REQUEST_BYTES: usize = 16;
/// Requests in one message to the kernel: with what it says of each that it refuses
/// they fit into a socket's usual buffer.
const BATCH_REQUESTS: usize = 64;

/// A blocking socket.
///
/// The kernel answers before `send` returns, so that nothing here ever waits
/// and an event loop may call it as it is.
pub(super) struct Link {
    socket: Socket,
    sequence: u32,
    /// Big enough for what the kernel sends at once, so that no answer has to
    /// be looked at twice.
    buffer: Vec<u8>,
}

impl Link {
    /// Opens a socket of `protocol` (`NETLINK_*`) in the namespace at `netns`,
    /// or in the caller's own.
    pub(super) fn open(netns: Option<&Path>, protocol: isize) -> Result<Self, Error> {
        Ok(Self {
            socket: open(netns, || connected(protocol))?,
            sequence: 0,
            buffer: vec![0; DATAGRAM_BYTES],
        })
    }

    /// Sends all `requests`, which have no answers, and gives those that the kernel
    /// refuses by their positions. It takes them one after the other; a system call each
    /// way does for [`BATCH_REQUESTS`] of them.
    pub(super) fn request_all<T>(
        &mut self,
        mut requests: impl Iterator<Item = T>,
    ) -> Result<Vec<(usize, Error)>, Error>
    where
        T: NetlinkSerializable + NetlinkDeserializable + Into<NetlinkPayload<T>>,
    {
        let mut refused = Vec::new();
        let mut done = 0;
        loop {
            let batch: Vec<T> = requests.by_ref().take(BATCH_REQUESTS).collect();
            let count = batch.len();
            if count == 0 {
                return Ok(refused);
            }
            let first = self.sequence.wrapping_add(1);
            let mut bytes = Vec::new();
            for (index, request) in batch.into_iter().enumerate() {
                self.sequence = self.sequence.wrapping_add(1);
                // It is silent about the others, unless it refuses them.
                let flags = if index + 1 == count { NLM_F_ACK } else { 0 };
                bytes.extend(encode(request, flags, self.sequence));
            }
            self.socket.send(&bytes, 0)?;
            let last = self.sequence;
            self.receive::<T>(|sequence, payload| {
                let NetlinkPayload::Error(error) = payload else {
                    return Continue(());
                };
                let index = sequence.wrapping_sub(first) as usize;
                // What a request before this one has left unread is not about these.
                if index >= count {
                    return Continue(());
                }
                if let Err(error) = acknowledgement(&error) {
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

    /// Sends `request` with `flags` and gives `take` what comes back, until the
    /// kernel says that it is done.
    pub(super) fn request<T>(
        &mut self,
        request: T,
        flags: u16,
        mut take: impl FnMut(T),
    ) -> Result<(), Error>
    where
        T: NetlinkSerializable + NetlinkDeserializable + Into<NetlinkPayload<T>>,
    {
        self.sequence = self.sequence.wrapping_add(1);
        self.socket
            .send(&encode(request, flags, self.sequence), 0)?;
        let asked = self.sequence;
        self.receive(|sequence, payload| {
            if sequence != asked {
                return Continue(());
            }
            match payload {
                NetlinkPayload::Done(done) if done.code == 0 => Break(Ok(())),
                NetlinkPayload::Done(done) => Break(Err(refusal(done.code, &done.extended_ack))),
                NetlinkPayload::Error(error) => Break(acknowledgement(&error)),
                NetlinkPayload::InnerMessage(answer) => {
                    take(answer);
                    Continue(())
                }
                _ => Continue(()),
            }
        })
    }

    /// Gives `take` every message, with its sequence number, until that breaks off.
    fn receive<T: NetlinkDeserializable>(
        &mut self,
        mut take: impl FnMut(u32, NetlinkPayload<T>) -> ControlFlow<Result<(), Error>>,
    ) -> Result<(), Error> {
        loop {
            let mut datagram = &mut self.buffer[..];
            let received = self.socket.recv(&mut datagram, 0)?;
            for message in messages(&self.buffer[..received]) {
                let NetlinkMessage {
                    header, payload, ..
                } = message?;
                if let Break(outcome) = take(header.sequence_number, payload) {
                    return outcome;
                }
            }
        }
    }
}

/// Makes a socket in the namespace at `netns`, or in the caller's own.
pub(super) fn open<S: Send>(
    netns: Option<&Path>,
    make: impl FnOnce() -> io::Result<S> + Send,
) -> Result<S, Error> {
    Ok(match netns {
        Some(path) => netns::inside(path, make)??,
        None => make()?,
    })
}

/// The messages in a datagram.
pub(super) fn messages<T: NetlinkDeserializable>(
    mut rest: &[u8],
) -> impl Iterator<Item = Result<NetlinkMessage<T>, Error>> {
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let message = NetlinkMessage::<T>::deserialize(rest);
        rest = match &message {
            Ok(message) => {
                let length = (message.header.length as usize).next_multiple_of(4);
                &rest[length.clamp(1, rest.len())..]
            }
            Err(_) => &[],
        };
        Some(message.map_err(Error::from))
    })
}

fn connected(protocol: isize) -> io::Result<Socket> {
    let mut socket = Socket::new(protocol)?;
    socket.bind_auto()?;
    socket.connect(&SocketAddr::new(0, 0))?;
    socket.set_cap_ack(true)?;
    socket.set_ext_ack(true)?;
    Ok(socket)
}

/// The bytes of a request.
pub(super) fn encode<T>(request: T, flags: u16, sequence: u32) -> Vec<u8>
where
    T: NetlinkSerializable + Into<NetlinkPayload<T>>,
{
    let mut message = NetlinkMessage::from(request);
    message.header.flags = NLM_F_REQUEST | flags;
    message.header.sequence_number = sequence;
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

#[cfg(test)]
mod tests {
    use netlink_sys::protocols::NETLINK_SOCK_DIAG;
    use nix::libc::AF_INET;

    use super::*;
    use crate::netlink::diag::DiagMessage;

    /// Without `NLM_F_DUMP` it asks for one socket, which is not there.
    fn no_such_socket() -> DiagMessage {
        DiagMessage::tcp_sockets(AF_INET)
    }

    #[test]
    fn what_an_earlier_request_left_unread_is_no_refusal_of_a_later_one() {
        let mut link = Link::open(None, NETLINK_SOCK_DIAG).unwrap();
        let earlier = encode(no_such_socket(), 0, link.sequence);
        link.socket.send(&earlier, 0).unwrap();

        let refused = link.request_all([no_such_socket(), no_such_socket()].into_iter());
        let refused = refused.unwrap().into_iter();
        let positions: Vec<usize> = refused.map(|(position, _)| position).collect();
        assert_eq!(positions, [0, 1]);
    }

    #[test]
    fn a_refusal_carries_the_kernels_words() {
        let mut extended_ack = vec![12, 0, 1, 0];
        extended_ack.extend(b"no path\0");
        let error = refusal(-22, &extended_ack);
        assert!(error.is(nix::errno::Errno::EINVAL));
        assert_eq!(error.to_string(), "the kernel refused: no path");
    }
}
