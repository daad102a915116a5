// SPDX-License-Identifier: Apache-2.0

//! The clock of a lab: grants virtual time to one User-Mode Linux kernel.
//!
//! Computing takes no virtual time. When everything in the kernel sleeps, the kernel requests
//! the time of its next timer (`REQUEST`) and waits (`WAIT`) until the clock sends `RUN`. So the
//! clock's policy decides one thing: *when*, in real time, to grant a request.
//!
//! - free: at once, so that experiments run as fast as the machine allows.
//! - paced: when real time has advanced as far. Between requests the kernel may run ahead by
//!   [`PACED_AHEAD_NS`] without asking, which saves a pair of messages per packet. A lab that is
//!   too slow catches up by at most [`MAX_LAG_NS`].
//! - paused: never.
//!
//! Input from outside (the serial line) interrupts a waiting kernel. The kernel then sends `GET`,
//! requests the time in the answer, and must be run at that time. [`Clock::handle`] explains the
//! race with a `RUN` that was sent before.
//!
//! [`Clock`] does no I/O and reads no time: messages and real time go in, messages and a
//! deadline come out.

mod protocol;
mod server;

use std::collections::VecDeque;
use std::time::Duration;

pub use protocol::{MESSAGE_LEN, Message, Op, UnknownOp};
use serde::{Deserialize, Serialize};
pub use server::{ClockHandle, serve};

/// How far a free-running kernel may go without asking. It bounds how long, in virtual time, a
/// change of policy takes to have an effect.
pub const FREE_AHEAD_NS: u64 = 10_000_000;
/// How far a paced kernel may be ahead of real time.
pub const PACED_AHEAD_NS: u64 = 2_000_000;
/// Maximum lag of a paced kernel that is too slow. It makes up for the lag by running faster
/// than real time.
pub const MAX_LAG_NS: u64 = 100_000_000;
/// Time of day at virtual time 0, in ns since 1970; always the same.
pub const TIME_OF_DAY_NS: u64 = 1_750_000_000_000_000_000;

/// How virtual time advances.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ClockPolicy {
    /// As fast as the machine allows.
    Free,
    /// At most `ratio` times real time.
    Paced {
        /// Virtual seconds per real second, above 0.
        ratio: f64,
    },
    /// Not at all.
    Paused,
}
/// The kernel requests this time if it has no timer.
const NEVER_NS: u64 = i64::MAX as u64;

/// The state of the clock, see the module.
#[derive(Debug)]
pub struct Clock {
    policy: ClockPolicy,
    /// The latest virtual time that the kernel is known to have reached.
    now_ns: u64,
    /// The virtual time up to which it may have run without a message.
    free_until_ns: u64,
    /// The time at which the kernel wants to run next.
    request_ns: Option<u64>,
    /// Whether it waits for `RUN`.
    waiting: bool,
    /// Sequence number and time of a `RUN` without an acknowledgement.
    run_in_flight: Option<(u32, u64)>,
    /// A real time and the corresponding virtual time when paced.
    anchor: (Duration, u64),
    seq: u32,
    outbox: VecDeque<Message>,
}

impl Clock {
    /// A clock for a kernel that will connect.
    pub fn new(policy: ClockPolicy) -> Self {
        Self {
            policy,
            now_ns: 0,
            free_until_ns: 0,
            request_ns: None,
            waiting: false,
            run_in_flight: None,
            anchor: (Duration::ZERO, 0),
            seq: 0,
            outbox: VecDeque::new(),
        }
    }

    /// Processes a message of the kernel that arrived at real time `wall`.
    ///
    /// The kernel reads the socket in two places: while it waits for `RUN`, and while it waits
    /// for the acknowledgement of its own message. An interrupt moves it from the first to the
    /// second. A `RUN` read in the second sets the time but doesn't end the wait. The kernel
    /// acknowledges a `RUN` before it sends anything else. So a message that arrives before that
    /// acknowledgement shows that the `RUN` had no effect, and the same time is granted again.
    pub fn handle(&mut self, message: Message, wall: Duration) {
        if message.op == Op::Ack {
            if self
                .run_in_flight
                .is_some_and(|(seq, _)| seq == message.seq)
            {
                self.run_in_flight = None;
            }
            return;
        }
        if let Some((_, time_ns)) = self.run_in_flight.take() {
            self.waiting = true;
            self.request_ns = Some(time_ns);
        }
        let answer_ns = match message.op {
            Op::Request => {
                self.request_ns = Some(message.time_ns);
                message.time_ns
            }
            Op::Wait => {
                self.waiting = true;
                self.stop_running();
                message.time_ns
            }
            Op::Get => {
                self.stop_running();
                self.now_ns = self.now_ns(wall);
                // It will request this time, unless it already has.
                self.request_ns = Some(self.now_ns);
                self.now_ns
            }
            Op::Update => {
                self.now_ns = self.now_ns.max(message.time_ns);
                message.time_ns
            }
            Op::GetTod => TIME_OF_DAY_NS,
            Op::Start => {
                self.anchor = (wall, self.now_ns);
                // A nonzero time would be taken for an offer of shared memory.
                0
            }
            Op::Ack | Op::Run | Op::FreeUntil | Op::Broadcast => message.time_ns,
        };
        self.outbox.push_back(Message {
            op: Op::Ack,
            seq: message.seq,
            time_ns: answer_ns,
        });
    }

