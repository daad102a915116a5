// SPDX-License-Identifier: Apache-2.0

//! IPv6 addresses of hosts. Each embeds the IPv4 address of the same host and path behind a
//! fixed prefix (the form of RFC 6052, section 2.2). Switches, kernels and programs identify
//! hosts by their IPv4 addresses, even where connections use IPv6.

use std::net::{Ipv4Addr, Ipv6Addr};

/// `fd57:6566:7400::/96`, a unique local prefix (RFC 4193); `IPV6_PREFIX` in
/// `p4/src/stages/headers.p4`.
const PREFIX: u128 = 0xfd57_6566_7400 << 80;

/// The IPv6 address that embeds a host's IPv4 address.
#[must_use]
pub fn ipv6_of(address: Ipv4Addr) -> Ipv6Addr {
    Ipv6Addr::from(PREFIX | u128::from(u32::from(address)))
}

/// The IPv4 address embedded in a host's IPv6 address; `None` for any other address.
#[must_use]
pub fn ipv4_in(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let bits = u128::from(address);
    #[allow(clippy::cast_possible_truncation)] // The low half of it is wanted.
    let low = bits as u32;
    (bits == PREFIX | u128::from(low)).then(|| Ipv4Addr::from(low))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ipv6_address_has_the_ipv4_address_at_its_end() {
        let ipv4 = Ipv4Addr::new(10, 2, 1, 4);
        let ipv6 = ipv6_of(ipv4);
        assert_eq!(
            ipv6,
            "fd57:6566:7400::10.2.1.4".parse::<Ipv6Addr>().unwrap()
        );
        assert_eq!(ipv4_in(ipv6), Some(ipv4));
    }

    #[test]
    fn others_have_none() {
        for other in ["::ffff:10.2.1.4", "fe80::1", "fd57:6566:7400::1:10.2.1.4"] {
            assert_eq!(ipv4_in(other.parse().unwrap()), None, "{other}");
        }
    }
}
