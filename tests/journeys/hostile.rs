//! Strangers at every door of a hub.

use std::fs;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use flotilla_tests::{Flotilla, Repository, eventually, ports, scratch};
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpSocket;
use tunnel::{ConnectError, GoAwayReason, HandshakeError, SecretKey};

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

/// A hub with every door, and nobody it knows but another hub.
struct Besieged {
    hub: Flotilla,
    folder: PathBuf,
    agents: u16,
    plain: u16,
    api: u16,
    people: u16,
    hubs: u16,
}

impl Besieged {
    fn start() -> Self {
        let repository = Repository::with_files(&[("fleet.yaml", FLEET)]);
        let folder = scratch::folder("hostile");
        let file = |name: &str| folder.join(name).display().to_string();
        let [agents, plain, api, people, hubs] = [(); 5].map(|()| ports::free());
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
            "--listen-plain",
            &at(plain),
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
        let besieged = Self {
            hub,
            folder,
            agents,
            plain,
            api,
            people,
            hubs,
        };
        eventually(LIMIT, "the hub serves", || besieged.status());
        for port in [agents, plain, people, hubs] {
            eventually(LIMIT, "the hub listens", || {
                TcpStream::connect(("127.0.0.1", port)).map_err(|error| error.to_string())
            });
        }
        besieged
    }

    fn status(&self) -> Result<String, String> {
        let server = format!("http://127.0.0.1:{}", self.api);
        Flotilla::run(&["get", "fleets", "--server", &server]).ok()
    }

    fn key(&self, name: &str) -> Arc<SecretKey> {
        Arc::new(SecretKey::load(&self.folder.join(name)).expect("it was made"))
    }
}

#[test]
fn who_says_a_little_each_second_is_hung_up_on_at_every_door_and_holds_up_nobody() {
    let besieged = Besieged::start();
    // The head of a TLS record that never comes, and of a request whose head never ends.
    let (hello, request): (&[u8], &[u8]) = (&[0x16, 3, 1, 0x3f, 0xff, 1], b"GET / HTTP/1.1\r\nx: ");
    let doors = [
        (besieged.agents, hello),
        (besieged.people, hello),
        (besieged.hubs, hello),
        (besieged.api, request),
        (besieged.plain, request),
    ];
    let dribblers = doors.into_iter().flat_map(|door| [door; DRIBBLERS]);
    let dribblers = dribblers.map(|(port, beginning)| (port, thread::spawn(move || dribble(port, beginning, b'a'))));
    let dribblers: Vec<_> = dribblers.collect();
    eventually(LIMIT, "others are served meanwhile", || besieged.status());
    for (port, dribbler) in dribblers {
        let kept = dribbler.join().unwrap();
        assert_eq!(
            kept,
            None,
            "kept at {port} of {:?}\n{}",
            doors.map(|(port, _)| port),
            besieged.hub.log()
        );
    }
}

/// Silent connections from one address: more than all of them that the agents' door greets at a time, and than wait there
/// for as long as anybody does; and more than the door of hubs takes.
const SILENT: [usize; 2] = [130, 60];

/// Connects from 127.0.0.2 again and again, and says nothing.
async fn keep_silent(port: u16, connected: Arc<AtomicUsize>) {
    loop {
        let socket = TcpSocket::new_v4().expect("there is a socket");
        socket
            .bind(([127, 0, 0, 2], 0).into())
            .expect("loopback has many addresses");
        if let Ok(mut stream) = socket.connect(([127, 0, 0, 1], port).into()).await {
            connected.fetch_add(1, Ordering::Relaxed);
            let _hung_up = stream.read(&mut [0; 16]).await;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[test]
fn one_address_that_says_nothing_keeps_no_agent_and_no_other_hub_out() {
    let besieged = Besieged::start();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    for (port, silent) in [besieged.agents, besieged.hubs].into_iter().zip(SILENT) {
        let connected = Arc::new(AtomicUsize::new(0));
        for _ in 0..silent {
            runtime.spawn(keep_silent(port, Arc::clone(&connected)));
        }
        eventually(LIMIT, "they are all there", || {
            match connected.load(Ordering::Relaxed) {
                count if count >= silent => Ok(()),
                count => Err(format!("{count} connections")),
            }
        });
    }
    let dial = |port: u16, name: &str, key| {
        let pins = vec![besieged.key("hub.key").public()];
        let url = format!("wss://127.0.0.1:{port}");
        let options = tunnel::ConnectOptions::new(url, pins, name, key, 1);
        runtime.block_on(tunnel::connect(&options))
    };
    let stranger = Arc::new(SecretKey::generate().expect("there is randomness"));
    let refused = dial(besieged.agents, "oslo", stranger).err();
    assert!(
        matches!(
            refused,
            Some(ConnectError::Handshake(HandshakeError::Refused(ref away)))
                if away.reason == GoAwayReason::IdentityRefused
        ),
        "an agent is heard: {refused:?}"
    );
    let other = dial(besieged.hubs, "hub/b", besieged.key("other.key"));
    assert!(other.is_ok(), "another hub is let in: {:?}", other.err());
}
