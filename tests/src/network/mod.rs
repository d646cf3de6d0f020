//! Places that can dial out and cannot be dialled: network namespaces, each with one cable to this machine's own
//! network, and what stands between an agent and its hub: [`Nginx`], [`ConnectProxy`], [`Relay`].
//!
//! Enters: the name of a site. Leaves: commands that run in it. What listens on this machine's loopback is out of a
//! site's reach; what listens on [`Site::outside`] is within it. Deliberately not here: address translation, since the
//! kernel of a test machine may have none; a site reaches the hub through one of the three, or not at all.

mod connect_proxy;
mod nginx;
mod relay;

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

pub use self::connect_proxy::ConnectProxy;
pub use self::nginx::Nginx;
pub use self::relay::Relay;
use crate::{Output, watchdog};

/// Sites that one test process may have in its life: their networks are cut out of 198.18.0.0/15, which is for tests.
const SITES_MAX: u32 = 16;

/// Test processes whose sites do not get in each other's way.
const PROCESSES: u32 = 512;

/// A network namespace. It goes on drop, and when this process ends.
#[derive(Debug)]
pub struct Site {
    namespace: String,
    cable: String,
    number: u32,
}

impl Site {
    /// A new one, with its cable plugged in.
    ///
    /// # Panics
    /// Without the right to make one, or without `ip`, with what to do.
    #[track_caller]
    pub fn new(name: &str) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let own = NEXT.fetch_add(1, Ordering::Relaxed);
        assert!(own < SITES_MAX, "a test process has at most {SITES_MAX} sites");
        let number = (std::process::id() % PROCESSES) * SITES_MAX + own;
        let site = Self {
            namespace: format!("flotilla-{number}-{name}"),
            cable: format!("fl{number}"),
            number,
        };
        site.remove_what_a_killed_process_left();
        watchdog::remove_namespace_at_end(&site.namespace);
        site.lay_cable();
        site
    }

    fn lay_cable(&self) {
        let (namespace, cable) = (self.namespace.as_str(), self.cable.as_str());
        ip(&["netns", "add", namespace]);
        ip(&[
            "link", "add", cable, "type", "veth", "peer", "name", "out", "netns", namespace,
        ]);
        let (outside, inside) = (self.addresses(1), self.addresses(2));
        ip(&["addr", "add", &format!("{}/28", outside.0), "dev", cable]);
        ip(&["addr", "add", &format!("{}/28", self.addresses(3).0), "dev", cable]);
        ip(&["addr", "add", &format!("{}/64", outside.1), "dev", cable, "nodad"]);
        ip(&["link", "set", cable, "up"]);
        for arguments in [
            vec![
                "addr".to_owned(),
                "add".to_owned(),
                format!("{}/28", inside.0),
                "dev".to_owned(),
                "out".to_owned(),
            ],
            ["addr", "add", &format!("{}/64", inside.1), "dev", "out", "nodad"]
                .map(str::to_owned)
                .to_vec(),
            ["link", "set", "out", "up"].map(str::to_owned).to_vec(),
            ["link", "set", "lo", "up"].map(str::to_owned).to_vec(),
        ] {
            let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
            ip(&[&["-n", namespace], &arguments[..]].concat());
        }
        self.set_hosts(&[]);
    }

    /// Addresses on this site's cable by their last digit: 1 and 3 are this machine's, 2 is the site's own.
    fn addresses(&self, last: u8) -> (Ipv4Addr, Ipv6Addr) {
        let base = u32::from(Ipv4Addr::new(198, 18, 0, 0)) + self.number * 16;
        let number = u16::try_from(self.number).expect("there are few sites");
        let six = Ipv6Addr::new(0xfd00, 0xf107, number, 0, 0, 0, 0, u16::from(last));
        (Ipv4Addr::from(base + u32::from(last)), six)
    }

    /// Where this machine answers a site.
    pub fn outside(&self) -> IpAddr {
        self.addresses(1).0.into()
    }

    /// Another address of this machine.
    pub fn elsewhere(&self) -> IpAddr {
        self.addresses(3).0.into()
    }

    /// [`Self::outside`] by IPv6.
    pub fn outside_six(&self) -> IpAddr {
        self.addresses(1).1.into()
    }

    /// A command that runs in the site.
    pub fn command(&self, inside: &Command) -> Command {
        let mut command = Command::new("ip");
        command
            .args(["netns", "exec", &self.namespace])
            .arg(inside.get_program());
        command.args(inside.get_args());
        for (name, value) in inside.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command
    }

    /// What names mean in the site from now on, also to programs that run there already.
    pub fn set_hosts(&self, names: &[(IpAddr, &str)]) {
        let lines: String = names
            .iter()
            .map(|(address, name)| format!("{address} {name}\n"))
            .collect();
        let (folder, file) = (self.folder(), self.folder().join("hosts"));
        fs::create_dir_all(folder).expect("root may write below /etc/netns");
        // The same file as before: programs in the site have it mounted.
        fs::write(file, format!("127.0.0.1 localhost\n::1 localhost\n{lines}")).expect("root may write there");
    }

    /// Pulls the far end of the cable, so that packets vanish without a word.
    pub fn unplug(&self) {
        ip(&["link", "set", &self.cable, "down"]);
    }

    /// Plugs it in again.
    pub fn plug_in(&self) {
        ip(&["link", "set", &self.cable, "up"]);
        // An interface that goes down loses its IPv6 addresses.
        let six = format!("{}/64", self.addresses(1).1);
        ip(&["addr", "replace", &six, "dev", &self.cable, "nodad"]);
    }

    /// `ip netns exec` puts the files of this folder in the place of those in `/etc`.
    fn folder(&self) -> PathBuf {
        PathBuf::from("/etc/netns").join(&self.namespace)
    }

    fn remove_what_a_killed_process_left(&self) {
        let left = Output::of(Command::new("ip").args(["-o", "link", "show", &self.cable]));
        if left.status.success() {
            ip(&["link", "del", &self.cable]);
        }
        if PathBuf::from("/run/netns").join(&self.namespace).exists() {
            ip(&["netns", "del", &self.namespace]);
        }
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        // What still runs in it keeps the namespace, but not its cable.
        let _ = Command::new("ip").args(["link", "del", &self.cable]).output();
        let _ = Command::new("ip").args(["netns", "del", &self.namespace]).output();
        let _ = fs::remove_dir_all(self.folder());
    }
}

#[track_caller]
fn ip(arguments: &[&str]) {
    let output = match Command::new("ip").args(arguments).output() {
        Ok(output) => output,
        Err(error) => panic!("ip does not start: {error}; install it (on Debian, apt-get install iproute2)"),
    };
    assert!(
        output.status.success(),
        "ip {} failed, and needs root: {}",
        arguments.join(" "),
        String::from_utf8_lossy(&output.stderr)
    );
}
