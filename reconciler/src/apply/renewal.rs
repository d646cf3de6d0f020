//! Follows what a client was made of: a kubeconfig and the files that it names, or a pod's CA. When one of them is
//! another, the next request goes by a client that is made anew, and nothing is restarted.
//!
//! kube re-reads tokens by itself, and names are resolved for each connection.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use kube::config::Kubeconfig;
use render::Digest;
use tokio::sync::watch;
use tokio::time::sleep;
use tracing::Instrument as _;

use super::client::{ClientError, made};
use super::connections::Connections;
use super::passage::Passage;
use crate::fault::line;
use crate::limits::CLIENT_LOOK;

/// Where a pod finds the CA of its cluster.
const POD_CA: &str = "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt";

/// What a client is made of.
#[derive(Clone, Debug)]
pub(super) enum Source {
    /// A context of a kubeconfig; `None` is the file's current one.
    Kubeconfig {
        path: PathBuf,
        context: Option<String>,
        proxies: Proxies,
    },
    /// A pod's surroundings.
    Pod,
}

/// What is done about a proxy. None is spoken with an API server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Proxies {
    /// Whoever names one is told so.
    Refused,
    /// The environment's is for somewhere else; the kubeconfig's own is refused.
    OfEnvironmentIgnored,
}

impl Source {
    pub(super) fn kubeconfig(path: &Path, context: Option<&str>, proxies: Proxies) -> Self {
        Self::Kubeconfig {
            path: path.to_owned(),
            context: context.map(str::to_owned),
            proxies,
        }
    }
}

/// File → what was in it; `None` for one that could not be read.
type Seen = BTreeMap<PathBuf, Option<Digest>>;

struct Renewal {
    source: Source,
    seen: Seen,
    newest: watch::Sender<Connections>,
}

/// A way to the API server that stays what its source says, for as long as somebody has it.
pub(super) fn followed(first: Connections, source: Source) -> Passage {
    let (passage, renewal) = following(first, source);
    tokio::spawn(renewal.run().instrument(tracing::info_span!("credentials")));
    passage
}

fn following(first: Connections, source: Source) -> (Passage, Renewal) {
    let (newest, current) = watch::channel(first);
    let seen = look(&source);
    (Passage::followed(current), Renewal { source, seen, newest })
}

impl Renewal {
    async fn run(mut self) {
        loop {
            tokio::select! {
                biased;
                () = self.newest.closed() => return,
                () = sleep(CLIENT_LOOK) => {}
            }
            if let Err(error) = self.renew().await {
                tracing::warn!(
                    error = line(&error),
                    "Could not use what the API server's client is made of."
                );
            }
        }
    }

    /// Makes the client anew if what it was made of is another. What cannot be used is looked at again, and the client
    /// stays what it was.
    async fn renew(&mut self) -> Result<(), ClientError> {
        let source = self.source.clone();
        // A disk that hangs holds up nobody else. Whoever panicked there saw nothing new.
        let Ok(seen) = tokio::task::spawn_blocking(move || look(&source)).await else {
            return Ok(());
        };
        if seen == self.seen {
            return Ok(());
        }
        let made = made(&self.source).await?;
        self.seen = seen;
        self.newest.send_replace(made.connections);
        tracing::info!("Made the API server's client anew.");
        Ok(())
    }
}

fn look(source: &Source) -> Seen {
    let files = match source {
        Source::Pod => vec![PathBuf::from(POD_CA)],
        Source::Kubeconfig { path, .. } => named(path),
    };
    let digest = |file: &Path| Some(Digest::of_bytes(&std::fs::read(file).ok()?));
    files
        .into_iter()
        .map(|file| {
            let found = digest(&file);
            (file, found)
        })
        .collect()
}

/// A kubeconfig and the certificates and keys that it names.
fn named(path: &Path) -> Vec<PathBuf> {
    let mut files = vec![path.to_owned()];
    // One that cannot be read names nothing; that it is another is seen by its own bytes.
    if let Ok(kubeconfig) = Kubeconfig::read_from(path) {
        let clusters = kubeconfig.clusters.into_iter().filter_map(|named| named.cluster);
        let users = kubeconfig.auth_infos.into_iter().filter_map(|named| named.auth_info);
        let certificates = clusters.filter_map(|cluster| cluster.certificate_authority);
        let keys = users.flat_map(|user| [user.client_certificate, user.client_key]);
        files.extend(certificates.chain(keys.flatten()).map(PathBuf::from));
    }
    files
}

