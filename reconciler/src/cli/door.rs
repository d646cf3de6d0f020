//! Flags of the hub's door for people.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::Args;
use render::access::token::Provider;

use crate::audit::AuditTo;
use crate::hub::{DoorOptions, Identity, OidcOptions};

/// Part of the hub's help in which these stand.
const HEADING: &str = "People";

/// How people ask the hub and its clusters.
#[derive(Debug, Args)]
#[command(next_help_heading = HEADING)]
pub(super) struct DoorFlags {
    /// Where people's kubectl asks the hub and every cluster, over HTTPS: ADDRESS:PORT. Without it, nobody is served but
    /// this machine.
    #[arg(long, env = "FLOTILLA_SERVE", value_name = "ADDRESS", value_parser = super::hub::address)]
    serve: Option<SocketAddr>,
    /// The certificate to show, a PEM file that is read again when it changes. Without it, the hub makes an authority of its
    /// own, whose certificate is written beside the hub's key.
    #[arg(long, env = "FLOTILLA_SERVE_CERT", value_name = "FILE", requires_all = ["serve", "serve_key"])]
    serve_cert: Option<PathBuf>,
    /// Its key.
    #[arg(long, env = "FLOTILLA_SERVE_KEY", value_name = "FILE", requires = "serve_cert")]
    serve_key: Option<PathBuf>,
    /// A name or address that people use for this hub, for the certificate that the hub makes. May be given more than once;
    /// localhost and 127.0.0.1 are always there.
    #[arg(
        long = "serve-name",
        env = "FLOTILLA_SERVE_NAMES",
        value_name = "NAME",
        value_delimiter = ',',
        requires = "serve",
        conflicts_with = "serve_cert"
    )]
    serve_names: Vec<String>,
    /// Authorities whose client certificates log people in: CN is the user, each O a group. A PEM file.
    #[arg(long, env = "FLOTILLA_CLIENT_CA", value_name = "FILE", requires = "serve")]
    client_ca: Option<PathBuf>,
    /// Static tokens that log people in, a line each: token,user,uid,"group1,group2". A token may stand as sha256:HEX.
    #[arg(long, env = "FLOTILLA_TOKEN_FILE", value_name = "FILE", requires = "serve")]
    token_file: Option<PathBuf>,
    /// An OIDC provider whose ID tokens log people in: its issuer, as the tokens have it.
    #[arg(long, env = "FLOTILLA_OIDC_ISSUER", value_name = "URL", requires_all = ["serve", "oidc_client_ids"])]
    oidc_issuer: Option<String>,
    /// The id under which it knows this fleet: the audience of its tokens. May be given more than once.
    #[arg(
        long = "oidc-client-id",
        env = "FLOTILLA_OIDC_CLIENT_IDS",
        value_name = "ID",
        value_delimiter = ',',
        requires = "oidc_issuer"
    )]
    oidc_client_ids: Vec<String>,
    /// The authority of its certificate, a PEM file; without it, those that this machine trusts.
    #[arg(long, env = "FLOTILLA_OIDC_CA", value_name = "FILE", requires = "oidc_issuer")]
    oidc_ca: Option<PathBuf>,
    /// The claim that names the person; email counts only where the provider says that it is verified.
    #[arg(
        long,
        env = "FLOTILLA_OIDC_USERNAME_CLAIM",
        value_name = "CLAIM",
        default_value = "sub",
        requires = "oidc_issuer"
    )]
    oidc_username_claim: String,
    /// What is set before that name, so that it is nobody else's; - is nothing. Required beside another way to log in.
    #[arg(
        long,
        env = "FLOTILLA_OIDC_USERNAME_PREFIX",
        value_name = "TEXT|-",
        requires = "oidc_issuer"
    )]
    oidc_username_prefix: Option<String>,
    /// The claim that lists the person's groups; without it they are in none.
    #[arg(
        long,
        env = "FLOTILLA_OIDC_GROUPS_CLAIM",
        value_name = "CLAIM",
        requires = "oidc_issuer"
    )]
    oidc_groups_claim: Option<String>,
    /// What is set before each group; - is nothing. Required as for names.
    #[arg(
        long,
        env = "FLOTILLA_OIDC_GROUPS_PREFIX",
        value_name = "TEXT|-",
        requires = "oidc_groups_claim"
    )]
    oidc_groups_prefix: Option<String>,
    /// Carry exec, attach, cp, port-forward and proxy to clusters, where access/ and the cluster's agent allow them.
    #[arg(long, requires = "serve")]
    allow_interactive: bool,
    /// Write one JSON line for each request of people to this file, or to stdout with -.
    #[arg(long, env = "FLOTILLA_AUDIT_LOG", value_name = "FILE|-", requires = "serve")]
    audit_log: Option<String>,
}

