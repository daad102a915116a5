// SPDX-License-Identifier: Apache-2.0

//! Runs the engine over real sockets: one thread, one epoll instance, all hosts.
//!
//! Both ends of every connection are in this process. So receivers know a flow's size without a
//! header, and the flow completes when its last byte is read, by the clock that started it.
//!
//! In the lab a system call or a wake-up costs 10 to 20 us of real time (but no virtual time).
//! So receivers ask to be woken once for `LOW_WATER_BYTES` or the end of the flow
//! (`SO_RCVLOWAT`), and senders write as much as the kernel accepts.

mod background;
mod classes;
mod connection;
mod counters;
mod ends;
mod hosts;
mod samples;
mod schedule;
mod subflows;
mod sys;
mod token;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::SocketAddrV4;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::socket::{self, MsgFlags, sockopt};
use weft_topology::Topology;

use crate::args::SchedulerOption;
use crate::engine::{Action, ConnectionId, Engine, FlowId, Outcome, Settings};
use crate::ideal_fabric::Protocol;
use crate::plan::{Background, Flow};
pub use background::Delivered;
pub use classes::Classes;
use connection::Connection;
pub use counters::Counters;
use hosts::Hosts;
pub use samples::Sample;
use samples::Samples;
pub use subflows::SubflowState;
use sys::{Epoll, Interest, Ready};
use token::Token;

/// Most bytes of one read or write.
const CHUNK_BYTES: usize = 256 * 1024;

/// Options of the sockets.
#[derive(Debug, Clone)]
pub struct Sockets {
    /// Transport protocol.
    pub protocol: Protocol,
    /// MPTCP scheduler to set in every host; `None` keeps the current one.
    pub scheduler: Option<String>,
    /// Scheduler options to set.
    pub scheduler_options: Vec<SchedulerOption>,
    /// TCP congestion control to set in every host; `None` keeps the current one.
    pub congestion: Option<String>,
    /// `SO_SNDBUF`; `None` keeps the kernel's autotuning.
    pub send_buffer_bytes: Option<u32>,
    /// `SO_RCVBUF`; `None` keeps the kernel's autotuning.
    pub receive_buffer_bytes: Option<u32>,
    /// How senders choose the classes that they write into their packets; `None` leaves that to
    /// the kernel.
    pub classes: Option<Classes>,
    /// Port that receivers listen on.
    pub port: u16,
    /// Interval at which the subflows of all flows are sampled.
    pub sample_ns: Option<u64>,
}

/// The results of a run.
#[derive(Debug)]
pub struct Run {
    /// The TCP congestion control of the hosts.
    pub congestion: String,
    /// The plan with the outcome of each flow and the counters of its connection meanwhile.
    pub flows: Vec<(Flow, Outcome, Counters)>,
    /// The subflows of each flow at its end.
    pub subflows: Vec<Sample>,
    /// The subflows of each flow during the flow, if they were sampled.
    pub samples: Vec<Sample>,
    /// What the TCP flows in the background delivered.
    pub background: Vec<Delivered>,
    /// When the run started, on `CLOCK_MONOTONIC`.
    pub start_ns: u64,
    /// When its last flow ended.
    pub end_ns: u64,
}

/// The progress of a run.
#[derive(Debug, Clone, Copy)]
pub struct Progress {
    /// Flows that have ended.
    pub flows: usize,
    /// Bytes that receivers have read.
    pub bytes: u64,
}

