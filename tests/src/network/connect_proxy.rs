//! A proxy that speaks HTTP CONNECT, with a name and a password, and writes down what it was asked for.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::{eventually, wait};

/// A connection on which nothing comes for so long is given up.
const IDLE_LIMIT: Duration = Duration::from_secs(600);

/// A listening proxy.
#[derive(Debug)]
pub struct ConnectProxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    listening: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    /// What `Proxy-Authorization` must say.
    credentials: String,
    /// Where it goes, whatever it is asked for: its own idea of a name.
    target: SocketAddr,
    asked: Mutex<Vec<String>>,
    /// Both ends of what it led to somewhere since it was started last.
    led: Mutex<Vec<TcpStream>>,
    is_broken: AtomicBool,
    is_over: AtomicBool,
}

impl ConnectProxy {
    /// Listens on `address` (port 0 for any), and leads those who know the password to `target`.
    #[track_caller]
    pub fn start(address: SocketAddr, user: &str, password: &str, target: SocketAddr) -> Self {
        let listener = TcpListener::bind(address).expect("the address is free");
        let address = listener.local_addr().expect("a listener has an address");
        let shared = Arc::new(Shared {
            credentials: format!("Basic {}", STANDARD.encode(format!("{user}:{password}"))),
            target,
            asked: Mutex::default(),
            led: Mutex::default(),
            is_broken: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
        });
        let listening = Some(listen(listener, Arc::clone(&shared)));
        Self {
            address,
            shared,
            listening,
        }
    }

    /// Ends it, and with it every connection that it led to somewhere, as a process that is killed.
    pub fn stop(&mut self) {
        let Some(listening) = self.listening.take() else {
            return;
        };
        self.shared.is_over.store(true, Ordering::SeqCst);
        // Wakes the listener, so that it sees it.
        let _ = TcpStream::connect(self.address);
        let _ = listening.join();
        for end in self.shared.led.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            let _ = end.shutdown(std::net::Shutdown::Both);
        }
    }

    /// Starts it where it was.
    #[track_caller]
    pub fn start_again(&mut self) {
        self.stop();
        let listener = eventually(wait::LONG, "the proxy's address is free again", || {
            TcpListener::bind(self.address).map_err(|error| error.to_string())
        });
        self.shared.is_over.store(false, Ordering::SeqCst);
        self.listening = Some(listen(listener, Arc::clone(&self.shared)));
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers 502 from now on, or serves again.
    pub fn set_broken(&self, is_broken: bool) {
        self.shared.is_broken.store(is_broken, Ordering::SeqCst);
    }

    /// The targets that it was asked for, in their order, each with the status of the answer.
    pub fn asked(&self) -> Vec<String> {
        self.shared.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for ConnectProxy {
    fn drop(&mut self) {
        self.stop();
    }
}

fn listen(listener: TcpListener, shared: Arc<Shared>) -> JoinHandle<()> {
    thread::spawn(move || {
        for socket in listener.incoming().map_while(Result::ok) {
            if shared.is_over.load(Ordering::SeqCst) {
                return;
            }
            let own = Arc::clone(&shared);
            thread::spawn(move || serve(socket, &own));
        }
    })
}

/// Serves one connection; whoever breaks it off is not told about.
fn serve(mut near: TcpStream, shared: &Shared) {
    let _ = near.set_read_timeout(Some(IDLE_LIMIT));
    let Some((target, credentials)) = near.try_clone().ok().and_then(request) else {
        return;
    };
    let answer = match () {
        () if shared.is_broken.load(Ordering::SeqCst) => "502 Bad Gateway",
        () if credentials.as_deref() != Some(shared.credentials.as_str()) => "407 Proxy Authentication Required",
        () => "200 Connection established",
    };
    let status = &answer[..3];
    let line = format!("{target} {status}");
    shared.asked.lock().unwrap_or_else(PoisonError::into_inner).push(line);
    if near.write_all(format!("HTTP/1.1 {answer}\r\n\r\n").as_bytes()).is_err() || status != "200" {
        return;
    }
    if let (Ok(mut far), Ok(mut near_too)) = (TcpStream::connect(shared.target), near.try_clone())
        && let Ok(mut far_too) = far.try_clone()
        && let (Ok(one_end), Ok(other_end)) = (near.try_clone(), far.try_clone())
    {
        let ends = [one_end, other_end];
        shared.led.lock().unwrap_or_else(PoisonError::into_inner).extend(ends);
        let back = thread::spawn(move || {
            let _ = std::io::copy(&mut far_too, &mut near_too);
            let _ = near_too.shutdown(std::net::Shutdown::Both);
        });
        let _ = std::io::copy(&mut near, &mut far);
        let _ = far.shutdown(std::net::Shutdown::Both);
        let _ = back.join();
    }
}

/// The target of a CONNECT and what `Proxy-Authorization` said.
fn request(socket: TcpStream) -> Option<(String, Option<String>)> {
    // The client says nothing after its request until it is answered, so the reader takes no byte too many.
    let mut lines = BufReader::new(socket).lines().map_while(Result::ok);
    let target = lines.next()?.strip_prefix("CONNECT ")?.split(' ').next()?.to_owned();
    let mut credentials = None;
    for line in lines.take_while(|line| !line.is_empty()) {
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("proxy-authorization")
        {
            credentials = Some(value.trim().to_owned());
        }
    }
    Some((target, credentials))
}
