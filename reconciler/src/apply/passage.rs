//! Requests straight to an API server's connections, in its credential's name. kube's own client has a queue before itself,
//! and every request wakes that queue's task; whoever carries many small ones for others goes around it.

use http::{Request, Response};
use http_body_util::Either;
use kube::Client;
use kube::client::Body;
use tokio::sync::watch;
use tower::service_fn;

use super::connections::Connections;
use super::unreached::without_login;
use crate::exchange;

/// What comes back.
pub type Answer = Either<exchange::Answer<Body>, Body>;

/// The way to an API server, whichever credential counts there at the moment. Clones share its connections.
#[derive(Clone)]
pub struct Passage(Way);

#[derive(Clone)]
enum Way {
    Followed(watch::Receiver<Connections>),
    Client(Client),
}

impl Passage {
    pub(super) fn followed(current: watch::Receiver<Connections>) -> Self {
        Self(Way::Followed(current))
    }

    /// With the credential of `config`, and none after it.
    #[cfg(test)]
    pub(crate) fn fixed(config: &kube::Config) -> kube::Result<Self> {
        Ok(Self::followed(watch::channel(Connections::new(config)?).1))
    }

    /// kube's client for it, which takes `namespace` where a request names none.
    pub(super) fn client(&self, namespace: &str) -> Client {
        let passage = self.clone();
        let service = service_fn(move |request| {
            let passage = passage.clone();
            async move { passage.send(request).await }
        });
        Client::new(service, namespace)
    }

    /// Asks, and gives the answer once it begins.
    pub(crate) async fn send(&self, request: Request<Body>) -> kube::Result<Response<Answer>> {
        match &self.0 {
            Way::Followed(current) => {
                let connections = current.borrow().clone();
                let answer = connections.send(request).await.map_err(without_login)?;
                Ok(answer.map(Either::Left))
            }
            Way::Client(client) => Ok(client.send(request).await?.map(Either::Right)),
        }
    }
}

/// By way of a client, whatever that does with requests.
impl From<Client> for Passage {
    fn from(client: Client) -> Self {
        Self(Way::Client(client))
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use bytes::Bytes;
    use http::header::AUTHORIZATION;
    use http_body_util::{BodyExt as _, Full};
    use hyper::body::Incoming;
    use hyper::server::conn::http1;
    use hyper_util::rt::TokioIo;
    use kube::Config;
    use tokio::net::TcpListener;

    use super::*;

    /// A server that says back the credential that it was shown, and how many connections came.
    async fn server() -> (Config, Arc<AtomicUsize>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let came = Arc::<AtomicUsize>::default();
        let count = Arc::clone(&came);
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::Relaxed);
                let answer = hyper::service::service_fn(async |request: Request<Incoming>| {
                    let shown = request
                        .headers()
                        .get(AUTHORIZATION)
                        .map(|value| value.as_bytes().to_vec());
                    let path = request.uri().path().as_bytes().to_vec();
                    let said = [shown.unwrap_or_default(), path].concat();
                    Ok::<_, Infallible>(Response::new(Full::new(Bytes::from(said))))
                });
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(socket), answer));
            }
        });
        let mut config = Config::new(format!("http://{address}/beyond").parse().expect("an address"));
        config.auth_info.token = Some("secret".to_owned().into());
        (config, came)
    }

    #[tokio::test]
    async fn requests_after_one_another_share_a_connection_and_show_the_credential() {
        let (config, came) = server().await;
        let passage = Passage::fixed(&config).expect("it can be used");
        for way in [passage.clone(), Passage::from(passage.client("default")), passage] {
            let request = Request::get("/version").body(Body::empty()).expect("a request");
            let answer = way.send(request).await.expect("an answer").into_body();
            let said = answer.collect().await.expect("a body").to_bytes();
            assert_eq!(said, "Bearer secret/beyond/version");
        }
        assert_eq!(came.load(Ordering::Relaxed), 1);
    }
}
