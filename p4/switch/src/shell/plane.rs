// SPDX-License-Identifier: Apache-2.0

//! The loop of the data plane: drain the ring, let time pass, send, sleep.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::io::{Read as _, Write as _};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::clock::{Clock, be_punctual};
use super::jitter::Jitter;
use super::nic::HostNic;
use super::qdisc;
use super::ring::Ring;
use super::send::Sender;
use crate::capture::Captures;
use crate::network::Delivery;
use crate::queue_log::QueueLog;
use crate::server::{Shared, World};

/// How long the thread may sleep while packets are about to arrive. If links have no delay, packets
/// are late by up to the lower limit.
const STEP_NS: (u64, u64) = (1_000, 5_000_000);
/// Maximum time between two runs of the network while packets are in flight, even on long links.
/// Messages to controllers and rows of logs may be late by this much.
const LAG_NS: u64 = 5_000_000;
/// Room in the ring, in packets.
const RING_PACKETS: (usize, usize) = (2_048, 16_384);
/// How often the difference between the clocks is measured again.
const CALIBRATE_NS: u64 = 1_000_000_000;

/// Why the data plane could not start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A host-facing interface is missing.
    #[error("{interface}, the interface to {host}: {source}")]
    Interface {
        /// The interface.
        interface: String,
        /// The host at its other end.
        host: String,
        /// What the system said.
        source: io::Error,
    },
    /// A packet socket could not be opened.
    #[error("packet socket: {0} (it needs CAP_NET_RAW and CAP_NET_ADMIN)")]
    Socket(io::Error),
    /// Anything else.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Wakes or stops a [`DataPlane`] from elsewhere.
#[derive(Debug, Clone)]
pub struct Stop {
    stopping: Arc<AtomicBool>,
    event: Arc<File>,
}

impl Stop {
    /// Creates one.
    ///
    /// # Errors
    /// When the system is out of file descriptors.
    pub fn new() -> io::Result<Self> {
        // SAFETY: no pointers.
        let fd = unsafe { libc::eventfd(0, libc::EFD_NONBLOCK | libc::EFD_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: just opened, owned by nobody else.
        let event = unsafe { OwnedFd::from_raw_fd(fd) };
        Ok(Self {
            stopping: Arc::default(),
            event: Arc::new(event.into()),
        })
    }

    /// Wakes the data plane if it sleeps for want of packets.
    pub fn wake(&self) {
        // The counter can only overflow if nobody reads it. Then the data plane is awake anyway.
        let _ = (&*self.event).write(&1_u64.to_ne_bytes());
    }

    /// Ends the data plane.
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
        self.wake();
    }
}

/// Real interfaces and the world behind them.
#[derive(Debug)]
pub struct DataPlane {
    shared: Shared,
    stop: Stop,
    clock: Clock,
    ring: Ring,
    /// Interface index to host port, and the path of its packets.
    host_ports: BTreeMap<u32, (usize, Sending)>,
    /// The noise of each host port from the cable to the kernel.
    receiving: Vec<Jitter>,
    sender: Sender,
    pacing: Pacing,
    log: QueueLog,
    captures: Option<Captures>,
    lookahead_ns: u64,
    step_ns: u64,
    calibrate_at_ns: u64,
}

/// The path of a host's packets from its kernel to the cable.
#[derive(Debug)]
struct Sending {
    jitter: Jitter,
    nic: HostNic,
}

/// What holds packets back until they are due.
#[derive(Debug)]
enum Pacing {
    /// The kernel's `fq`.
    Kernel,
    /// This process. Packets wait here by time, then by order of sending.
    Process(BTreeMap<(u64, u64), Delivery>, u64),
}

/// When the thread has something to do.
#[derive(Debug, Clone, Copy)]
struct Due {
    /// Whether packets are about to reach hosts, so that more will follow.
    soon: bool,
    /// The latest time for it; `None` if there is nothing to do before a packet comes.
    at_ns: Option<u64>,
}

/// What woke the thread.
enum Wake {
    Packet,
    Time(u64),
    Request,
}

impl DataPlane {
    /// Opens the interfaces of all host ports of the world. `log` and `captures` record what
    /// happens there. `seed` seeds the noise of hosts.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn open(
        shared: Shared,
        stop: Stop,
        clock: Clock,
        log: QueueLog,
        captures: Option<Captures>,
        seed: u64,
    ) -> Result<Self, Error> {
        let world = shared.lock();
        // Without any delay the step is at least 1 ns, so that events that are due now happen now.
        let lookahead_ns = world.network.lookahead_ns().max(1);
        let mut interfaces = Vec::new();
        let mut pacing = Pacing::Kernel;
        let mut rate_bps = 0;
        let (mut sending, mut receiving) = (Vec::new(), Vec::new());
        for port in world.network.host_ports() {
            let error = |source: io::Error| Error::Interface {
                interface: port.interface.clone(),
                host: port.host.clone(),
                source,
            };
            let index = nix::net::if_::if_nametoindex(port.interface.as_str());
            let index = index.map_err(|errno| error(errno.into()))?;
            if !qdisc::hold_until_departure(index as i32).map_err(error)? {
                pacing = Pacing::Process(BTreeMap::new(), 0);
            }
            interfaces.push(index);
            rate_bps += port.rate_bps;
            let places = 2 * sending.len() as u64;
            let jitter = |place| Jitter::new(port.jitter_ns, seed, places + place);
            sending.push(Sending {
                jitter: jitter(0),
                nic: HostNic::new(port.rate_bps),
            });
            receiving.push(jitter(1));
        }
        drop(world);
        if matches!(pacing, Pacing::Process(..)) {
            tracing::warn!(
                "this kernel has no fq: packets leave when this process gets to send them"
            );
        }
        // The ring holds two steps of packets of a third of the full size.
        let packets_ns = |ns: u64| rate_bps as f64 / (8.0 * 512.0) * (2 * ns) as f64 / 1e9;
        let fitting = RING_PACKETS.1 as f64 / packets_ns(1).max(f64::MIN_POSITIVE);
        let step_ns = (2 * lookahead_ns)
            .min(fitting as u64)
            .clamp(STEP_NS.0, STEP_NS.1);
        let packets = (packets_ns(step_ns) as usize).clamp(RING_PACKETS.0, RING_PACKETS.1);
        let lowest = interfaces.iter().min().copied().unwrap_or(u32::MAX);
        let highest = interfaces.iter().max().copied().unwrap_or(u32::MAX);
        Ok(Self {
            ring: Ring::open(lowest, highest, packets).map_err(Error::Socket)?,
            sender: Sender::open(interfaces.iter().map(|index| *index as i32).collect())
                .map_err(Error::Socket)?,
            host_ports: interfaces.into_iter().zip((0..).zip(sending)).collect(),
            receiving,
            shared,
            stop,
            clock,
            pacing,
            log,
            captures,
            lookahead_ns,
            step_ns,
            calibrate_at_ns: 0,
        })
    }

