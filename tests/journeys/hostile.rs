//! Strangers at every door of a hub.

use std::fs;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::thread;
use std::time::{Duration, Instant};

use flotilla_tests::{Flotilla, Repository, eventually, ports, scratch};

use super::support::{FLEET, LIMIT};

/// How long somebody may be kept who never comes to the point: the longest patience of a door is half a minute.
const PATIENCE: Duration = Duration::from_secs(120);

/// As many at each door as hold up whoever takes one after the other.
const DRIBBLERS: usize = 40;

/// Says a little each second and never comes to the point. `None` once it is hung up on.
fn dribble(port: u16, beginning: &[u8], then: u8) -> Option<Duration> {
    let begun = Instant::now();
    let mut socket = TcpStream::connect(("127.0.0.1", port)).ok()?;
    socket.set_read_timeout(Some(Duration::from_secs(1))).ok()?;
    socket.write_all(beginning).ok()?;
    let mut answer = [0; 256];
    while begun.elapsed() < PATIENCE {
        match socket.read(&mut answer) {
            Ok(0) => return None,
            Ok(_) => {}
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                socket.write_all(&[then]).ok()?;
            }
            Err(_) => return None,
        }
    }
    Some(begun.elapsed())
}

#[test]
fn who_says_a_little_each_second_is_hung_up_on_at_every_door_and_holds_up_nobody() {
    let repository = Repository::with_files(&[("fleet.yaml", FLEET)]);
    let folder = scratch::folder("hostile");
    let file = |name: &str| folder.join(name).display().to_string();
    let [agents, api, people, hubs] = [(); 4].map(|()| ports::free());
    let other = Flotilla::run(&["hub", "key", "--key", &file("other.key")]).expect_ok();
    let tokens = folder.join("tokens.csv");
    fs::write(&tokens, "a-token-that-nobody-here-says,ann,1\n").unwrap();
    fs::set_permissions(&tokens, fs::Permissions::from_mode(0o600)).unwrap();
    let at = |port: u16| format!("127.0.0.1:{port}");
    let hub = Flotilla::hub(&[
        "--repository",
        &repository.bare().display().to_string(),
        "--key",
        &file("hub.key"),
        "--listen",
        &at(agents),
        "--api",
        &at(api),
        "--serve",
        &at(people),
        "--token-file",
        &file("tokens.csv"),
        "--listen-peers",
        &at(hubs),
        "--peer",
        &format!("wss://127.0.0.1:{}={}", ports::free(), other.trim()),
    ]);
    let server = format!("http://{}", at(api));
    let status = || Flotilla::run(&["get", "fleets", "--server", &server]).ok();
    eventually(LIMIT, "the hub serves", status);
    for port in [agents, people, hubs] {
        eventually(LIMIT, "the hub listens", || {
            TcpStream::connect(("127.0.0.1", port)).map_err(|error| error.to_string())
        });
    }
    // The head of a TLS record that never comes, and of a request whose head never ends.
    let (hello, request): (&[u8], &[u8]) = (&[0x16, 3, 1, 0x3f, 0xff, 1], b"GET / HTTP/1.1\r\nx: ");
    let doors = [(agents, hello), (people, hello), (hubs, hello), (api, request)];
    let dribblers = doors.into_iter().flat_map(|door| [door; DRIBBLERS]);
    let dribblers = dribblers.map(|(port, beginning)| (port, thread::spawn(move || dribble(port, beginning, b'a'))));
    let dribblers: Vec<_> = dribblers.collect();
    eventually(LIMIT, "others are served meanwhile", status);
    for (port, dribbler) in dribblers {
        let kept = dribbler.join().unwrap();
        assert_eq!(
            kept,
            None,
            "kept at {port} of {:?}\n{}",
            doors.map(|(port, _)| port),
            hub.log()
        );
    }
}