impl DoorFlags {
    /// The door that the flags describe. `hub_keys` are the files beside one of which the hub keeps its authority.
    pub(super) fn options(self, hub_keys: &[PathBuf]) -> Result<Option<DoorOptions>, String> {
        let Some(address) = self.serve else { return Ok(None) };
        if self.client_ca.is_none() && self.token_file.is_none() && self.oidc_issuer.is_none() {
            let why =
                "--serve lets nobody in\nhint: name with --client-ca, --token-file or --oidc-issuer whom it knows";
            return Err(why.to_owned());
        }
        let has_other = self.client_ca.is_some() || self.token_file.is_some();
        let names = (self.oidc_username_prefix, "--oidc-username-prefix");
        let groups = (self.oidc_groups_prefix, "--oidc-groups-prefix");
        let oidc = match self.oidc_issuer {
            None => None,
            Some(issuer) => Some(OidcOptions {
                held_to: Provider {
                    issuer,
                    audiences: self.oidc_client_ids,
                    user_claim: self.oidc_username_claim,
                    user_prefix: prefix(names, has_other)?,
                    groups_prefix: prefix(groups, has_other && self.oidc_groups_claim.is_some())?,
                    groups_claim: self.oidc_groups_claim,
                },
                authority: self.oidc_ca,
            }),
        };
        let identity = match (self.serve_cert, self.serve_key) {
            (Some(certificate), Some(key)) => Identity::Files { certificate, key },
            _ => {
                let mut names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
                names.extend(self.serve_names);
                Identity::Own {
                    key: authority(hub_keys),
                    names,
                }
            }
        };
        Ok(Some(DoorOptions {
            address,
            identity,
            client_authority: self.client_ca,
            tokens: self.token_file,
            oidc,
            interactive: self.allow_interactive,
            audit: self.audit_log.as_deref().map(AuditTo::from),
        }))
    }
}

/// What is set before names of a provider. Whoever may choose their name there is the person of that name in a file of
/// tokens otherwise.
fn prefix((given, flag): (Option<String>, &str), is_required: bool) -> Result<String, String> {
    match given {
        Some(none) if none == "-" => Ok(String::new()),
        Some(prefix) if !prefix.is_empty() => Ok(prefix),
        _ if is_required => Err(format!(
            "{flag} is missing: names of the provider would be those of --token-file and --client-ca\nhint: name one, such as \
             {flag} git:, or - where the same name is the same person everywhere"
        )),
        _ => Ok(String::new()),
    }
}

/// The file of the hub's own authority: the one that is there, so that people's kubeconfigs outlive a new key of the hub.
fn authority(hub_keys: &[PathBuf]) -> PathBuf {
    let mut places = hub_keys.iter().map(|key| beside(key));
    let first = places.next().unwrap_or_default();
    match first.exists() {
        true => first,
        false => places.find(|place| place.exists()).unwrap_or(first),
    }
}

/// `flotilla-hub.key` → `flotilla-hub-ca.key`.
fn beside(hub_key: &Path) -> PathBuf {
    let stem = hub_key.file_stem().unwrap_or_default().to_string_lossy();
    hub_key.with_file_name(format!("{stem}-ca.key"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_a_provider_have_a_prefix_beside_another_way_to_log_in() {
        let flag = "--oidc-username-prefix";
        let given = |text: Option<&str>, is_required| prefix((text.map(str::to_owned), flag), is_required);
        assert_eq!(given(None, false).as_deref(), Ok(""));
        assert_eq!(given(Some("git:"), true).as_deref(), Ok("git:"));
        assert_eq!(given(Some("-"), true).as_deref(), Ok(""), "on purpose");
        for missing in [None, Some("")] {
            let told = given(missing, true).expect_err("it is required");
            assert!(told.contains(flag) && told.contains("hint: "), "{told}");
        }
    }

    #[test]
    fn another_key_of_the_hub_leaves_the_authority_where_it_is() {
        let folder = tempfile::tempdir().expect("a folder");
        let [new, old] = ["new.key", "flotilla-hub.key"].map(|name| folder.path().join(name));
        let both = [new, old];
        assert_eq!(
            authority(&both),
            folder.path().join("new-ca.key"),
            "nothing is there yet"
        );
        let there = folder.path().join("flotilla-hub-ca.key");
        std::fs::write(&there, "").expect("it is written");
        assert_eq!(authority(&both), there);
    }
}