    /// Lets the kernel run if it is due. Returns the real time of the next call; `None` if only a
    /// message or a new policy can change anything.
    pub fn poll(&mut self, wall: Duration) -> Option<Duration> {
        let request_ns = self
            .request_ns
            .filter(|&at| self.waiting && at < NEVER_NS)?;
        match self.policy {
            ClockPolicy::Paused => None,
            ClockPolicy::Free => {
                self.run(request_ns, request_ns.saturating_add(FREE_AHEAD_NS));
                None
            }
            ClockPolicy::Paced { ratio } => {
                let paced_ns = self.paced_ns(wall, ratio);
                if request_ns > paced_ns {
                    let ahead_ns = (request_ns - self.anchor.1) as f64 / ratio;
                    // One ns more than rounding can lose.
                    return Some(self.anchor.0 + Duration::from_nanos(ahead_ns as u64 + 1));
                }
                if paced_ns - request_ns > MAX_LAG_NS {
                    self.anchor = (wall, request_ns + MAX_LAG_NS);
                }
                let ahead_ns = self.paced_ns(wall, ratio).saturating_add(PACED_AHEAD_NS);
                self.run(request_ns, ahead_ns);
                None
            }
        }
    }

    /// The next message for the kernel.
    pub fn poll_transmit(&mut self) -> Option<Message> {
        self.outbox.pop_front()
    }

    /// Sets the policy at real time `wall`.
    pub fn set_policy(&mut self, policy: ClockPolicy, wall: Duration) {
        let now_ns = self.now_ns(wall);
        self.now_ns = now_ns;
        self.anchor = (wall, now_ns);
        self.policy = policy;
    }

    /// The current policy.
    pub fn policy(&self) -> ClockPolicy {
        self.policy
    }

    /// Virtual time at real time `wall`. While the kernel runs freely, this is a lower bound.
    pub fn now_ns(&self, wall: Duration) -> u64 {
        let (ClockPolicy::Paced { ratio }, true, Some(request_ns)) =
            (self.policy, self.waiting, self.request_ns)
        else {
            return self.now_ns;
        };
        self.paced_ns(wall, ratio).min(request_ns).max(self.now_ns)
    }

    /// Whether the kernel waits for something that none of its timers will cause.
    pub fn is_idle_forever(&self) -> bool {
        self.waiting && self.request_ns.is_none_or(|at| at >= NEVER_NS)
    }

    fn paced_ns(&self, wall: Duration, ratio: f64) -> u64 {
        let elapsed_ns = wall.saturating_sub(self.anchor.0).as_nanos() as f64 * ratio;
        self.anchor.1.saturating_add(elapsed_ns as u64)
    }

    /// Only the kernel knows where it stopped between the last grant and its next timer, and it
    /// panics if time goes backwards. So assume the latest time that it was allowed to reach.
    fn stop_running(&mut self) {
        let reached_ns = self
            .request_ns
            .map_or(self.free_until_ns, |at| at.min(self.free_until_ns));
        self.now_ns = self.now_ns.max(reached_ns);
    }

    fn run(&mut self, time_ns: u64, free_until_ns: u64) {
        self.now_ns = time_ns;
        self.free_until_ns = free_until_ns;
        self.waiting = false;
        self.request_ns = None;
        self.send(Op::FreeUntil, free_until_ns);
        self.send(Op::Run, time_ns);
        self.run_in_flight = Some((self.seq, time_ns));
    }

    fn send(&mut self, op: Op, time_ns: u64) {
        self.seq = self.seq.wrapping_add(1);
        self.outbox.push_back(Message {
            op,
            seq: self.seq,
            time_ns,
        });
    }
}

#[cfg(test)]
mod tests;
