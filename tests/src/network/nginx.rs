//! A real nginx that ends TLS and passes WebSockets on, as people have it before their services.

use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

use crate::{Child, eventually, scratch, wait};

/// The configuration of docs/networks.md, so that what people copy is what is tested.
const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/networks.md");

/// A running nginx, with a certificate from an authority of its own.
#[derive(Debug)]
pub struct Nginx {
    folder: PathBuf,
    address: SocketAddr,
    child: Option<Child>,
}

impl Nginx {
    /// Listens on `address` for `name`, and passes `/tunnel` on to `upstream` in the clear.
    ///
    /// # Panics
    /// If nginx is missing, with how to install it.
    #[track_caller]
    pub fn start(address: SocketAddr, name: &str, upstream: SocketAddr) -> Self {
        let folder = scratch::folder("nginx");
        write_certificates(&folder, name);
        let server = documented()
            .replace("listen 443 ssl;", &format!("listen {address} ssl;"))
            .replace("hub.example.com", name)
            .replace("/etc/nginx/tls", &folder.display().to_string())
            .replace("127.0.0.1:7444", &upstream.to_string());
        let at = folder.display();
        let configuration = format!(
            "daemon off; master_process off; pid {at}/pid; error_log {at}/error.log info;
events {{ worker_connections 256; }}
http {{
access_log {at}/access.log;
client_body_temp_path {at}/body; proxy_temp_path {at}/proxy; fastcgi_temp_path {at}/fastcgi;
uwsgi_temp_path {at}/uwsgi; scgi_temp_path {at}/scgi;
{server}
}}
"
        );
        fs::write(folder.join("nginx.conf"), configuration).expect("the scratch folder is writable");
        let mut nginx = Self {
            folder,
            address,
            child: None,
        };
        nginx.start_again();
        nginx
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The authority that agents have to believe.
    pub fn authority(&self) -> PathBuf {
        self.folder.join("authority.pem")
    }

    /// Its requests, a line each, once they are over.
    pub fn access_log(&self) -> String {
        fs::read_to_string(self.folder.join("access.log")).unwrap_or_default()
    }

    /// Ends it at once.
    pub fn stop(&mut self) {
        self.child = None;
    }

    /// Starts it where it was.
    #[track_caller]
    pub fn start_again(&mut self) {
        let mut command = Command::new(program());
        command
            .arg("-p")
            .arg(&self.folder)
            .arg("-c")
            .arg(self.folder.join("nginx.conf"));
        let mut child = Child::start("nginx", &self.folder, &mut command);
        eventually(wait::LONG, "nginx listens", || {
            child.assert_running();
            TcpStream::connect(self.address).map_err(|error| error.to_string())
        });
        self.child = Some(child);
    }
}

/// The one block of the document that is marked `nginx`.
fn documented() -> String {
    let document = fs::read_to_string(DOCUMENT).unwrap_or_else(|error| panic!("{DOCUMENT}: {error}"));
    let block = document
        .split_once("```nginx\n")
        .and_then(|(_, rest)| rest.split_once("```"))
        .map(|(block, _)| block.to_owned());
    block.expect("docs/networks.md has a block of nginx")
}

fn program() -> &'static str {
    let places = ["/usr/sbin/nginx", "/usr/local/sbin/nginx", "/usr/bin/nginx"];
    let found = places.into_iter().find(|place| Path::new(place).exists());
    found.unwrap_or_else(|| panic!("nginx is missing; install it (on Debian, apt-get install nginx-light)"))
}

fn write_certificates(folder: &Path, name: &str) {
    let key = || KeyPair::generate().expect("ring makes a P-256 key");
    let mut authority = CertificateParams::default();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let issuer = CertifiedIssuer::self_signed(authority, key()).expect("an authority signs itself");
    let (own, params) = (
        key(),
        CertificateParams::new([name.to_owned()]).expect("a name of a host"),
    );
    let certificate = params.signed_by(&own, &issuer).expect("an authority signs");
    for (file, text) in [
        ("authority.pem", issuer.pem()),
        ("hub.crt", certificate.pem()),
        ("hub.key", own.serialize_pem()),
    ] {
        fs::write(folder.join(file), text).expect("the scratch folder is writable");
    }
}