/// Sends all flows of `plan` between the hosts of `topology`, beside the background traffic
/// `other`. Calls `progress` for every flow that ends.
///
/// # Errors
/// If hosts cannot be entered or no socket can be made. The failure of a single flow is its
/// outcome, not an error.
pub fn run(
    topology: &Topology,
    plan: Vec<Flow>,
    other: Background,
    settings: Settings,
    sockets: Sockets,
    mut progress: impl FnMut(Progress),
) -> Result<Run> {
    prepare_process();
    let mut hosts = Hosts::open(topology)?;
    if let Some(scheduler) = &sockets.scheduler {
        hosts.set_scheduler(scheduler)?;
    }
    Hosts::set_options(&sockets.scheduler_options)?;
    if let Some(congestion) = &sockets.congestion {
        hosts.set_congestion(congestion)?;
    }
    let congestion = hosts.congestion()?;
    let schedule = topology.schedule.as_ref();
    let schedule = schedule.map(|schedule| schedule.socket.clone());
    let mut shell = Shell::new(hosts, sockets, schedule, &plan, other)?;

    let now = sys::now_ns()?;
    let mut engine = Engine::new(plan, settings, now);
    let mut now = now;
    let mut reported = 0;
    loop {
        while let Some(action) = engine.poll_action() {
            shell.act(&mut engine, action, now)?;
        }
        if engine.finished() != reported {
            reported = engine.finished();
            progress(Progress {
                flows: reported,
                bytes: shell.received_bytes,
            });
        }
        if engine.is_done() {
            break;
        }
        let sample_at = shell.samples.next_ns(engine.epoch_ns());
        let timeouts = [engine.poll_timeout(), shell.other.poll_timeout(), sample_at];
        let next = timeouts.into_iter().flatten().min();
        let timeout = next.map(|at| punctual(at.saturating_sub(now)));
        let ready = shell.epoll.wait(timeout).context("epoll")?;
        now = sys::now_ns()?;
        for event in ready {
            shell.handle(&mut engine, event, now)?;
        }
        if sample_at.is_some_and(|at| at <= now) {
            shell.samples.take(now, shell.connections.values());
        }
        shell.other.handle_timeout(now, &shell.zeroes);
        if engine.poll_timeout().is_some_and(|at| at <= now) {
            engine.handle_timeout(now);
        }
    }
    let start_ns = engine.epoch_ns().unwrap_or(now);
    let (plan, outcomes) = engine.into_outcomes();
    Ok(Run {
        congestion,
        subflows: shell.subflows,
        samples: shell.samples.taken,
        background: shell.other.delivered(),
        flows: plan
            .into_iter()
            .zip(outcomes)
            .zip(shell.counters)
            .map(|((flow, outcome), counters)| (flow, outcome, counters))
            .collect(),
        start_ns,
        end_ns: now,
    })
}

/// How long to wait at first for something that is due in `left_ns`.
///
/// The kernel lets waits with a timeout last 0.1% longer, to save wake-ups
/// (`select_estimate_accuracy` in fs/select.c). So a long wait ends a little early, and the
/// rest is short enough to be exact.
fn punctual(left_ns: u64) -> Duration {
    const EXACT_NS: u64 = 100_000;
    let early_ns = if left_ns > EXACT_NS { left_ns / 500 } else { 0 };
    Duration::from_nanos(left_ns - early_ns)
}

/// Requests exact timers and as many sockets as the system allows. If the system refuses, the
/// run is less exact or smaller, which shows in its results.
fn prepare_process() {
    let _ = nix::sys::prctl::set_timerslack(1);
    if let Ok((_, hard)) = getrlimit(Resource::RLIMIT_NOFILE) {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
    }
}

struct Shell {
    other: background::Traffic,
    epoll: Epoll,
    hosts: Hosts,
    sockets: Sockets,
    /// Socket to announce the start of traffic to, if links are to change.
    schedule: Option<PathBuf>,
    /// Listening sockets by host; only hosts that receive.
    listeners: BTreeMap<usize, OwnedFd>,
    connections: BTreeMap<ConnectionId, Connection>,
    /// Connections whose receiving end hasn't been accepted yet, by the sender's address.
    unaccepted: BTreeMap<SocketAddrV4, ConnectionId>,
    /// Counters by flow.
    counters: Vec<Counters>,
    subflows: Vec<Sample>,
    samples: Samples,
    received_bytes: u64,
    zeroes: Vec<u8>,
    scratch: Vec<u8>,
}

