//! From which of its addresses this machine reaches another one, asked of the routing table. Nothing is sent.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use tokio::net::UdpSocket;

/// The address from which a connection would leave; `None` where there is no way.
pub(super) async fn own_address(remote: SocketAddr) -> Option<IpAddr> {
    let any: IpAddr = match remote {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0)).await.ok()?;
    socket.connect(remote).await.ok()?;
    Some(socket.local_addr().ok()?.ip())
}

/// Whether an address is this machine's: what goes there leaves from it.
pub(super) async fn is_own(address: SocketAddr) -> bool {
    own_address(address).await == Some(address.ip())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn our_address_on_the_way_is_known_without_a_byte() {
        let near = SocketAddr::from(([127, 0, 0, 1], 9));
        assert_eq!(own_address(near).await, Some(Ipv4Addr::LOCALHOST.into()));
        assert!(is_own(near).await);
        assert!(
            !is_own(SocketAddr::from(([192, 0, 2, 1], 9))).await,
            "it is for examples"
        );
    }
}
