//! Networks, and addresses behind which a machine keeps what is its own: itself, its link, and whoever hands out its
//! credentials.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// Addresses with a common beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Network {
    first: IpAddr,
    bits: u32,
}

/// Clouds' own addresses, beside link-local ones: Alibaba, Azure's wire server, Oracle; and by IPv6 Google, Oracle,
/// Scaleway.
const METADATA: [IpAddr; 6] = [
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    IpAddr::V4(Ipv4Addr::new(168, 63, 129, 16)),
    IpAddr::V4(Ipv4Addr::new(192, 0, 0, 192)),
    IpAddr::V6(Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xc1, 0, 0, 0, 0, 0xa9fe, 0xa9fe)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0x42, 0, 0, 0, 0, 0, 0x42)),
];

/// Networks of IPv6 that lead elsewhere than they read, or to whoever is near. An address of IPv4 is written in the first
/// seven: mapped, translated, compatible, NAT64 (both), 6to4, Teredo. Then what was site-local, and AWS's own.
const ELSEWHERE: [(Ipv6Addr, u32); 9] = [
    (Ipv6Addr::new(0, 0, 0, 0, 0, 0xffff, 0, 0), 96),
    (Ipv6Addr::new(0, 0, 0, 0, 0xffff, 0, 0, 0), 96),
    (Ipv6Addr::UNSPECIFIED, 96),
    (Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0), 96),
    (Ipv6Addr::new(0x64, 0xff9b, 1, 0, 0, 0, 0, 0), 48),
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16),
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 32),
    (Ipv6Addr::new(0xfec0, 0, 0, 0, 0, 0, 0, 0), 10),
    (Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0), 32),
];

/// Whether the second half of an address says that an address of IPv4 follows, as ISATAP has it.
fn is_isatap(address: Ipv6Addr) -> bool {
    let [_, _, _, _, own, isatap, _, _] = address.segments();
    matches!(own, 0 | 0x200) && isatap == 0x5efe
}

/// Whether only whoever names this very address may mean it.
pub(in crate::agent) fn is_guarded(address: IpAddr) -> bool {
    let own = match address {
        IpAddr::V4(v4) => {
            v4.is_loopback() || v4.octets()[0] == 0 || v4.is_link_local() || v4.is_multicast() || v4.octets()[0] >= 240
        }
        IpAddr::V6(v6) => {
            v6.is_loopback()
                || v6.is_unspecified()
                || v6.is_unicast_link_local()
                || v6.is_multicast()
                || is_isatap(v6)
                || ELSEWHERE.iter().any(|(first, bits)| {
                    let network = Network {
                        first: IpAddr::V6(*first),
                        bits: *bits,
                    };
                    network.contains(address)
                })
        }
    };
    own || METADATA.contains(&address)
}

impl Network {
    pub(super) fn contains(&self, address: IpAddr) -> bool {
        let shared = |length: u32, differing: u32| differing >= self.bits.min(length);
        match (self.first, address) {
            (IpAddr::V4(first), IpAddr::V4(address)) => {
                shared(32, (first.to_bits() ^ address.to_bits()).leading_zeros())
            }
            (IpAddr::V6(first), IpAddr::V6(address)) => {
                shared(128, (first.to_bits() ^ address.to_bits()).leading_zeros())
            }
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
        }
    }

    /// Whether it is this address and no other.
    pub(super) fn is_exactly(&self, address: IpAddr) -> bool {
        self.first == address && self.bits == length(address)
    }
}

fn length(address: IpAddr) -> u32 {
    match address {
        IpAddr::V4(_) => 32,
        IpAddr::V6(_) => 128,
    }
}

/// What is neither an address nor a network.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NoNetwork;

/// An address, or `address/bits`; brackets around the address of IPv6 are the caller's.
impl FromStr for Network {
    type Err = NoNetwork;

    fn from_str(text: &str) -> Result<Self, NoNetwork> {
        let (first, bits) = match text.split_once('/') {
            Some((first, bits)) => (first.trim_end_matches(']'), Some(bits)),
            None => (text, None),
        };
        let first: IpAddr = first.parse().map_err(|_| NoNetwork)?;
        let bits = match bits {
            None => length(first),
            Some(bits) if bits.bytes().all(|byte| byte.is_ascii_digit()) => bits.parse().map_err(|_| NoNetwork)?,
            Some(_) => return Err(NoNetwork),
        };
        (bits <= length(first)).then_some(Self { first, bits }).ok_or(NoNetwork)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_machine_keeps_to_itself_is_guarded_in_every_form() {
        for address in [
            "127.0.0.1",
            "127.8.0.1",
            "0.0.0.0",
            "0.1.2.3",
            "169.254.169.254",
            "168.63.129.16",
            "100.100.100.200",
            "192.0.0.192",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::7f00:1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::a9fe:a9fe",
            "2002:a9fe:a9fe::",
            "2001:0:1::1",
            "fe80::1",
            "ff02::1",
            "fd00:ec2::254",
            "fd00:ec2::23",
            "fd20:ce::254",
            "fd00:c1::a9fe:a9fe",
            "fd00:42::42",
            "::ffff:0:a9fe:a9fe",
            "fec0::1",
            "2001:db8::5efe:a9fe:a9fe",
            "fd00::200:5efe:7f00:1",
        ] {
            assert!(is_guarded(address.parse().expect("an address")), "{address}");
        }
        for address in [
            "10.0.0.1",
            "192.168.1.1",
            "100.64.0.1",
            "1.1.1.1",
            "fd00::1",
            "2001:db8::1",
        ] {
            assert!(!is_guarded(address.parse().expect("an address")), "{address}");
        }
    }

    #[test]
    fn a_network_has_the_addresses_that_begin_as_it_does() {
        let contains = |network: &str, address: &str| {
            let network: Network = network.parse().expect("a network");
            network.contains(address.parse().expect("an address"))
        };
        assert!(contains("10.0.0.0/8", "10.255.0.1") && !contains("10.0.0.0/8", "11.0.0.1"));
        assert!(contains("0.0.0.0/0", "1.2.3.4") && !contains("0.0.0.0/0", "::1"));
        assert!(contains("10.1.2.3", "10.1.2.3") && !contains("10.1.2.3", "10.1.2.2"));
        assert!(contains("fd00::/8", "fdff::1") && !contains("fd00::/8", "fe00::1"));
        for text in ["10.0.0.0/33", "fd00::/129", "10.0.0.0/", "10.0.0.0/+8", "host/8"] {
            assert!(text.parse::<Network>().is_err(), "{text}");
        }
    }
}
