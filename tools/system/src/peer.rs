// SPDX-License-Identifier: GPL-2.0

//! The peers that the limits of a server distinguish.

use std::net::{IpAddr, Ipv6Addr};

/// The peer that uses an address: an address of IPv4, or a /64 network of IPv6, because one machine may use all addresses
/// of its network.
pub fn of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
        address => address,
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn addresses_of_one_network_are_one_peer() {
        let of = |address: &str| super::of(address.parse().unwrap()).to_string();
        assert_eq!(of("2001:db8:1:2::1"), "2001:db8:1:2::");
        assert_eq!(of("2001:db8:1:2:ffff:ffff:ffff:ffff"), "2001:db8:1:2::");
        assert_eq!(of("2001:db8:1:3::1"), "2001:db8:1:3::");
        assert_eq!(of("192.0.2.1"), "192.0.2.1");
        // A socket of IPv6 shows peers of IPv4 so.
        assert_eq!(of("::ffff:192.0.2.1"), "192.0.2.1");
        assert_eq!(of("::ffff:192.0.2.2"), "192.0.2.2");
    }
}
