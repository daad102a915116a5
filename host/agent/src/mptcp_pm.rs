//! The kernel's path manager (`mptcp_pm`, include/uapi/linux/mptcp_pm.h):
//! which local addresses make subflows, and how many.

use std::net::Ipv4Addr;
use std::path::Path;

use nix::errno::Errno;

use crate::netlink::{Attribute, Error, GenericSocket};

const NAME: &str = "mptcp_pm";
const VERSION: u8 = 1;
/// `MPTCP_PM_CMD_ADD_ADDR`, `MPTCP_PM_CMD_SET_LIMITS`.
const ADD_ADDR: u8 = 1;
const SET_LIMITS: u8 = 5;
/// `MPTCP_PM_ATTR_*`.
const ATTR_ADDR: u16 = 1;
const ATTR_RCV_ADD_ADDRS: u16 = 2;
const ATTR_SUBFLOWS: u16 = 3;
/// `MPTCP_PM_ADDR_ATTR_*`.
const ADDR_FAMILY: u16 = 1;
const ADDR_ID: u16 = 2;
const ADDR_ADDR4: u16 = 3;
const ADDR_FLAGS: u16 = 6;
/// `MPTCP_PM_ADDR_FLAG_SUBFLOW`: connect from here as soon as a connection is up.
const FLAG_SUBFLOW: u32 = 1 << 1;
const AF_INET: u16 = 2;

/// Makes every connection of the host in `netns` open one subflow from each
/// of `addresses` but the first, which its first subflow has already. Done
/// again, it changes nothing.
///
/// # Errors
/// The kernel's refusal; more than 8 addresses are more than it takes.
pub fn use_addresses(netns: &Path, addresses: &[Ipv4Addr]) -> Result<(), Error> {
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
    for (id, address) in (2..).zip(more) {
        match socket.call(family, ADD_ADDR, vec![endpoint(id, *address)]) {
            Err(error) if !error.is(Errno::EEXIST) => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

fn endpoint(id: u8, address: Ipv4Addr) -> Attribute {
    let members = [
        Attribute::u16(ADDR_FAMILY, AF_INET),
        Attribute::u8(ADDR_ID, id),
        Attribute::ipv4(ADDR_ADDR4, address),
        Attribute::u32(ADDR_FLAGS, FLAG_SUBFLOW),
    ];
    Attribute::nest(ATTR_ADDR, &members)
}
