//! Where a predictor may be.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Why an address is none that the hub asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidAddress {
    /// Of another protocol.
    #[error("must begin with https:// or http://")]
    Scheme,
    /// It would be shown and logged.
    #[error("has a name or password in it")]
    Secret,
    /// Nobody to ask.
    #[error("names no host")]
    Host,
    /// What follows the host is more than a path.
    #[error("has more than a host, a port and a path")]
    Rest,
    /// Where clouds give credentials out.
    #[error("leads to an address of the link itself, where clouds give credentials out")]
    Forbidden,
}

/// Whether a predictor may be at this address. What a name leads to is known only to who asks: see [`is_forbidden`].
///
/// # Errors
///
/// What is wrong with it.
pub fn check_address(url: &str) -> Result<(), InvalidAddress> {
    let rest = ["https://", "http://"]
        .iter()
        .find_map(|scheme| url.strip_prefix(scheme));
    let rest = rest.ok_or(InvalidAddress::Scheme)?;
    let authority = rest.split('/').next().unwrap_or_default();
    if authority.contains('@') {
        return Err(InvalidAddress::Secret);
    }
    if rest.contains(['?', '#', '\\']) || rest.contains(|letter: char| letter.is_whitespace() || letter.is_control()) {
        return Err(InvalidAddress::Rest);
    }
    let (host, port) = match authority.strip_prefix('[').and_then(|inner| inner.split_once(']')) {
        Some((host, port)) => (host, port.strip_prefix(':').unwrap_or(port)),
        None => authority.split_once(':').unwrap_or((authority, "")),
    };
    if host.is_empty() {
        return Err(InvalidAddress::Host);
    }
    if !port.is_empty() && port.parse::<u16>().is_err() {
        return Err(InvalidAddress::Rest);
    }
    match host.parse::<IpAddr>() {
        Ok(address) if is_forbidden(address) => Err(InvalidAddress::Forbidden),
        _ => Ok(()),
    }
}

/// Whether nobody is asked at an address: those of the link itself, where clouds give credentials out, and those that
/// are no host's.
pub fn is_forbidden(address: IpAddr) -> bool {
    /// Amazon's, which is outside of the link's own range.
    const CREDENTIALS: Ipv6Addr = Ipv6Addr::new(0xfd00, 0x0ec2, 0, 0, 0, 0, 0, 0x0254);
    let of_four = |address: Ipv4Addr| {
        address.is_link_local() || address.is_unspecified() || address.is_multicast() || address.is_broadcast()
    };
    match address {
        IpAddr::V4(address) => of_four(address),
        IpAddr::V6(address) => match address.to_ipv4_mapped() {
            Some(mapped) => of_four(mapped),
            None => {
                address.is_unicast_link_local()
                    || address.is_unspecified()
                    || address.is_multicast()
                    || address == CREDENTIALS
            }
        },
    }
}