#[cfg(test)]
mod tests {
    use http::Request;
    use http_body_util::BodyExt as _;
    use kube::client::Body;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;
    use crate::apply::ApiServer;

    /// A server that calls itself by a version, and a kubeconfig that leads to it.
    async fn server(version: &'static str) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        tokio::spawn(async move {
            while let Ok((mut socket, _)) = listener.accept().await {
                let mut head = [0; 1024];
                let _head = socket.read(&mut head).await;
                let body = format!(r#"{{"gitVersion": "{version}"}}"#);
                let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
                let _told = socket.write_all(answer.as_bytes()).await;
            }
        });
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: a\n\
             clusters: [{{name: a, cluster: {{server: 'http://{address}'}}}}]\n\
             users: [{{name: a, user: {{}}}}]\ncontexts: [{{name: a, context: {{cluster: a, user: a}}}}]\n"
        )
    }

    async fn version(passage: &Passage) -> String {
        let request = Request::get("/version").body(Body::empty()).expect("a request");
        let answer = passage.send(request).await.expect("an answer");
        let body = answer.into_body().collect().await.expect("a body").to_bytes();
        let body: serde_json::Value = serde_json::from_slice(&body).expect("JSON");
        body["gitVersion"].as_str().expect("a version").to_owned()
    }

    #[tokio::test]
    async fn a_kubeconfig_that_breaks_changes_nothing_until_it_is_whole_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("kubeconfig");
        std::fs::write(&path, server("v1").await).expect("it is writable");
        let source = Source::kubeconfig(&path, None, Proxies::Refused);
        let first = made(&source).await.expect("a good kubeconfig").connections;
        let (passage, mut renewal) = following(first, source);
        assert_eq!(version(&passage).await, "v1");
        std::fs::write(&path, "clusters: [").expect("it is writable");
        assert!(renewal.renew().await.is_err(), "it says so");
        assert_eq!(version(&passage).await, "v1", "and what there was goes on");
        std::fs::write(&path, server("v2").await).expect("it is writable");
        renewal.renew().await.expect("a good kubeconfig");
        assert_eq!(version(&passage).await, "v2");
    }

    #[tokio::test]
    async fn whoever_opens_a_kubeconfig_follows_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("kubeconfig");
        std::fs::write(&path, server("v1").await).expect("it is writable");
        let opened = [
            ApiServer::beside(&path, None).await.expect("a good kubeconfig"),
            ApiServer::from_kubeconfig(&path, Some("a"))
                .await
                .expect("a good kubeconfig"),
        ];
        // The applier's client goes the same way as what others ask.
        let ways = opened
            .iter()
            .flat_map(|server| [server.passage.clone(), server.client.clone().into()]);
        let ways: Vec<Passage> = ways.collect();
        for way in &ways {
            assert_eq!(version(way).await, "v1");
        }
        std::fs::write(&path, server("v2").await).expect("it is writable");
        for way in &ways {
            while version(way).await != "v2" {
                tokio::time::pause();
                tokio::time::advance(CLIENT_LOOK).await;
                tokio::time::resume();
            }
        }
    }

    #[test]
    fn what_a_kubeconfig_names_is_looked_at_too() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("kubeconfig");
        let text = "apiVersion: v1\nkind: Config\n\
                    clusters: [{name: a, cluster: {server: 'https://a', certificate-authority: ca.crt}}]\n\
                    users: [{name: a, user: {client-certificate: a.crt, client-key: a.key}}]\n";
        std::fs::write(&path, text).expect("it is writable");
        let source = Source::kubeconfig(&path, None, Proxies::Refused);
        let before = look(&source);
        assert_eq!(before.len(), 4);
        std::fs::write(folder.path().join("ca.crt"), "another").expect("it is writable");
        assert_ne!(look(&source), before);
    }
}
