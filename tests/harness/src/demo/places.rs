//! Names of clusters, and ports: the same ones whenever they are free.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};

use anyhow::Context as _;
use render::ClusterName;

/// The first clusters. `fleet-repo-template` says something of its own about `paris`, which a smaller fleet leaves out.
const NAMES: [&str; 10] = [
    "lima", "oslo", "paris", "cairo", "dakar", "delhi", "quito", "seoul", "tokyo", "turin",
];

/// Where agents dial.
pub(super) const AGENTS_PORT: u16 = 7443;

/// Where the hub's API answers.
pub(super) const HUB_PORT: u16 = 7070;

/// Where the first cluster answers; the others follow.
pub(super) const CLUSTERS_PORT: u16 = 7071;

/// The name of the cluster with this number, from 0.
pub(super) fn name(number: usize) -> ClusterName {
    let text = match NAMES.get(number) {
        Some(name) => (*name).to_owned(),
        None => format!("site-{}", number + 1),
    };
    ClusterName::parse(text).expect("letters, digits and a dash are a name")
}

/// Its environment: the first of every three is where things are tried.
pub(super) fn environment(number: usize) -> &'static str {
    if number.is_multiple_of(3) {
        "staging"
    } else {
        "production"
    }
}

/// A listener on loopback: on `port` if it is free, else wherever there is room.
pub(super) fn listen(port: u16) -> anyhow::Result<TcpListener> {
    let address = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let listener = TcpListener::bind(address(port)).or_else(|_| TcpListener::bind(address(0)));
    listener.context("no port of 127.0.0.1 is free")
}

/// An address that is free now: `port`, or another one.
pub(super) fn free(port: u16) -> anyhow::Result<SocketAddr> {
    let listener = listen(port)?;
    listener.local_addr().context("a listener has an address")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clusters_have_names_of_their_own_however_many_there_are() {
        let names: std::collections::BTreeSet<_> = (0..200).map(name).collect();
        assert_eq!(names.len(), 200);
        assert_eq!(
            [environment(0), environment(1), environment(2)],
            ["staging", "production", "production"]
        );
    }

    #[test]
    fn a_port_that_is_in_use_is_left_to_whoever_uses_it() {
        let taken = listen(0).unwrap();
        let port = taken.local_addr().unwrap().port();
        assert_ne!(free(port).unwrap().port(), port);
    }
}