impl Shell {
    fn new(
        mut hosts: Hosts,
        sockets: Sockets,
        schedule: Option<PathBuf>,
        plan: &[Flow],
        other: Background,
    ) -> Result<Self> {
        let epoll = Epoll::new().context("epoll")?;
        let mut listeners = BTreeMap::new();
        let mut receivers: BTreeSet<usize> = plan.iter().map(|flow| flow.destination).collect();
        receivers.extend(other.tcp.iter().map(|(_, destination)| destination));
        for host in receivers {
            let fd = hosts.listen(host, &sockets)?;
            epoll.add(
                fd.as_fd(),
                Interest::Readable,
                Token::Listener(host).encode(),
            )?;
            listeners.insert(host, fd);
        }
        let samples = Samples::every(sockets.sample_ns);
        let other = background::Traffic::open(other, &mut hosts, &sockets, &epoll)?;
        Ok(Self {
            other,
            epoll,
            hosts,
            sockets,
            schedule,
            listeners,
            connections: BTreeMap::new(),
            unaccepted: BTreeMap::new(),
            counters: vec![Counters::default(); plan.len()],
            subflows: Vec::new(),
            samples,
            received_bytes: 0,
            zeroes: vec![0; CHUNK_BYTES],
            scratch: vec![0; CHUNK_BYTES],
        })
    }

    fn act(&mut self, engine: &mut Engine, action: Action, now: u64) -> Result<()> {
        match action {
            Action::Announce { start_ns } => {
                if let Some(socket) = &self.schedule {
                    schedule::start(socket, start_ns)?;
                }
            }
            Action::Request { connection, bytes } => {
                if let Some(state) = self.connections.get_mut(&connection) {
                    state.asked = bytes;
                    state.to_ask = bytes;
                    if let Err(error) = state.send_request(&self.zeroes) {
                        engine.handle_failed(connection, &format!("request: {error}"), now);
                    }
                }
            }
            Action::Open {
                connection,
                source,
                destination,
            } => {
                if let Err(error) = self.open(connection, source, destination) {
                    let from = self.hosts.name(source);
                    let to = self.hosts.name(destination);
                    let reason = format!("connect {from} to {to}: {error}");
                    engine.handle_failed(connection, &reason, now);
                }
            }
            Action::Send {
                connection,
                bytes,
                flow,
            } => {
                if let Err(error) = self.send(connection, bytes, flow) {
                    engine.handle_failed(connection, &format!("send: {error}"), now);
                }
            }
            Action::Finish { connection, flow } => {
                if let Some(state) = self.connections.get(&connection) {
                    self.counters[flow] = state.counters(&self.sockets).since(state.before);
                    let subflows = state.subflows().into_iter();
                    self.subflows
                        .extend(subflows.map(|state| (flow, now, state)));
                }
            }
            Action::Close { connection } => {
                if let Some(state) = self.connections.remove(&connection) {
                    self.unaccepted.remove(&state.address);
                }
            }
        }
        Ok(())
    }

    fn handle(&mut self, engine: &mut Engine, ready: Ready, now: u64) -> Result<()> {
        match Token::decode(ready.token) {
            Token::Listener(host) => self.accept(host)?,
            Token::Sender(connection) => {
                if let Err(error) = self.sender_ready(engine, connection, ready, now) {
                    engine.handle_failed(connection, &error.to_string(), now);
                }
            }
            Token::Receiver(connection) => {
                if let Err(error) = self.receive(engine, connection, ready, now) {
                    engine.handle_failed(connection, &format!("receive: {error}"), now);
                }
            }
            Token::Background(end) => {
                let has_started = engine.epoch_ns().is_some();
                self.other
                    .handle(end, ready, &mut self.scratch, has_started)?;
            }
        }
        Ok(())
    }

    fn open(&mut self, id: ConnectionId, source: usize, destination: usize) -> io::Result<()> {
        let (sender, address) = self.hosts.connect(source, destination, &self.sockets)?;
        let token = Token::Sender(id).encode();
        self.epoll.add(sender.as_fd(), Interest::Changes, token)?;
        self.unaccepted.insert(address, id);
        let connection = Connection {
            sender,
            receiver: None,
            address,
            connected: false,
            used: false,
            flow: None,
            to_ask: 0,
            asked: 0,
            to_send: 0,
            to_receive: 0,
            low_water: 1,
            marking: self.hosts.marking(&self.sockets),
            before: Counters::default(),
        };
        self.connections.insert(id, connection);
        Ok(())
    }

