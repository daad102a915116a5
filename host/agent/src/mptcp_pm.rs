// SPDX-License-Identifier: Apache-2.0

//! The kernel's path managers (`mptcp_pm`, include/uapi/linux/mptcp_pm.h).
//!
//! The *in-kernel* path manager opens one subflow per local address that it is given
//! ([`use_addresses`]). The *userspace* path manager is a program that receives [`Event`]s
//! and opens and closes single subflows ([`UserspacePm`]), possibly several per address. A
//! connection keeps the path manager that was selected for its namespace ([`select`]) when it
//! began. With the userspace path manager, subflows of peers are accepted only while a program
//! listens to events.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;

use netlink_bindings::mptcp_pm::{
    EventAttr, EventType, IterableAddress, IterableEventAttr, PROTONAME, PushAddress, Request,
};
use netlink_bindings::traits::Pusher;
use netlink_bindings::utils::ErrorContext;
use netlink_sys::protocols::NETLINK_GENERIC;
use nix::libc::{AF_INET, AF_INET6};
use weft_topology::{ipv4_in, ipv6_of};

use crate::netlink::{Error, Group, Socket};
use crate::netns;

/// `MPTCP_PM_ADDR_FLAG_SUBFLOW`: connect from this address once a connection is established.
const FLAG_SUBFLOW: u32 = 1 << 1;
/// The most subflows that older kernels can be told to allow (`MPTCP_PM_ADDR_MAX`); newer ones take
/// `MPTCP_PM_SUBFLOWS_MAX`, 64 (`net/mptcp/pm_kernel.c`).
const OLD_LIMIT: u32 = 8;
/// `MPTCP_PM_EV_GRP_NAME`.
const EVENTS: &str = "mptcp_pm_events";
/// `MPTCP_PM_EV_FLAG_SERVER_SIDE`.
const FLAG_SERVER_SIDE: u16 = 1 << 1;

/// Makes every connection of the host in `netns` open one subflow from each of `addresses`
/// except the first, which its first subflow uses, or from the corresponding IPv6 addresses.
/// Calling it again changes nothing.
///
/// # Errors
/// The kernel's refusal; it takes at most 8 addresses.
pub fn use_addresses(netns: &Path, addresses: &[Ipv4Addr], ipv6: bool) -> Result<(), Error> {
    let mut socket = Socket::open(Some(netns), NETLINK_GENERIC)?;
    let more = addresses.get(1..).unwrap_or_default();
    let own = u32::try_from(more.len()).unwrap_or(u32::MAX);
    limit_subflows(&mut socket, own)?;
    // An earlier agent may have added them; adding them again fails (EBUSY).
    let mut known = Vec::new();
    socket.request(&Request::new().op_get_addr_dump(), |endpoint| {
        known.extend(endpoint.get_addr().ok().and_then(|it| address_of(&it)));
    })?;
    for (id, address) in (2..).zip(more) {
        if !known.contains(address) {
            let mut request = Request::new().op_add_addr_do();
            push_endpoint(request.encode().nested_addr(), id, *address, ipv6);
            socket.call(&request)?;
        }
    }
    Ok(())
}

/// Lets a connection have `own` further subflows. The passive side opens that many, too, and its
/// peer refuses them; until then they count against the same limit as those that it accepts. So
/// there has to be room for both, or it refuses its peer's when both ends open theirs at once.
fn limit_subflows(socket: &mut Socket, own: u32) -> Result<(), Error> {
    let mut set = |limit| {
        let mut limits = Request::new().op_set_limits_do();
        limits.encode().push_rcv_add_addrs(0).push_subflows(limit);
        socket.call(&limits)
    };
    let both = own.saturating_mul(2);
    match set(both) {
        Err(Error::Refused { .. }) if both > OLD_LIMIT => set(own.max(OLD_LIMIT)),
        other => other,
    }
}

/// The IPv4 address that stands for an endpoint's address.
fn address_of(endpoint: &IterableAddress<'_>) -> Option<Ipv4Addr> {
    of_either(endpoint.get_addr4(), endpoint.get_addr6())
}

/// The address from the IPv4 attribute, or from the IPv6 attribute.
fn of_either(
    ipv4: Result<u32, ErrorContext>,
    ipv6: Result<&[u8], ErrorContext>,
) -> Option<Ipv4Addr> {
    let other = || ipv4_in((*ipv6.ok()?.first_chunk::<16>()?).into());
    ipv4.ok().map(Ipv4Addr::from).or_else(other)
}

