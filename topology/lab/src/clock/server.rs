// SPDX-License-Identifier: Apache-2.0

//! Serves a clock on a socket.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::{Clock, ClockPolicy, MESSAGE_LEN, Message};

/// A handle to read and set a clock that is being served.
#[derive(Debug, Clone)]
pub struct ClockHandle {
    clock: Rc<RefCell<Clock>>,
    changed: Rc<Notify>,
    start: Instant,
}

impl ClockHandle {
    /// A clock that starts now.
    pub fn new(policy: ClockPolicy) -> Self {
        Self {
            clock: Rc::new(RefCell::new(Clock::new(policy))),
            changed: Rc::default(),
            start: Instant::now(),
        }
    }

    /// Real time since the start.
    pub fn wall(&self) -> Duration {
        self.start.elapsed()
    }

    /// Virtual time.
    pub fn now_ns(&self) -> u64 {
        self.clock.borrow().now_ns(self.wall())
    }

    /// The current policy.
    pub fn policy(&self) -> ClockPolicy {
        self.clock.borrow().policy()
    }

    /// Sets the policy.
    pub fn set_policy(&self, policy: ClockPolicy) {
        self.clock.borrow_mut().set_policy(policy, self.wall());
        self.changed.notify_one();
    }

    /// See [`Clock::is_idle_forever`].
    pub fn is_idle_forever(&self) -> bool {
        self.clock.borrow().is_idle_forever()
    }
}

/// Serves the kernel at the other end of `socket` until it closes the socket.
pub async fn serve(handle: ClockHandle, mut socket: UnixStream) -> io::Result<()> {
    let mut received = Vec::with_capacity(16 * MESSAGE_LEN);
    let mut outgoing = Vec::with_capacity(16 * MESSAGE_LEN);
    loop {
        let deadline = {
            let mut clock = handle.clock.borrow_mut();
            let deadline = clock.poll(handle.wall());
            while let Some(message) = clock.poll_transmit() {
                outgoing.extend_from_slice(&message.encode());
            }
            deadline
        };
        if !outgoing.is_empty() {
            socket.write_all(&outgoing).await?;
            outgoing.clear();
        }
        let sleep = async {
            match deadline {
                Some(at) => tokio::time::sleep_until(handle.start + at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            read = socket.read_buf(&mut received) => {
                if read? == 0 {
                    return Ok(());
                }
                take_messages(&handle, &mut received)?;
            }
            () = sleep => {}
            () = handle.changed.notified() => {}
        }
    }
}

/// Passes all complete messages to the clock.
fn take_messages(handle: &ClockHandle, received: &mut Vec<u8>) -> io::Result<()> {
    let wall = handle.wall();
    let mut clock = handle.clock.borrow_mut();
    let mut taken = 0;
    while let Some(bytes) = received[taken..].first_chunk::<MESSAGE_LEN>() {
        let message = Message::decode(bytes)
            .map_err(|unknown| io::Error::new(io::ErrorKind::InvalidData, unknown))?;
        clock.handle(message, wall);
        taken += MESSAGE_LEN;
    }
    received.drain(..taken);
    Ok(())
}
