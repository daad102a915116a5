// SPDX-License-Identifier: Apache-2.0

//! What opens subflows, and how many per path: the user's choice ([`PathManager`]), and the
//! loop that manages one host ([`Manager`]).

use std::collections::BTreeMap;
use std::fmt;
use std::net::Ipv4Addr;
use std::str::FromStr;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};
use tracing::{debug, warn};
use weft_text::units::parse_duration_ns;
use weft_topology::Host;

use crate::adaptive::{Action, Connection, Parameters, Policy, SUBFLOWS_MAX, Sample};
use crate::mptcp_pm::{Event, Events, UserspacePm};
use crate::netlink::Error;
use crate::subflows::Subflows;

/// Interval between checks when subflows of a fixed number are missing.
const FIXED_INTERVAL_NS: u64 = 1_000_000_000;

/// What opens subflows, and how many, as given on a command line.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum PathManager {
    /// The kernel, one per path.
    #[default]
    Kernel,
    /// The agent, this many per path.
    Fixed(usize),
    /// The agent, by measurement.
    Adaptive(Parameters),
}

impl PathManager {
    /// The agent's policy; `None` if the kernel manages subflows.
    #[must_use]
    pub fn policy(&self) -> Option<Policy> {
        match *self {
            Self::Kernel => None,
            Self::Fixed(subflows) => Some(Policy::Fixed(subflows)),
            Self::Adaptive(parameters) => Some(Policy::Adaptive(parameters)),
        }
    }

    /// Checks that a connection over `paths` paths can have this many subflows.
    ///
    /// # Errors
    /// One line with the limit.
    pub fn check(&self, paths: usize) -> Result<(), String> {
        match *self {
            Self::Fixed(subflows) if subflows * paths > SUBFLOWS_MAX => Err(format!(
                "--path-manager {self}: {subflows} subflows on each of {paths} paths are {}; a \
                 connection has at most {SUBFLOWS_MAX}",
                subflows * paths
            )),
            _ => Ok(()),
        }
    }
}

impl FromStr for PathManager {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "{text:?} is no path manager; write kernel, fixed:2, adaptive, or \
                 adaptive:interval=100ms,max=4,gain=10%"
            )
        };
        match text.split_once(':').unwrap_or((text, "")) {
            ("kernel", "") => Ok(Self::Kernel),
            ("fixed", number) => match number.parse() {
                Ok(subflows @ 1..=SUBFLOWS_MAX) => Ok(Self::Fixed(subflows)),
                _ => Err(format!(
                    "{text:?}: give 1 to {SUBFLOWS_MAX} subflows per path, such as fixed:2"
                )),
            },
            ("adaptive", "") if !text.ends_with(':') => Ok(Self::Adaptive(Parameters::default())),
            ("adaptive", settings) => {
                let mut parameters = Parameters::default();
                for setting in settings.split(',') {
                    let (name, value) = setting.split_once('=').ok_or_else(wrong)?;
                    set(&mut parameters, name, value).ok_or_else(wrong)??;
                }
                Ok(Self::Adaptive(parameters))
            }
            _ => Err(wrong()),
        }
    }
}

/// Sets a parameter; `None` if there is none with this name.
fn set(parameters: &mut Parameters, name: &str, value: &str) -> Option<Result<(), String>> {
    let done = match name {
        "interval" => parse_duration_ns(value).and_then(|interval_ns| {
            parameters.interval_ns = interval_ns;
            if (1_000_000..=60_000_000_000).contains(&interval_ns) {
                Ok(())
            } else {
                Err(format!("interval={value}: give 1ms to 60s"))
            }
        }),
        "max" => match value.parse() {
            Ok(max @ 1..=SUBFLOWS_MAX) => {
                parameters.max = max;
                Ok(())
            }
            _ => Err(format!(
                "max={value}: give 1 to {SUBFLOWS_MAX} subflows per path"
            )),
        },
        "gain" => match value
            .strip_suffix('%')
            .and_then(|number| number.parse::<f64>().ok())
        {
            Some(percent) if (1.0..=100.0).contains(&percent) => {
                parameters.gain = percent / 100.0;
                Ok(())
            }
            _ => Err(format!("gain={value}: give 1% to 100%, such as 10%")),
        },
        _ => return None,
    };
    Some(done)
}