    /// Runs until [`Stop::stop`].
    ///
    /// # Errors
    /// When clocks or sockets fail, or the queue log or a capture cannot be written.
    pub fn run(mut self) -> io::Result<()> {
        be_punctual()?;
        let mut now_ns = self.clock.now_ns()?;
        let mut deliveries = Vec::new();
        while !self.stop.stopping.load(Ordering::Acquire) {
            let due = {
                let shared = self.shared.clone();
                let mut world = shared.lock();
                now_ns = self.drain(&mut world, now_ns);
                let end_ns = now_ns + self.lookahead_ns;
                self.log
                    .advance(&mut world, now_ns, end_ns, &mut deliveries);
                if let Some(captures) = &mut self.captures {
                    captures.update(now_ns, &mut world, &deliveries);
                }
                for delivery in &mut deliveries {
                    let jitter = &mut self.receiving[delivery.host_port];
                    delivery.at_ns = jitter.passes_ns(delivery.at_ns);
                }
                self.due(&world, now_ns)
            };
            self.send(&mut deliveries)?;
            self.log.flush_if_due(now_ns)?;
            if let Some(captures) = &mut self.captures {
                captures.flush_if_due(now_ns)?;
            }
            now_ns = match self.wait(now_ns, due)? {
                // The packet's own timestamp is the present.
                Wake::Packet => now_ns,
                Wake::Time(at_ns) => at_ns,
                Wake::Request => self.clock.now_ns()?,
            };
        }
        if let Some(captures) = &mut self.captures {
            captures.flush(now_ns)?;
        }
        let shared = self.shared.clone();
        self.log.finish(now_ns, &mut shared.lock())
    }

    /// When this thread has something to do next.
    fn due(&self, world: &World, now_ns: u64) -> Due {
        let network = &world.network;
        let soon_ns = now_ns + 2 * self.step_ns;
        let delivery = network.next_delivery_ns(soon_ns + self.lookahead_ns);
        // The network runs ahead by its lookahead, so deliveries are known earlier by that.
        let delivery = delivery.map(|at_ns| at_ns.saturating_sub(self.lookahead_ns));
        let under_way = delivery.map(|at_ns| at_ns.min(now_ns + LAG_NS));
        let others = [
            world.digests_due_ns(),
            self.log.deadline_ns(network.now_ns()),
            self.captures.as_ref().and_then(Captures::deadline_ns),
            under_way,
        ];
        Due {
            soon: delivery.is_some_and(|at_ns| at_ns <= soon_ns),
            at_ns: others.into_iter().flatten().min(),
        }
    }