    /// Accepts the connections that wait at `host`.
    ///
    /// # Errors
    /// If the system is out of files or memory: the connection's sender would wait forever.
    fn accept(&mut self, host: usize) -> Result<()> {
        loop {
            let fd = match sys::accept(self.listeners[&host].as_fd()) {
                Ok(Some(fd)) => fd,
                Err(error) if sys::is_exhausted(&error) => {
                    return Err(error).context("accepting a connection (see ulimit -n)");
                }
                // A connection that breaks here also fails at its sender.
                Ok(None) | Err(_) => return Ok(()),
            };
            let Ok(peer) = socket::getpeername(fd.as_raw_fd()) else {
                continue;
            };
            let Some(peer) = ends::end(&peer) else {
                continue;
            };
            let Some(id) = self.unaccepted.remove(&peer) else {
                self.other.accept(peer, fd, &self.epoll);
                continue;
            };
            let token = Token::Receiver(id).encode();
            if let Some(connection) = self.connections.get_mut(&id) {
                if self
                    .epoll
                    .add(fd.as_fd(), Interest::Readable, token)
                    .is_ok()
                {
                    connection.receiver = Some(fd);
                    connection.adjust_low_water();
                    // As above.
                    let _ = connection.send_request(&self.zeroes);
                }
            }
        }
    }

    fn send(&mut self, id: ConnectionId, bytes: u64, flow: Option<FlowId>) -> io::Result<()> {
        let Some(connection) = self.connections.get_mut(&id) else {
            return Ok(());
        };
        if flow.is_some() && connection.used {
            connection.before = connection.counters(&self.sockets);
        }
        connection.used = true;
        connection.flow = flow;
        connection.to_send = bytes;
        connection.to_receive = bytes;
        if let (Some(marking), Some(flow)) = (&mut connection.marking, flow) {
            marking.begin(flow);
        }
        connection.adjust_low_water();
        connection.fill_send_buffer(&self.zeroes)
    }

    fn sender_ready(
        &mut self,
        engine: &mut Engine,
        id: ConnectionId,
        ready: Ready,
        now: u64,
    ) -> io::Result<()> {
        let Some(connection) = self.connections.get_mut(&id) else {
            return Ok(());
        };
        if ready.broken {
            let error = socket::getsockopt(&connection.sender, sockopt::SocketError)?;
            return Err(match error {
                0 => io::Error::other("connection closed by the kernel"),
                error => io::Error::from_raw_os_error(error),
            });
        }
        if ready.writable && !connection.connected {
            connection.connected = true;
            engine.handle_connected(id, now);
        } else if ready.readable && connection.asked > 0 {
            let bytes = connection.receive_request(&mut self.scratch)?;
            engine.handle_requested(id, bytes, now);
        } else if ready.writable {
            connection.fill_send_buffer(&self.zeroes)?;
        }
        Ok(())
    }

    fn receive(
        &mut self,
        engine: &mut Engine,
        id: ConnectionId,
        ready: Ready,
        now: u64,
    ) -> io::Result<()> {
        let Some(connection) = self.connections.get_mut(&id) else {
            return Ok(());
        };
        let Some(receiver) = connection.receiver.as_ref() else {
            return Ok(());
        };
        if !ready.readable {
            return Err(io::Error::other("connection closed by the kernel"));
        }
        let wanted = connection.to_receive.clamp(1, CHUNK_BYTES as u64) as usize;
        let count = match socket::recv(
            receiver.as_raw_fd(),
            &mut self.scratch[..wanted],
            MsgFlags::MSG_DONTWAIT,
        ) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => count as u64,
            Err(nix::Error::EAGAIN | nix::Error::EINTR) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        connection.to_receive = connection.to_receive.saturating_sub(count);
        connection.adjust_low_water();
        if connection.flow.is_some() {
            self.received_bytes += count;
        }
        engine.handle_received(id, count, now);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_that_last_a_thousandth_longer_do_not_end_too_late() {
        for left_ns in [100_001, 50_000_000, 30_000_000_000] {
            assert!(punctual(left_ns).as_nanos() * 1_001 / 1_000 <= u128::from(left_ns));
        }
        assert_eq!(punctual(99_999), Duration::from_nanos(99_999));
    }
}