impl fmt::Display for PathManager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kernel => f.write_str("kernel"),
            Self::Fixed(subflows) => write!(f, "fixed:{subflows}"),
            Self::Adaptive(parameters) => write!(
                f,
                "adaptive:interval={}us,max={},gain={}%",
                parameters.interval_ns as f64 / 1e3,
                parameters.max,
                parameters.gain * 100.0
            ),
        }
    }
}

/// Manages the subflows of one host.
pub struct Manager {
    host: String,
    events: Events,
    pm: UserspacePm,
    subflows: Subflows,
    connections: Connections,
    start: Instant,
}

impl Manager {
    /// Starts to listen in the namespace of `host`, for connections over IPv6 or IPv4.
    ///
    /// # Errors
    /// If the kernel lacks MPTCP or `sock_diag`.
    pub fn open(host: &Host, policy: Policy, ipv6: bool) -> Result<Self, Error> {
        Ok(Self {
            host: host.name.clone(),
            events: Events::listen(&host.netns)?,
            pm: UserspacePm::open(&host.netns, ipv6)?,
            subflows: Subflows::open(&host.netns)?,
            connections: Connections::new(policy, &host.addresses),
            start: Instant::now(),
        })
    }

    /// Opens and closes subflows forever. Takes over existing connections. After lost events it
    /// reads the state of all subflows.
    pub async fn run(mut self) {
        self.poll();
        loop {
            let due = self.due();
            tokio::select! {
                events = self.events.next() => match events {
                    Ok(events) => events.into_iter().for_each(|event| self.handle(event)),
                    Err(Error::Overrun) => {
                    debug!(host = self.host, "events were lost; reading all subflows");
                        self.poll();
                    }
                    Err(error) => {
                    warn!(host = self.host, "events have ended: {error}");
                        return;
                    }
                },
                () = wait(due) => self.poll(),
            }
        }
    }

    /// When to read the subflows next; `None` while there is nothing to manage, because a timer
    /// costs real time in a lab.
    fn due(&self) -> Option<Instant> {
        let interval_ns = match self.connections.policy {
            Policy::Adaptive(parameters) if !self.connections.known.is_empty() => {
                parameters.interval_ns
            }
            Policy::Fixed(_) if self.connections.known.values().any(Connection::is_waiting) => {
                FIXED_INTERVAL_NS
            }
            _ => return None,
        };
        // On a fixed grid, so that events in between don't delay it.
        let ticks = self.now_ns() / interval_ns + 1;
        Some(self.start + Duration::from_nanos(ticks.saturating_mul(interval_ns)))
    }

    fn now_ns(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Established {
                token,
                local,
                remote,
                address_id,
            } => {
                let first = Sample::first(local, remote, address_id);
                let actions = self.connections.begin(self.now_ns(), token, first);
                self.apply(token, actions);
            }
            Event::Closed { token } => {
                self.connections.known.remove(&token);
            }
            Event::SubflowClosed { token } => {
                if self.connections.known.contains_key(&token) {
                    self.poll();
                }
            }
        }
    }

    /// Reads all subflows and acts on them.
    fn poll(&mut self) {
        let found = match self.subflows.by_confirmed_connection() {
            Ok(found) => found,
            Err(error) => {
                warn!(host = self.host, "reading subflows: {error}");
                return;
            }
        };
        self.connections
            .known
            .retain(|token, _| found.contains_key(token));
        for (token, samples) in found {
            let actions = self.connections.observe(self.now_ns(), token, &samples);
            self.apply(token, actions);
        }
    }

    fn apply(&mut self, token: u32, actions: Vec<Action>) {
        for action in actions {
            debug!(host = self.host, token, ?action, "subflow");
            let done = match action {
                Action::Open {
                    local,
                    address_id,
                    remote,
                } => self.pm.open_subflow(token, local, address_id, remote),
                Action::Close { local, remote } => self.pm.close_subflow(token, local, remote),
            };
            // The connection may have closed meanwhile.
            if let Err(error) = done {
                debug!(host = self.host, token, ?action, "refused: {error}");
            }
        }
    }
}

