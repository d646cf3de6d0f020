//! Sites are what the journeys behind NAT take them for.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use flotilla_tests::network::{ConnectProxy, Nginx, Relay};
use flotilla_tests::{ControlPlane, Options, Output, Site, eventually, wait};

/// Bash dials by itself: whether an address is answered within a second.
fn is_answered(site: &Site, host: &str, port: u16) -> bool {
    let mut dial = Command::new("timeout");
    let script = format!("exec 3<>/dev/tcp/{host}/{port}");
    dial.args(["1", "bash", "-c", &script]);
    Output::of(&mut site.command(&dial)).status.success()
}

fn listener(address: IpAddr) -> (TcpListener, u16) {
    let listener = TcpListener::bind((address, 0)).expect("the address is this machine's");
    let port = listener.local_addr().expect("a listener has an address").port();
    (listener, port)
}

#[test]
fn a_site_dials_out_by_both_protocols_and_by_name_and_reaches_no_loopback() {
    let site = Site::new("dials");
    let (_four, port) = listener(site.outside());
    let (_six, port_six) = listener(site.outside_six());
    let (_own, port_own) = listener("127.0.0.1".parse().expect("an address"));
    assert!(is_answered(&site, &site.outside().to_string(), port));
    assert!(is_answered(&site, &site.outside_six().to_string(), port_six));
    assert!(!is_answered(&site, "127.0.0.1", port_own), "its loopback is its own");
    assert!(!is_answered(&site, "hub.test", port), "nobody has that name yet");
    site.set_hosts(&[(site.outside(), "hub.test")]);
    assert!(is_answered(&site, "hub.test", port));
    site.unplug();
    assert!(!is_answered(&site, "hub.test", port), "the cable is out");
    site.plug_in();
    eventually(wait::LONG, "the cable is in again", || {
        is_answered(&site, "hub.test", port)
            .then_some(())
            .ok_or("no answer".to_owned())
    });
}

#[test]
fn a_cluster_in_a_site_is_reached_from_inside_alone() {
    let site = Arc::new(Site::new("cluster"));
    let cluster = ControlPlane::start("cluster", Options::at(&site));
    assert!(cluster.has("", "namespace/default"));
    let (address, port) = cluster
        .url()
        .rsplit_once(':')
        .map(|(_, port)| ("127.0.0.1", port.to_owned()))
        .expect("a port");
    assert!(TcpStream::connect((address, port.parse::<u16>().expect("a port"))).is_err());
}

/// An end that says everything back.
fn echo() -> SocketAddr {
    let (listener, port) = listener("127.0.0.1".parse().expect("an address"));
    thread::spawn(move || {
        for mut socket in listener.incoming().map_while(Result::ok) {
            thread::spawn(move || {
                let mut back = socket.try_clone().expect("a socket can be shared");
                std::io::copy(&mut socket, &mut back)
            });
        }
    });
    SocketAddr::from(([127, 0, 0, 1], port))
}

fn any() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

fn said_back(socket: &mut TcpStream, word: &[u8]) -> bool {
    let mut heard = vec![0; word.len()];
    socket
        .set_read_timeout(Some(Duration::from_millis(300)))
        .expect("a socket has timeouts");
    socket.write_all(word).is_ok() && socket.read_exact(&mut heard).is_ok() && heard == word
}

#[test]
fn a_relay_falls_silent_and_tells_nobody() {
    let relay = Relay::start(any(), echo());
    let mut socket = TcpStream::connect(relay.address()).expect("it listens");
    assert!(said_back(&mut socket, b"one"));
    relay.set_black(true);
    assert!(!said_back(&mut socket, b"two"));
    relay.set_black(false);
    assert!(
        said_back(&mut socket, b"three"),
        "what came meanwhile is lost, what comes later is not"
    );
    assert_eq!(relay.connections(), 1);
}

#[test]
fn a_connect_proxy_leads_on_only_who_knows_the_password() {
    let proxy = ConnectProxy::start(any(), "user", "word", echo());
    let ask = |credentials: &str| {
        let mut socket = TcpStream::connect(proxy.address()).expect("it listens");
        let request = format!("CONNECT hub.test:443 HTTP/1.1\r\nHost: hub.test:443\r\n{credentials}\r\n");
        socket.write_all(request.as_bytes()).expect("it reads");
        let mut answer = [0; 12];
        socket.read_exact(&mut answer).expect("it answers");
        (String::from_utf8_lossy(&answer[9..]).into_owned(), socket)
    };
    assert_eq!(ask("").0, "407");
    // user:word
    let (status, _open) = ask("Proxy-Authorization: Basic dXNlcjp3b3Jk\r\n");
    assert_eq!(status, "200");
    assert_eq!(proxy.asked(), ["hub.test:443 407", "hub.test:443 200"]);
}

#[test]
fn the_nginx_of_the_documents_starts_and_starts_again() {
    let port = flotilla_tests::ports::free();
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    let mut nginx = Nginx::start(address, "hub.test", echo());
    assert!(nginx.authority().exists());
    nginx.stop();
    assert!(TcpStream::connect(address).is_err(), "it is gone");
    nginx.start_again();
}
