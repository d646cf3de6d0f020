//! How people reach a hub that serves them: its address, whom to trust, and how they log in. Secrets are pointed at, and never
//! copied.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{Request, StatusCode};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use render::ClusterName;
use render::limits::FILE_BYTES_MAX;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use serde_json::{Value, json};

use super::super::client::{GROUP, is_outage};
use super::super::exit;
use crate::fault::line;

/// Part of the help in which these stand.
const HEADING: &str = "A hub that serves people";

/// A hub that serves people.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = HEADING)]
pub(super) struct PeopleFlags {
    /// Where the hub serves people (`flotilla hub --serve`): https://HOST:PORT. One context more is written for each cluster.
    #[arg(long, env = "FLOTILLA_HUB_URL", value_name = "URL", value_parser = address)]
    hub: Option<String>,
    /// The authority of the hub's certificate, a PEM file such as flotilla-hub-ca.crt; without it, those that this machine
    /// trusts.
    #[arg(long, value_name = "FILE", requires = "hub")]
    ca: Option<PathBuf>,
    /// Log in with the token in this file, which kubectl reads each time.
    #[arg(long, value_name = "FILE", requires = "hub")]
    token_file: Option<PathBuf>,
    /// Log in with this client certificate.
    #[arg(long, value_name = "FILE", requires_all = ["hub", "client_key"], conflicts_with = "token_file")]
    client_certificate: Option<PathBuf>,
    /// Its key.
    #[arg(long, value_name = "FILE", requires = "client_certificate")]
    client_key: Option<PathBuf>,
    /// Log in with what this program prints, as client-go's exec plugins do: `kubectl oidc-login get-token …` for OIDC.
    #[arg(long, value_name = "PROGRAM", requires = "hub", conflicts_with_all = ["token_file", "client_certificate"])]
    exec: Option<String>,
    /// An argument of that program. May be given more than once.
    #[arg(
        long = "exec-arg",
        value_name = "ARGUMENT",
        requires = "exec",
        allow_hyphen_values = true
    )]
    exec_args: Vec<String>,
    /// A cluster to write a context for. May be given more than once; without it, the hub is asked which there are.
    #[arg(long = "cluster", value_name = "NAME", requires = "hub")]
    clusters: Vec<ClusterName>,
}

/// Why nothing is written.
pub(super) enum Unusable {
    /// The command line cannot be followed.
    Usage(String),
    /// The hub does not say which clusters there are: it says no, or does not answer.
    Hub {
        /// Its words, or why there are none.
        why: String,
        /// What the process ends with.
        code: u8,
    },
}

fn address(text: &str) -> Result<String, String> {
    let wrong = "it is no address like https://hub.example.com:6443";
    let uri: http::Uri = text.parse().map_err(|_| wrong)?;
    let has_path = !matches!(uri.path(), "" | "/") || uri.query().is_some();
    match (uri.scheme_str(), uri.authority()) {
        (Some("https"), Some(authority)) if !has_path && !authority.as_str().contains('@') => {
            Ok(format!("https://{authority}"))
        }
        _ => Err(wrong.to_owned()),
    }
}

impl PeopleFlags {
    /// Where the hub serves people.
    pub(super) fn hub(&self) -> Option<&str> {
        self.hub.as_deref()
    }

    /// Whom to trust, as a kubeconfig has it.
    pub(super) fn trust(&self) -> Result<Value, Unusable> {
        let Some(file) = &self.ca else { return Ok(json!({})) };
        let unusable = |why: String| Unusable::Usage(format!("--ca {}: {why}", file.display()));
        let pem = File::open(file).map_err(|error| unusable(error.to_string()))?;
        let pem = whole(pem).map_err(unusable)?;
        check_authority(&pem).map_err(|why| unusable(why.to_owned()))?;
        Ok(json!({ "certificate-authority-data": STANDARD.encode(pem) }))
    }

    /// How to log in, as a kubeconfig has it.
    pub(super) fn login(&self) -> Result<Value, Unusable> {
        if let Some(file) = &self.token_file {
            return Ok(json!({ "tokenFile": absolute(file)? }));
        }
        if let (Some(certificate), Some(key)) = (&self.client_certificate, &self.client_key) {
            return Ok(json!({ "client-certificate": absolute(certificate)?, "client-key": absolute(key)? }));
        }
        if let Some(program) = &self.exec {
            return Ok(json!({ "exec": {
                "apiVersion": "client.authentication.k8s.io/v1",
                "interactiveMode": "IfAvailable",
                "command": program,
                "args": self.exec_args,
            }}));
        }
        let why =
            "nobody asks without a login\nhint: name --token-file, --client-certificate and --client-key, or --exec";
        Err(Unusable::Usage(why.to_owned()))
    }