    /// Hands the packets in the ring over to the world. Returns the present as far as it is known:
    /// the time of the newest packet, or `now_ns` if that is later. It does not read the clock,
    /// because that is a system call in the lab, and an earlier time only costs lookahead.
    fn drain(&mut self, world: &mut World, mut now_ns: u64) -> u64 {
        let Self {
            ring,
            clock,
            host_ports,
            captures,
            ..
        } = self;
        ring.drain(|packet| {
            if let Some((port, Sending { jitter, nic })) = host_ports.get_mut(&packet.interface) {
                let began_ns = clock.monotonic_ns(packet.realtime_ns);
                now_ns = now_ns.max(began_ns);
                let begins_ns = jitter.passes_ns(began_ns);
                let sent_ns = nic.last_bit_ns(begins_ns, packet.frame.len());
                world.network.receive(*port, sent_ns, packet.frame);
                if let Some(captures) = captures {
                    captures.sent(*port, sent_ns, packet.frame);
                }
            }
        });
        now_ns
    }

    /// Gives packets to the kernel: all of them if the kernel holds them back, otherwise those that
    /// are due.
    fn send(&mut self, deliveries: &mut Vec<Delivery>) -> io::Result<()> {
        if let Pacing::Process(held, sequence) = &mut self.pacing {
            for delivery in deliveries.drain(..) {
                *sequence += 1;
                held.insert((delivery.at_ns, *sequence), delivery);
            }
            if held.is_empty() {
                return Ok(());
            }
            let later = held.split_off(&(self.clock.now_ns()? + 1, 0));
            deliveries.extend(std::mem::replace(held, later).into_values());
        }
        if deliveries.is_empty() {
            return Ok(());
        }
        self.sender.send(deliveries);
        let mut world = self.shared.lock();
        for delivery in deliveries.drain(..) {
            world.network.recycle(delivery.frame);
        }
        Ok(())
    }

    /// Sleeps until there is something to do.
    fn wait(&mut self, now_ns: u64, due: Due) -> io::Result<Wake> {
        let step_end_ns = now_ns + self.step_ns;
        if let Pacing::Process(held, _) = &self.pacing {
            if let Some(((due_ns, _), _)) = held.first_key_value() {
                let until_ns = due.at_ns.map_or(*due_ns, |_| (*due_ns).min(step_end_ns));
                self.clock.sleep_until(until_ns)?;
                return Ok(Wake::Time(until_ns.max(now_ns)));
            }
        }
        if due.soon {
            self.clock.sleep_until(step_end_ns)?;
            return Ok(Wake::Time(step_end_ns));
        }
        if now_ns >= self.calibrate_at_ns {
            self.clock.calibrate()?;
            self.calibrate_at_ns = now_ns + CALIBRATE_NS;
        }
        self.poll(now_ns, due.at_ns)
    }

    /// Waits for a packet, a request or a time.
    fn poll(&self, now_ns: u64, until_ns: Option<u64>) -> io::Result<Wake> {
        let timeout = until_ns.map(|at_ns| {
            let left_ns = at_ns.saturating_sub(now_ns);
            libc::timespec {
                tv_sec: (left_ns / 1_000_000_000) as libc::time_t,
                tv_nsec: (left_ns % 1_000_000_000) as libc::c_long,
            }
        });
        let mut files = [self.ring.as_raw_fd(), self.stop.event.as_raw_fd()].map(readable);
        let timeout = timeout
            .as_ref()
            .map_or(std::ptr::null(), std::ptr::from_ref);
        // SAFETY: all pointers are valid or null for the length of the call.
        let ready = unsafe {
            let count = files.len() as libc::nfds_t;
            libc::ppoll(files.as_mut_ptr(), count, timeout, std::ptr::null())
        };
        if ready < 0 {
            let error = io::Error::last_os_error();
            return match error.kind() {
                io::ErrorKind::Interrupted => Ok(Wake::Request),
                _ => Err(error),
            };
        }
        if files[1].revents != 0 {
            // Empty it. The count does not matter.
            let _ = (&*self.stop.event).read(&mut [0; 8]);
            return Ok(Wake::Request);
        }
        match until_ns {
            Some(at_ns) if ready == 0 => Ok(Wake::Time(at_ns.max(now_ns))),
            _ => Ok(Wake::Packet),
        }
    }
}

impl Drop for DataPlane {
    fn drop(&mut self) {
        if let Ok(lost @ 1..) = self.ring.lost_packets() {
            tracing::warn!(
                lost,
                "the ring was full, so packets from hosts were dropped"
            );
        }
    }
}

fn readable(fd: RawFd) -> libc::pollfd {
    libc::pollfd {
        fd,
        events: libc::POLLIN,
        revents: 0,
    }
}
