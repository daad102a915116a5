// SPDX-License-Identifier: Apache-2.0

//! Subscription to a multicast group of a generic netlink family.

use std::path::Path;

use netlink_bindings::builtin::BuiltinNfgenmsg;
use netlink_sys::protocols::NETLINK_GENERIC;
use netlink_sys::{AsyncSocket, AsyncSocketExt, TokioSocket};
use nix::errno::Errno;
use nix::libc::NLMSG_MIN_TYPE;
use tokio::runtime::Handle;

use super::{Error, Socket, socket};

/// Receive buffer of the socket while the agent is busy: thousands of events of 200 bytes.
const RECEIVE_BUFFER_BYTES: u32 = 1 << 20;

/// A subscription in one network namespace. It receives no messages of other namespaces.
pub struct Group {
    socket: TokioSocket,
    buffer: Vec<u8>,
}

impl Group {
    /// Joins `group` of the family `name` in the namespace at `netns`, or in the caller's own.
    ///
    /// # Errors
    /// [`Error::NoFamily`], [`Error::NoGroup`], or a socket error.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn join(netns: Option<&Path>, name: &'static str, group: &str) -> Result<Self, Error> {
        let number = Socket::open(netns, NETLINK_GENERIC)?.group(name, group)?;
        let runtime = Handle::current();
        let socket = socket::open(netns, || {
            // Another thread, inside that namespace.
            let _entered = runtime.enter();
            let mut socket = TokioSocket::new(NETLINK_GENERIC)?;
            socket.socket_mut().bind_auto()?;
            socket.socket_ref().set_rx_buf_sz(RECEIVE_BUFFER_BYTES)?;
            socket.socket_mut().add_membership(number)?;
            Ok(socket)
        })?;
        Ok(Self {
            socket,
            buffer: vec![0; socket::DATAGRAM_BYTES],
        })
    }

    /// Waits for messages, and returns what `read` makes of the command and attributes of each.
    /// Cancellation loses no message.
    ///
    /// # Errors
    /// [`Error::Overrun`]: messages were lost, so the kernel's state must be read anew.
    pub async fn next<T>(
        &mut self,
        read: impl Fn(u8, &[u8]) -> Option<T>,
    ) -> Result<Vec<T>, Error> {
        let mut rest = &mut self.buffer[..];
        let received = self.socket.recv_from(&mut rest).await;
        let unused = rest.len();
        let sender = match received {
            Err(error) if error.raw_os_error() == Some(Errno::ENOBUFS as i32) => {
                return Err(Error::Overrun);
            }
            other => other?,
        };
        let length = self.buffer.len() - unused;
        // Any process can send to a netlink socket; messages of the kernel have port 0.
        if sender.port_number() != 0 {
            return Ok(Vec::new());
        }
        let mut found = Vec::new();
        for message in socket::messages(&self.buffer[..length]) {
            let (header, payload) = message?;
            if i32::from(header.r#type) < NLMSG_MIN_TYPE {
                continue;
            }
            let (header, attributes) = payload
                .split_at_checked(BuiltinNfgenmsg::len())
                .ok_or_else(|| Error::Decode("message without a command".to_owned()))?;
            found.extend(read(header[0], attributes));
        }
        Ok(found)
    }
}