    /// The clusters, as named or as the hub says. `kubeconfig` is what reaches the hub.
    pub(super) async fn clusters(&self, kubeconfig: &str) -> Result<Vec<String>, Unusable> {
        if !self.clusters.is_empty() {
            return Ok(self.clusters.iter().map(ToString::to_string).collect());
        }
        let failed = |error: &dyn std::error::Error| Unusable::Hub {
            why: line(error),
            code: exit::UNAVAILABLE,
        };
        let kubeconfig = Kubeconfig::from_yaml(kubeconfig).map_err(|error| failed(&error))?;
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
        let client = Client::try_from(config.map_err(|error| failed(&error))?).map_err(|error| failed(&error))?;
        let request = Request::get(format!("{GROUP}/managedclusters")).body(Vec::new());
        let list = client.request::<Value>(request.map_err(|error| failed(&error))?).await;
        let list = list.map_err(|error| refused(&error))?;
        let names = list["items"].as_array().into_iter().flatten();
        let names = names.filter_map(|item| item["metadata"]["name"].as_str());
        Ok(names.map(str::to_owned).collect())
    }
}

/// A file's bytes, all of them: what is cut off might be a certificate that is needed.
fn whole(file: impl std::io::Read) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let read = file.take(FILE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes);
    match read {
        Ok(read) if read > FILE_BYTES_MAX => Err(format!("it has more than {FILE_BYTES_MAX} bytes")),
        Ok(_) => Ok(bytes),
        Err(error) => Err(error.to_string()),
    }
}

/// Whether a file may stand in a kubeconfig, which is handed on: the authority's key has the same name but for its end.
fn check_authority(pem: &[u8]) -> Result<(), &'static str> {
    let key = b"PRIVATE KEY";
    if pem.windows(key.len()).any(|text| text == key) {
        return Err(
            "it holds a private key, which is for the hub alone\nhint: name the certificate, such as flotilla-hub-ca.crt",
        );
    }
    match CertificateDer::pem_slice_iter(pem).next() {
        Some(Ok(_)) => Ok(()),
        Some(Err(_)) | None => {
            Err("it holds no certificate in PEM form\nhint: the hub writes flotilla-hub-ca.crt beside its key")
        }
    }
}

/// Why the hub lists no clusters: its own words, where it answered.
fn refused(error: &kube::Error) -> Unusable {
    let (why, is_outage) = match error {
        kube::Error::Api(status) => {
            let code = StatusCode::from_u16(status.code);
            (status.message.clone(), code.map_or(true, is_outage))
        }
        error => (line(error), true),
    };
    let code = if is_outage { exit::UNAVAILABLE } else { 1 };
    Unusable::Hub { why, code }
}

/// kubectl reads paths from the kubeconfig's own folder.
fn absolute(path: &Path) -> Result<PathBuf, Unusable> {
    let there = path.canonicalize();
    there.map_err(|error| Unusable::Usage(format!("{}: {error}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kubeconfig_takes_an_authority_and_no_key_of_it() {
        let block = |what: &str| format!("-----BEGIN {what}-----\nAAAA\n-----END {what}-----\n");
        let (certificate, key) = (block("CERTIFICATE"), block("PRIVATE KEY"));
        assert_eq!(check_authority(certificate.as_bytes()), Ok(()));
        for (pem, words) in [
            (key.clone(), "private key"),
            (format!("{certificate}{key}"), "private key"),
            (String::new(), "no certificate"),
            ("nothing".to_owned(), "no certificate"),
        ] {
            let why = check_authority(pem.as_bytes()).expect_err("it is not taken");
            assert!(why.contains(words), "{why}");
        }
    }

    #[test]
    fn a_hub_that_lists_no_clusters_is_quoted() {
        let said = "\"sam\" may ask nothing of the hub: no binding names them";
        for (http, expected) in [(401, 1), (403, 1), (404, 1), (429, 69), (502, 69), (0, 69)] {
            let status = kube::core::Status::failure(said, "Forbidden").with_code(http);
            let Unusable::Hub { why, code } = refused(&kube::Error::Api(Box::new(status))) else {
                panic!("it is about the hub");
            };
            assert_eq!((why.as_str(), code), (said, expected), "{http}");
        }
    }

    #[test]
    fn an_authority_is_taken_whole_or_not_at_all() {
        let of = |bytes: usize| whole(std::io::repeat(b'A').take(bytes as u64));
        assert_eq!(of(FILE_BYTES_MAX).map(|pem| pem.len()), Ok(FILE_BYTES_MAX));
        let why = of(FILE_BYTES_MAX + 1).expect_err("its end would be missing");
        assert!(why.contains("more than"), "{why}");
    }

    #[test]
    fn a_hub_is_named_by_its_https_address_alone() {
        for (text, expected) in [
            ("https://hub.example:6443", Some("https://hub.example:6443")),
            ("https://hub.example/", Some("https://hub.example")),
            ("http://hub.example:6443", None),
            ("https://ada:secret@hub.example", None),
            ("https://hub.example/clusters/a", None),
            ("hub.example:6443", None),
        ] {
            assert_eq!(address(text).ok().as_deref(), expected, "{text}");
        }
    }
}
