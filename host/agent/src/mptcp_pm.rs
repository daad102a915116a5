//! The kernel's path managers (`mptcp_pm`, include/uapi/linux/mptcp_pm.h).
//!
//! The one *in the kernel* opens one subflow per local address that it is given
//! ([`use_addresses`]). The one *in user space* leaves all to a program, which
//! hears of connections as [`Event`]s and opens and closes subflows one by one
//! ([`UserspacePm`]), several from one address if it likes. A connection has the
//! one that was chosen for its namespace ([`choose`]) when it began. With the
//! latter, subflows of peers are accepted as long as a program listens to events.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;

use weft_topology::{ipv4_in, ipv6_of};

use crate::netlink::{Attribute, Attributes, Error, Family, GenericSocket, Group};
use crate::netns;

const NAME: &str = "mptcp_pm";
const VERSION: u8 = 1;
/// `MPTCP_PM_CMD_ADD_ADDR`, `MPTCP_PM_CMD_GET_ADDR`, `MPTCP_PM_CMD_SET_LIMITS`.
const ADD_ADDR: u8 = 1;
const GET_ADDR: u8 = 3;
const SET_LIMITS: u8 = 5;
/// `MPTCP_PM_CMD_SUBFLOW_CREATE`, `MPTCP_PM_CMD_SUBFLOW_DESTROY`.
const SUBFLOW_CREATE: u8 = 10;
const SUBFLOW_DESTROY: u8 = 11;
/// `MPTCP_PM_ATTR_*`.
const ATTR_ADDR: u16 = 1;
const ATTR_RCV_ADD_ADDRS: u16 = 2;
const ATTR_SUBFLOWS: u16 = 3;
const ATTR_TOKEN: u16 = 4;
const ATTR_ADDR_REMOTE: u16 = 6;
/// `MPTCP_PM_ADDR_ATTR_*`.
const ADDR_FAMILY: u16 = 1;
const ADDR_ID: u16 = 2;
const ADDR_ADDR4: u16 = 3;
const ADDR_ADDR6: u16 = 4;
const ADDR_PORT: u16 = 5;
const ADDR_FLAGS: u16 = 6;
/// `MPTCP_PM_ADDR_FLAG_SUBFLOW`: connect from here as soon as a connection is up.
const FLAG_SUBFLOW: u32 = 1 << 1;
const AF_INET: u16 = 2;
const AF_INET6: u16 = 10;
/// `MPTCP_PM_EV_GRP_NAME`.
const EVENTS: &str = "mptcp_pm_events";
/// `MPTCP_EVENT_*`.
const EVENT_ESTABLISHED: u8 = 2;
const EVENT_CLOSED: u8 = 3;
const EVENT_SUB_CLOSED: u8 = 11;
/// `MPTCP_ATTR_*`, the attributes of events.
const EVENT_TOKEN: u16 = 1;
const EVENT_LOCAL_ID: u16 = 3;
/// Those of IPv6 come one after those of IPv4.
const EVENT_SOURCE: u16 = 5;
const EVENT_DESTINATION: u16 = 7;
const EVENT_SOURCE_PORT: u16 = 9;
const EVENT_DESTINATION_PORT: u16 = 10;
const EVENT_FLAGS: u16 = 13;
const EVENT_SERVER_SIDE: u16 = 18;
/// `MPTCP_PM_EV_FLAG_SERVER_SIDE`.
const FLAG_SERVER_SIDE: u16 = 1 << 1;

/// Makes every connection of the host in `netns` open one subflow from each
/// of `addresses` but the first, which its first subflow has already, or of the
/// IPv6 addresses that go with them. Done again, it changes nothing.
///
/// # Errors
/// The kernel's refusal; more than 8 addresses are more than it takes.
pub fn use_addresses(netns: &Path, addresses: &[Ipv4Addr], ipv6: bool) -> Result<(), Error> {
    let mut socket = GenericSocket::open(Some(netns))?;
    let family = socket.family(NAME, VERSION)?;
    let more = addresses.get(1..).unwrap_or_default();
    let limit = u32::try_from(more.len()).unwrap_or(u32::MAX);
    // The passive side counts the subflows that it accepts against its limit too.
    let limits = vec![
        Attribute::u32(ATTR_RCV_ADD_ADDRS, 0),
        Attribute::u32(ATTR_SUBFLOWS, limit),
    ];
    socket.call(family, SET_LIMITS, limits)?;
    // An agent before this one may have done it; to do it again is refused (EBUSY).
    let known = endpoints(&socket.dump(family, GET_ADDR)?);
    for (id, address) in (2..).zip(more) {
        if !known.contains(address) {
            socket.call(family, ADD_ADDR, vec![endpoint(id, *address, ipv6)])?;
        }
    }
    Ok(())
}

/// The addresses in the kernel's answers to `GET_ADDR`.
fn endpoints(answers: &[Attributes]) -> Vec<Ipv4Addr> {
    let address = |answer: &Attributes| {
        let members = Attributes::parse(answer.bytes(ATTR_ADDR)?).ok()?;
        of_either(&members, ADDR_ADDR4)
    };
    answers.iter().filter_map(address).collect()
}

