//! Why an API server gave no answer: one word of a few for whoever asked, and for the log what kube says, without what a
//! login program was called with and what it printed.

use std::error::Error;
use std::path::PathBuf;
use std::{io, process};

use kube::client::AuthError;

#[cfg(any(feature = "hub", feature = "agent"))]
use super::connections::NotConnected;

/// Why there is no answer, as anybody may read it. Addresses, programs and files are not in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreached {
    /// Its credential could not be had.
    #[error("the login at its API server failed")]
    Login,
    /// Its certificate is not believed, or ours is not.
    #[error("TLS with its API server failed")]
    Tls,
    /// Nobody listens, or nobody knows the name.
    #[error("no connection to its API server could be made")]
    Connection,
    /// The connection ended.
    #[error("its API server cut the connection")]
    Cut,
    /// It answers with something that is no answer.
    #[error("its API server was not understood")]
    Unclear,
}

/// A login that gave no credential.
#[derive(Debug, thiserror::Error)]
pub enum LoginError {
    /// The program could not be started.
    #[error("the kubeconfig's login program was not started")]
    Start(#[source] io::Error),
    /// The program failed. What it printed is nowhere: it may be the credential.
    #[error("the kubeconfig's login program ended with {0}")]
    Program(process::ExitStatus),
    /// The file with the token could not be read.
    #[error("failed to read the token file {}", path.display())]
    TokenFile {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Some other way to log in, or a program that printed no credential.
    #[error("the kubeconfig's way to log in gave no credential")]
    Nothing,
}

impl Unreached {
    /// The word for an error of kube's.
    #[cfg(any(feature = "hub", feature = "agent"))]
    pub(crate) fn of(error: &kube::Error) -> Self {
        if chain(error).any(|error| error.is::<LoginError>() || error.is::<AuthError>()) {
            return Self::Login;
        }
        if chain(error).any(|error| error.is::<rustls::Error>()) {
            return Self::Tls;
        }
        if chain(error).any(|error| error.is::<NotConnected>()) {
            return Self::Connection;
        }
        match error {
            kube::Error::HyperError(_) | kube::Error::Service(_) | kube::Error::ReadEvents(_) => Self::Cut,
            _ => Self::Unclear,
        }
    }
}

/// An error as it may be told on: of a failed login only what kind of failure it is.
pub(super) fn without_login(error: kube::Error) -> kube::Error {
    match login(&error) {
        Some(login) => kube::Error::Service(Box::new(login)),
        None => error,
    }
}

/// The login that an error is about, if it is one.
pub(super) fn login(error: &kube::Error) -> Option<LoginError> {
    let failed = chain(error).find_map(|error| error.downcast_ref::<AuthError>())?;
    // An `io::Error` cannot be cloned.
    let again = |error: &io::Error| {
        let number = error.raw_os_error().map(io::Error::from_raw_os_error);
        number.unwrap_or_else(|| error.kind().into())
    };
    Some(match failed {
        AuthError::AuthExecStart(source) => LoginError::Start(again(source)),
        AuthError::AuthExecRun { out, .. } => LoginError::Program(out.status),
        AuthError::ReadTokenFile(source, path) => LoginError::TokenFile {
            path: path.clone(),
            source: again(source),
        },
        _ => LoginError::Nothing,
    })
}

/// An error and its causes; of one that `io::Error` hides, too.
fn chain(error: &kube::Error) -> impl Iterator<Item = &(dyn Error + 'static)> {
    let first: &(dyn Error + 'static) = error;
    std::iter::successors(Some(first), |error| cause(*error))
}

fn cause<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
        Some(hidden) => Some(hidden),
        None => error.source(),
    }
}

#[cfg(test)]
mod tests {
    use kube::Config;
    use kube::client::Body;

    use super::super::passage::Passage;
    use super::*;

    async fn asked(url: &str) -> kube::Error {
        let config = Config::new(url.parse().expect("an address"));
        let passage = Passage::fixed(&config).expect("it can be used");
        let request = http::Request::get("/version").body(Body::empty()).expect("a request");
        passage.send(request).await.map(drop).expect_err("nobody answers")
    }

    #[tokio::test]
    async fn whoever_asks_is_told_in_words_without_an_address() {
        assert_eq!(Unreached::of(&asked("http://127.0.0.1:1").await), Unreached::Connection);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("//{}", listener.local_addr().expect("it is bound"));
        let speaks_plainly = tokio::spawn(async move {
            for answer in [&b""[..], b"HTTP/1.1 400 Bad Request\r\n\r\n"] {
                let (mut socket, _) = listener.accept().await.expect("somebody comes");
                let mut head = [0; 16];
                let _head = tokio::io::AsyncReadExt::read(&mut socket, &mut head).await;
                let _told = tokio::io::AsyncWriteExt::write_all(&mut socket, answer).await;
            }
        });
        assert_eq!(Unreached::of(&asked(&format!("http:{url}")).await), Unreached::Cut);
        assert_eq!(Unreached::of(&asked(&format!("https:{url}")).await), Unreached::Tls);
        speaks_plainly.await.expect("both came");
    }
}
