// SPDX-License-Identifier: Apache-2.0

//! Network namespaces of hosts. One thread enters them one after another.

use std::fs::File;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;

use anyhow::{Context, Result, bail};
use nix::sched::{CloneFlags, setns};
use nix::sys::socket::{self, Backlog, sockopt};
use weft_topology::Topology;

use super::classes::Marking;
use super::ends::{end, sockaddr};
use super::{Sockets, sys};
use crate::args::SchedulerOption;
use crate::plan::{UDP_OVER_IPV6_PAYLOAD_BYTES, UDP_PAYLOAD_BYTES};
use weft_text::usage::WrongUsage;

/// Lists the available MPTCP schedulers (Linux 6.10).
const AVAILABLE: &str = "/proc/sys/net/mptcp/available_schedulers";
/// The MPTCP scheduler of a namespace.
const SCHEDULER: &str = "/proc/sys/net/mptcp/scheduler";
/// The options of our schedulers, for all namespaces.
const OPTIONS: &str = "/sys/module/weft/parameters";
/// Lists the available TCP congestion controls.
const CONGESTION_AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";
/// The TCP congestion control of a namespace.
const CONGESTION: &str = "/proc/sys/net/ipv4/tcp_congestion_control";

/// All hosts of a topology, and the one whose namespace this thread is in.
#[derive(Debug)]
pub(super) struct Hosts {
    hosts: Vec<Host>,
    current: Option<usize>,
    ipv6: bool,
}

#[derive(Debug)]
struct Host {
    name: String,
    netns: File,
    address: Ipv4Addr,
}

impl Hosts {
    pub(super) fn open(topology: &Topology) -> Result<Self> {
        let hosts = topology.hosts.iter().map(|host| {
            let netns = File::open(&host.netns)
                .with_context(|| format!("{}: {}", host.name, host.netns.display()))?;
            let address = host.addresses.first().copied();
            Ok(Host {
                name: host.name.clone(),
                netns,
                address: address.with_context(|| format!("{} has no address", host.name))?,
            })
        });
        Ok(Self {
            hosts: hosts.collect::<Result<_>>()?,
            current: None,
            ipv6: topology.ipv6,
        })
    }

    pub(super) fn len(&self) -> usize {
        self.hosts.len()
    }

    pub(super) fn name(&self, host: usize) -> &str {
        &self.hosts[host].name
    }

    /// Sets the MPTCP scheduler of every host. Existing connections keep theirs.
    pub(super) fn set_scheduler(&mut self, scheduler: &str) -> Result<()> {
        for host in 0..self.len() {
            self.enter(host)?;
            if let Err(error) = std::fs::write(SCHEDULER, scheduler) {
                let known = read_trimmed(AVAILABLE);
                if known.is_empty() {
                    bail!("{}: {SCHEDULER}: {error}", self.name(host));
                }
                bail!(WrongUsage(format!(
                    "scheduler {scheduler:?}: this kernel does not have it; it has {known}"
                )));
            }
        }
        Ok(())
    }

    /// How a sender sets classes; `None` if it sets none.
    pub(super) fn marking(&self, sockets: &Sockets) -> Option<Marking> {
        let classes = sockets.classes.clone()?;
        Some(Marking::new(classes, self.ipv6))
    }

    /// Sets options of the schedulers, for all hosts and for existing connections too. They are not
    /// reset after the run.
    pub(super) fn set_options(options: &[SchedulerOption]) -> Result<()> {
        for option in options {
            let file = Path::new(OPTIONS).join(&option.name);
            if !file.exists() {
                bail!(WrongUsage(format!(
                    "scheduler option {option}: this kernel's schedulers have none of that name; \
                     they have {}",
                    option_names()
                )));
            }
            // The kernel has commas between the values of an array; here they end an option.
            std::fs::write(file, option.value.replace('/', ","))
                .with_context(|| format!("scheduler option {option}"))?;
        }
        Ok(())
    }

    /// Sets the TCP congestion control of every host, and so of all subflows. Existing
    /// connections keep theirs.
    pub(super) fn set_congestion(&mut self, congestion: &str) -> Result<()> {
        for host in 0..self.len() {
            self.enter(host)?;
            let Err(error) = std::fs::write(CONGESTION, congestion) else {
                continue;
            };
            match error.kind() {
                io::ErrorKind::NotFound => {
                    let known = read_trimmed(CONGESTION_AVAILABLE);
                    bail!(WrongUsage(format!(
                        "congestion control {congestion:?}: this kernel does not have it; it has \
                         {known}"
                    )));
                }
                io::ErrorKind::PermissionDenied => bail!(
                    "congestion control {congestion:?}: only for privileged users; add it to \
                     net.ipv4.tcp_allowed_congestion_control"
                ),
                _ => bail!("{}: {CONGESTION}: {error}", self.name(host)),
            }
        }
        Ok(())
    }

    /// The TCP congestion control of the hosts. The first is read; all have the same.
    pub(super) fn congestion(&mut self) -> Result<String> {
        if self.len() > 0 {
            self.enter(0)?;
        }
        let text = std::fs::read_to_string(CONGESTION).context(CONGESTION)?;
        Ok(text.trim().to_owned())
    }