/// The connections of one host.
struct Connections {
    policy: Policy,
    addresses: Vec<Ipv4Addr>,
    /// Connections by token.
    known: BTreeMap<u32, Connection>,
}

impl Connections {
    /// For a host with these `addresses`, one per path.
    fn new(policy: Policy, addresses: &[Ipv4Addr]) -> Self {
        Self {
            policy,
            addresses: addresses.to_vec(),
            known: BTreeMap::new(),
        }
    }

    /// Adds a connection that can have more subflows than its first. Does nothing if a read of
    /// all subflows has already found it.
    fn begin(&mut self, now_ns: u64, token: u32, first: Sample) -> Vec<Action> {
        if self.known.contains_key(&token) {
            return Vec::new();
        }
        self.observe(now_ns, token, &[first])
    }

    /// Processes the current samples of all subflows of a connection.
    fn observe(&mut self, now_ns: u64, token: u32, samples: &[Sample]) -> Vec<Action> {
        let Some(first) = samples.first() else {
            return Vec::new();
        };
        // Connections from addresses outside the fabric are not managed.
        if !self.addresses.contains(first.local.ip()) {
            return Vec::new();
        }
        self.known
            .entry(token)
            .or_insert_with(|| Connection::new(self.policy, &self.addresses, first.remote, now_ns))
            .observe(now_ns, samples)
    }
}

async fn wait(until: Option<Instant>) {
    match until {
        Some(until) => sleep_until(until).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddrV4;

    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        for text in [
            "kernel",
            "fixed:1",
            "fixed:8",
            "adaptive:interval=100000us,max=4,gain=10%",
            "adaptive:interval=1500us,max=2,gain=25%",
        ] {
            let manager: PathManager = text.parse().unwrap();
            assert_eq!(manager.to_string(), text);
        }
        assert_eq!(
            "adaptive".parse(),
            Ok(PathManager::Adaptive(Parameters::default()))
        );
        assert_eq!(
            "adaptive:max=2".parse(),
            Ok(PathManager::Adaptive(Parameters {
                max: 2,
                ..Parameters::default()
            }))
        );
    }

    #[test]
    fn mistakes_are_told_with_what_would_be_right() {
        for (text, said) in [
            ("", "fixed:2"),
            ("userspace", "adaptive"),
            ("kernel:1", "kernel"),
            ("fixed", "fixed:2"),
            ("fixed:0", "1 to 8"),
            ("fixed:9", "1 to 8"),
            ("adaptive:", "interval=100ms"),
            ("adaptive:speed=1", "interval=100ms"),
            ("adaptive:interval=5", "is no duration"),
            ("adaptive:interval=5us", "1ms to 60s"),
            ("adaptive:max=none", "1 to 8"),
            ("adaptive:gain=0.1", "10%"),
        ] {
            let error = text.parse::<PathManager>().unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
        }
    }

    #[test]
    fn more_subflows_than_a_connection_can_have_are_refused() {
        assert_eq!(PathManager::Fixed(4).check(2), Ok(()));
        let error = PathManager::Fixed(4).check(4).unwrap_err();
        assert!(error.contains("are 16"), "{error}");
        assert_eq!(
            PathManager::Adaptive(Parameters::default()).check(8),
            Ok(())
        );
    }

    #[test]
    fn an_event_of_a_connection_that_was_found_already_opens_nothing() {
        let addresses = [1, 2].map(|path| Ipv4Addr::new(10, 1, 1, path));
        let subflow = |path: usize, port| {
            let local = SocketAddrV4::new(addresses[path], port);
            Sample::first(local, "10.2.1.1:5000".parse().unwrap(), 0)
        };
        let mut connections = Connections::new(Policy::Fixed(2), &addresses);
        let first = subflow(0, 40_000);
        assert_eq!(connections.observe(0, 7, &[first]).len(), 3);
        let all = [first, subflow(0, 1), subflow(1, 2), subflow(1, 3)];
        assert_eq!(connections.observe(1, 7, &all), []);

        assert_eq!(connections.begin(2, 7, first), []);
        assert_eq!(connections.begin(2, 8, first).len(), 3);
    }
}