/// The address in attribute `ipv4`, or in the one after it, which is for IPv6.
fn of_either(attributes: &Attributes, ipv4: u16) -> Option<Ipv4Addr> {
    let other = || attributes.ipv6(ipv4 + 1).and_then(ipv4_in);
    attributes.ipv4(ipv4).or_else(other)
}

fn endpoint(id: u8, local: Ipv4Addr, ipv6: bool) -> Attribute {
    let mut members = address(local, ipv6);
    members.extend([
        Attribute::u8(ADDR_ID, id),
        Attribute::u32(ADDR_FLAGS, FLAG_SUBFLOW),
    ]);
    Attribute::nest(ATTR_ADDR, &members)
}

/// Which path manager new connections get.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathManager {
    /// The kernel's own.
    Kernel,
    /// A program's.
    Userspace,
}

/// Chooses the path manager of connections that the host in `netns` opens or
/// accepts from now on.
///
/// # Errors
/// A kernel that cannot be told so: MPTCP is missing, or older than Linux 5.19.
pub fn choose(netns: &Path, manager: PathManager) -> io::Result<()> {
    let (name, number) = match manager {
        PathManager::Kernel => ("kernel", "0"),
        PathManager::Userspace => ("userspace", "1"),
    };
    let write = |file: &str, value| {
        let path = Path::new("/proc/sys/net/mptcp").join(file);
        std::fs::write(&path, value)
            .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
    };
    netns::inside(netns, || match write("path_manager", name) {
        // Before Linux 6.15 it had a number only.
        Err(error) if error.kind() == io::ErrorKind::NotFound => write("pm_type", number),
        other => other,
    })?
}

/// What the kernel tells a path manager in user space, as far as it matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// A connection that this host opened can have more subflows now.
    Established {
        /// Of the connection.
        token: u32,
        /// This end of its first subflow.
        local: SocketAddrV4,
        /// The other end.
        remote: SocketAddrV4,
        /// MPTCP's identifier of the local address.
        address_id: u8,
    },
    /// A connection is gone.
    Closed {
        /// Of the connection.
        token: u32,
    },
    /// A connection has lost a subflow.
    SubflowClosed {
        /// Of the connection.
        token: u32,
    },
}

/// The events of one namespace.
pub struct Events {
    group: Group,
}

impl Events {
    /// Listens in the namespace at `netns`.
    ///
    /// # Errors
    /// [`Error::NoFamily`] on a kernel without MPTCP.
    pub fn listen(netns: &Path) -> Result<Self, Error> {
        let group = Group::join(Some(netns), NAME, EVENTS)?;
        Ok(Self { group })
    }

    /// Waits for events; may give none.
    ///
    /// # Errors
    /// [`Error::Overrun`]: the connections have to be looked at anew.
    pub async fn next(&mut self) -> Result<Vec<Event>, Error> {
        let messages = self.group.next().await?;
        Ok(messages
            .iter()
            .filter_map(|(command, attributes)| event(*command, attributes))
            .collect())
    }
}

fn event(command: u8, attributes: &Attributes) -> Option<Event> {
    let token = attributes.u32(EVENT_TOKEN)?;
    match command {
        EVENT_ESTABLISHED => {
            let flags = attributes.u16(EVENT_FLAGS).unwrap_or(0);
            let server_side = attributes.u8(EVENT_SERVER_SIDE).unwrap_or(0);
            if flags & FLAG_SERVER_SIDE != 0 || server_side != 0 {
                return None;
            }
            let end = |address, port| {
                let port = u16::from_be(attributes.u16(port)?);
                Some(SocketAddrV4::new(of_either(attributes, address)?, port))
            };
            Some(Event::Established {
                token,
                local: end(EVENT_SOURCE, EVENT_SOURCE_PORT)?,
                remote: end(EVENT_DESTINATION, EVENT_DESTINATION_PORT)?,
                address_id: attributes.u8(EVENT_LOCAL_ID)?,
            })
        }
        EVENT_CLOSED => Some(Event::Closed { token }),
        EVENT_SUB_CLOSED => Some(Event::SubflowClosed { token }),
        _ => None,
    }
}

/// The hands of a path manager in user space, in one namespace.
pub struct UserspacePm {
    socket: GenericSocket,
    family: Family,
    ipv6: bool,
}

impl UserspacePm {
    /// Opens it in the namespace at `netns`, for subflows over IPv6 or IPv4.
    ///
    /// # Errors
    /// [`Error::NoFamily`] on a kernel without MPTCP.
    pub fn open(netns: &Path, ipv6: bool) -> Result<Self, Error> {
        let mut socket = GenericSocket::open(Some(netns))?;
        let family = socket.family(NAME, VERSION)?;
        Ok(Self {
            socket,
            family,
            ipv6,
        })
    }