    /// Opens a socket in `host` that listens on its first address. Accepted connections inherit
    /// its receive buffer.
    pub(super) fn listen(&mut self, host: usize, sockets: &Sockets) -> Result<OwnedFd> {
        self.enter(host)?;
        let address = SocketAddrV4::new(self.hosts[host].address, sockets.port);
        let listener = sys::stream_socket(sockets.protocol, self.ipv6)
            .map_err(explain_socket)
            .and_then(|fd| {
                if let Some(bytes) = sockets.receive_buffer_bytes {
                    set_buffer(&fd, Buffer::Receive, bytes)?;
                }
                socket::setsockopt(&fd, sockopt::ReuseAddr, &true)?;
                socket::bind(fd.as_raw_fd(), &sockaddr(address, self.ipv6))?;
                socket::listen(&fd, Backlog::MAXCONN)?;
                Ok(fd)
            });
        listener.with_context(|| format!("{}: listen on {address}", self.name(host)))
    }

    /// Opens a socket in `source` and starts to connect it from its first address to that of
    /// `destination`. Returns it with its own port.
    pub(super) fn connect(
        &mut self,
        source: usize,
        destination: usize,
        sockets: &Sockets,
    ) -> io::Result<(OwnedFd, SocketAddrV4)> {
        self.enter(source)?;
        let fd = sys::stream_socket(sockets.protocol, self.ipv6)?;
        if let Some(bytes) = sockets.send_buffer_bytes {
            set_buffer(&fd, Buffer::Send, bytes)?;
        }
        let own = SocketAddrV4::new(self.hosts[source].address, 0);
        socket::bind(fd.as_raw_fd(), &sockaddr(own, self.ipv6))?;
        let own = end(&socket::getsockname(fd.as_raw_fd())?).unwrap_or(own);
        let far = SocketAddrV4::new(self.hosts[destination].address, sockets.port);
        match socket::connect(fd.as_raw_fd(), &sockaddr(far, self.ipv6)) {
            Ok(()) | Err(nix::Error::EINPROGRESS) => Ok((fd, own)),
            Err(error) => Err(error.into()),
        }
    }

    /// Opens a socket in `source` that sends datagrams to one in `destination`, on this port.
    pub(super) fn datagrams(
        &mut self,
        source: usize,
        destination: usize,
        port: u16,
    ) -> io::Result<(OwnedFd, OwnedFd)> {
        let far = SocketAddrV4::new(self.hosts[destination].address, port);
        let far = sockaddr(far, self.ipv6);
        self.enter(destination)?;
        let receiver = sys::datagram_socket(self.ipv6)?;
        // Several sources may send to the same host.
        socket::setsockopt(&receiver, sockopt::ReuseAddr, &true)?;
        socket::bind(receiver.as_raw_fd(), &far)?;
        self.enter(source)?;
        let sender = sys::datagram_socket(self.ipv6)?;
        socket::connect(sender.as_raw_fd(), &far)?;
        Ok((sender, receiver))
    }

    /// Payload of a datagram that fills a frame.
    pub(super) fn datagram_bytes(&self) -> usize {
        if self.ipv6 {
            UDP_OVER_IPV6_PAYLOAD_BYTES
        } else {
            UDP_PAYLOAD_BYTES
        }
    }

    fn enter(&mut self, host: usize) -> io::Result<()> {
        if self.current != Some(host) {
            setns(&self.hosts[host].netns, CloneFlags::CLONE_NEWNET)?;
            self.current = Some(host);
        }
        Ok(())
    }
}

/// The contents of a kernel file for a message; empty if there is no such file.
fn read_trimmed(path: &str) -> String {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.split_whitespace().collect::<Vec<_>>().join(", ")
}

/// The names of the schedulers' options, for a message.
fn option_names() -> String {
    let mut names: Vec<_> = std::fs::read_dir(OPTIONS)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names.join(", ")
}

/// The two buffers of a socket.
#[derive(Debug, Clone, Copy)]
enum Buffer {
    Send,
    Receive,
}

/// Sets `SO_SNDBUF` or `SO_RCVBUF` to `bytes`. The kernel reserves twice as much, for its own
/// overhead, and stops autotuning. Exceeds `net.core.wmem_max` and `rmem_max` if allowed.
fn set_buffer(fd: &OwnedFd, buffer: Buffer, bytes: u32) -> io::Result<()> {
    let (force, polite) = match buffer {
        Buffer::Send => (libc::SO_SNDBUFFORCE, libc::SO_SNDBUF),
        Buffer::Receive => (libc::SO_RCVBUFFORCE, libc::SO_RCVBUF),
    };
    sys::set_socket_option(fd.as_fd(), force, bytes)
        .or_else(|_| sys::set_socket_option(fd.as_fd(), polite, bytes))
}

fn explain_socket(error: io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(libc::EPROTONOSUPPORT | libc::ENOPROTOOPT | libc::EINVAL) => io::Error::new(
            error.kind(),
            "this kernel has no MPTCP (or net.mptcp.enabled is 0); use --protocol tcp instead",
        ),
        _ => error,
    }
}