fn push_endpoint<P: Pusher>(endpoint: PushAddress<P>, id: u8, local: Ipv4Addr, ipv6: bool) {
    push_address(endpoint, local, ipv6)
        .push_id(id)
        .push_flags(FLAG_SUBFLOW);
}

/// The path manager of new connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathManager {
    /// The in-kernel path manager.
    Kernel,
    /// A userspace path manager.
    Userspace,
}

/// Selects the path manager of connections that the host in `netns` opens or accepts from
/// now on.
///
/// # Errors
/// If the kernel cannot select one: it lacks MPTCP, or is older than Linux 5.19.
pub fn select(netns: &Path, manager: PathManager) -> io::Result<()> {
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
        // Before Linux 6.15 the path manager was selected by number.
        Err(error) if error.kind() == io::ErrorKind::NotFound => write("pm_type", number),
        other => other,
    })?
}

/// An event for a userspace path manager. Other events are skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// A connection that this host opened can have more subflows now.
    Established {
        /// Token of the connection.
        token: u32,
        /// Local end of its first subflow.
        local: SocketAddrV4,
        /// Remote end.
        remote: SocketAddrV4,
        /// MPTCP's ID of the local address.
        address_id: u8,
    },
    /// A connection was closed.
    Closed {
        /// Token of the connection.
        token: u32,
    },
    /// A subflow was closed.
    SubflowClosed {
        /// Token of the connection.
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
        let group = Group::join(Some(netns), PROTONAME, EVENTS)?;
        Ok(Self { group })
    }

    /// Waits for events. The result may be empty.
    ///
    /// # Errors
    /// [`Error::Overrun`]: events were lost, so all connections must be read anew.
    pub async fn next(&mut self) -> Result<Vec<Event>, Error> {
        self.group
            .next(|command, attributes| event(command, &EventAttr::new(attributes)))
            .await
    }
}

fn event(command: u8, attributes: &IterableEventAttr<'_>) -> Option<Event> {
    let token = attributes.get_token().ok()?;
    match EventType::from_value(command.into())? {
        EventType::Established => {
            let flags = attributes.get_flags().unwrap_or(0);
            let server_side = attributes.get_server_side().unwrap_or(0);
            if flags & FLAG_SERVER_SIDE != 0 || server_side != 0 {
                return None;
            }
            let local = of_either(attributes.get_saddr4(), attributes.get_saddr6())?;
            let remote = of_either(attributes.get_daddr4(), attributes.get_daddr6())?;
            Some(Event::Established {
                token,
                local: SocketAddrV4::new(local, attributes.get_sport().ok()?),
                remote: SocketAddrV4::new(remote, attributes.get_dport().ok()?),
                address_id: attributes.get_loc_id().ok()?,
            })
        }
        EventType::Closed => Some(Event::Closed { token }),
        EventType::SubClosed => Some(Event::SubflowClosed { token }),
        _ => None,
    }
}

/// Sends the commands of a userspace path manager, in one namespace.
pub struct UserspacePm {
    socket: Socket,
    ipv6: bool,
}

impl UserspacePm {
    /// Opens a socket in the namespace at `netns`, for subflows over IPv6 or IPv4.
    ///
    /// # Errors
    /// [`Error::NoFamily`] on a kernel without MPTCP.
    pub fn open(netns: &Path, ipv6: bool) -> Result<Self, Error> {
        let mut socket = Socket::open(Some(netns), NETLINK_GENERIC)?;
        socket.find(PROTONAME)?;
        Ok(Self { socket, ipv6 })
    }

    /// Starts to open a subflow of the connection `token` from any port of `local`, which MPTCP
    /// knows as `address_id`.
    ///
    /// # Errors
    /// The kernel's refusal, for example because the connection is closed.
    pub fn open_subflow(
        &mut self,
        token: u32,
        local: Ipv4Addr,
        address_id: u8,
        remote: SocketAddrV4,
    ) -> Result<(), Error> {
        let mut request = Request::new().op_subflow_create_do();
        let source = request.encode().push_token(token).nested_addr();
        let source = push_address(source, local, self.ipv6).push_id(address_id);
        push_end(source.end_nested().nested_addr_remote(), remote, self.ipv6);
        self.socket.call(&request)
    }

    /// Closes one subflow of the connection `token`. The connection resends its undelivered data
    /// over another subflow.
    ///
    /// # Errors
    /// The kernel's refusal, for example because the subflow is already closed.
    pub fn close_subflow(
        &mut self,
        token: u32,
        local: SocketAddrV4,
        remote: SocketAddrV4,
    ) -> Result<(), Error> {
        let mut request = Request::new().op_subflow_destroy_do();
        let source = request.encode().push_token(token).nested_addr();
        let source = push_end(source, local, self.ipv6);
        push_end(source.end_nested().nested_addr_remote(), remote, self.ipv6);
        self.socket.call(&request)
    }
}