    /// Begins to open a subflow of the connection `token` from any port of
    /// `local`, which is known to MPTCP as `address_id`.
    ///
    /// # Errors
    /// The kernel's refusal, for one because the connection is gone.
    pub fn open_subflow(
        &mut self,
        token: u32,
        local: Ipv4Addr,
        address_id: u8,
        remote: SocketAddrV4,
    ) -> Result<(), Error> {
        let mut source = address(local, self.ipv6);
        source.push(Attribute::u8(ADDR_ID, address_id));
        self.ask(SUBFLOW_CREATE, token, &source, remote)
    }

    /// Closes one subflow of the connection `token`. What it had not delivered
    /// the connection sends again on another one.
    ///
    /// # Errors
    /// The kernel's refusal, for one because it is closed already.
    pub fn close_subflow(
        &mut self,
        token: u32,
        local: SocketAddrV4,
        remote: SocketAddrV4,
    ) -> Result<(), Error> {
        let local = socket_address(local, self.ipv6);
        self.ask(SUBFLOW_DESTROY, token, &local, remote)
    }

    fn ask(
        &mut self,
        command: u8,
        token: u32,
        source: &[Attribute],
        remote: SocketAddrV4,
    ) -> Result<(), Error> {
        let attributes = vec![
            Attribute::u32(ATTR_TOKEN, token),
            Attribute::nest(ATTR_ADDR, source),
            Attribute::nest(ATTR_ADDR_REMOTE, &socket_address(remote, self.ipv6)),
        ];
        self.socket.call(self.family, command, attributes)
    }
}

fn address(address: Ipv4Addr, ipv6: bool) -> Vec<Attribute> {
    let (family, address) = if ipv6 {
        (AF_INET6, Attribute::ipv6(ADDR_ADDR6, ipv6_of(address)))
    } else {
        (AF_INET, Attribute::ipv4(ADDR_ADDR4, address))
    };
    vec![Attribute::u16(ADDR_FAMILY, family), address]
}

fn socket_address(end: SocketAddrV4, ipv6: bool) -> Vec<Attribute> {
    let mut members = address(*end.ip(), ipv6);
    members.push(Attribute::u16(ADDR_PORT, end.port()));
    members
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_that_the_kernel_has_are_known_again() {
        let mine = Ipv4Addr::new(10, 1, 1, 2);
        for ipv6 in [false, true] {
            let answers = [vec![endpoint(2, mine, ipv6)].into(), Attributes::default()];
            assert_eq!(endpoints(&answers), [mine]);
        }
    }

    fn established() -> Vec<Attribute> {
        vec![
            Attribute::u32(EVENT_TOKEN, 7),
            Attribute::ipv4(EVENT_SOURCE, [10, 1, 1, 1].into()),
            Attribute::ipv4(EVENT_DESTINATION, [10, 2, 1, 1].into()),
            Attribute::new(EVENT_SOURCE_PORT, 40_000u16.to_be_bytes().into()),
            Attribute::new(EVENT_DESTINATION_PORT, 5_000u16.to_be_bytes().into()),
            Attribute::u8(EVENT_LOCAL_ID, 0),
        ]
    }

    #[test]
    fn an_established_connection_is_told_with_both_ends() {
        assert_eq!(
            event(EVENT_ESTABLISHED, &established().into()),
            Some(Event::Established {
                token: 7,
                local: "10.1.1.1:40000".parse().unwrap(),
                remote: "10.2.1.1:5000".parse().unwrap(),
                address_id: 0,
            })
        );
    }

    #[test]
    fn one_over_ipv6_is_told_with_the_same_ends() {
        let mut over_ipv6 = established();
        let ends = [
            (EVENT_SOURCE, [10, 1, 1, 1]),
            (EVENT_DESTINATION, [10, 2, 1, 1]),
        ];
        for (at, (ipv4, address)) in (1..).zip(ends) {
            over_ipv6[at] = Attribute::ipv6(ipv4 + 1, ipv6_of(address.into()));
        }
        let told = event(EVENT_ESTABLISHED, &over_ipv6.into());
        assert_eq!(told, event(EVENT_ESTABLISHED, &established().into()));
        assert!(told.is_some());
    }

    #[test]
    fn the_end_that_accepted_opens_nothing() {
        let mut flagged = established();
        flagged.push(Attribute::u16(EVENT_FLAGS, FLAG_SERVER_SIDE));
        assert_eq!(event(EVENT_ESTABLISHED, &flagged.into()), None);
        let mut before_linux_6_18 = established();
        before_linux_6_18.push(Attribute::u8(EVENT_SERVER_SIDE, 1));
        assert_eq!(event(EVENT_ESTABLISHED, &before_linux_6_18.into()), None);
    }

    #[test]
    fn events_of_other_kinds_and_cut_ones_are_nothing() {
        assert_eq!(event(1, &established().into()), None);
        assert_eq!(event(EVENT_CLOSED, &Attributes::default()), None);
        assert_eq!(
            event(EVENT_ESTABLISHED, &established()[..3].to_vec().into()),
            None
        );
    }
}