fn push_address<P: Pusher>(to: PushAddress<P>, address: Ipv4Addr, ipv6: bool) -> PushAddress<P> {
    if ipv6 {
        to.push_family(AF_INET6 as u16)
            .push_addr6(&ipv6_of(address).octets())
    } else {
        to.push_family(AF_INET as u16).push_addr4(address.into())
    }
}

fn push_end<P: Pusher>(to: PushAddress<P>, end: SocketAddrV4, ipv6: bool) -> PushAddress<P> {
    push_address(to, *end.ip(), ipv6).push_port(end.port())
}

#[cfg(test)]
mod tests {
    use netlink_bindings::mptcp_pm::{Address, PushEventAttr};
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn endpoints_that_the_kernel_has_are_known_again() {
        let mine = Ipv4Addr::new(10, 1, 1, 2);
        for ipv6 in [false, true] {
            let mut bytes = Vec::new();
            push_endpoint(PushAddress::new(&mut bytes), 2, mine, ipv6);
            assert_eq!(address_of(&Address::new(&bytes)), Some(mine));
        }
        assert_eq!(address_of(&Address::new(&[])), None);
    }

    /// The event from both ends of a connection, with extra attributes before and after them.
    fn parsed(
        command: EventType,
        ends: impl FnOnce(PushEventAttr<&mut Vec<u8>>) -> PushEventAttr<&mut Vec<u8>>,
        more: impl FnOnce(PushEventAttr<&mut Vec<u8>>) -> PushEventAttr<&mut Vec<u8>>,
    ) -> Option<Event> {
        let mut bytes = Vec::new();
        let attributes = ends(PushEventAttr::new(&mut bytes).push_token(7))
            .push_sport(40_000)
            .push_dport(5_000)
            .push_loc_id(0);
        drop(more(attributes));
        event(command as u8, &EventAttr::new(&bytes))
    }

    const LOCAL: Ipv4Addr = Ipv4Addr::new(10, 1, 1, 1);
    const REMOTE: Ipv4Addr = Ipv4Addr::new(10, 2, 1, 1);

    fn over_ipv4(to: PushEventAttr<&mut Vec<u8>>) -> PushEventAttr<&mut Vec<u8>> {
        to.push_saddr4(LOCAL.into()).push_daddr4(REMOTE.into())
    }

    fn over_ipv6(to: PushEventAttr<&mut Vec<u8>>) -> PushEventAttr<&mut Vec<u8>> {
        to.push_saddr6(&ipv6_of(LOCAL).octets())
            .push_daddr6(&ipv6_of(REMOTE).octets())
    }

    #[test]
    fn an_established_connection_is_told_with_both_ends_over_ipv4_and_ipv6() {
        let expected = Some(Event::Established {
            token: 7,
            local: "10.1.1.1:40000".parse().unwrap(),
            remote: "10.2.1.1:5000".parse().unwrap(),
            address_id: 0,
        });
        let established = EventType::Established;
        assert_eq!(parsed(established, over_ipv4, |all| all), expected);
        assert_eq!(parsed(established, over_ipv6, |all| all), expected);
    }

    #[test]
    fn the_end_that_accepted_opens_nothing() {
        let established = EventType::Established;
        let flagged = parsed(established, over_ipv4, |to| to.push_flags(FLAG_SERVER_SIDE));
        assert_eq!(flagged, None);
        let before_linux_6_18 = parsed(established, over_ipv4, |to| to.push_server_side(1));
        assert_eq!(before_linux_6_18, None);
    }

    #[test]
    fn events_of_other_kinds_and_cut_ones_are_nothing() {
        assert_eq!(parsed(EventType::Created, over_ipv4, |all| all), None);
        assert_eq!(event(EventType::Closed as u8, &EventAttr::new(&[])), None);
        assert_eq!(parsed(EventType::Established, |to| to, |all| all), None);
        let closed = parsed(EventType::SubClosed, |to| to, |all| all);
        assert_eq!(closed, Some(Event::SubflowClosed { token: 7 }));
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_reader_panic(
            command in 0_u8..18,
            bytes in proptest::collection::vec(0_u8..24, 0..96),
        ) {
            let _ = event(command, &EventAttr::new(&bytes));
            let _ = address_of(&Address::new(&bytes));
        }
    }
}
