use std::path::Path;

use super::super::address::masked;
use crate::hub::remote::{AddressError, RepositoryAddress};

#[track_caller]
fn remote(text: &str, origin: &str) {
    match text.parse() {
        Ok(RepositoryAddress::Remote(url)) => {
            assert_eq!((url.as_str(), url.origin()), (text, origin.to_owned()));
        }
        other => unreachable!("{text}: {other:?}"),
    }
}

#[track_caller]
fn refused(text: &str, message: &str) {
    let error = text.parse::<RepositoryAddress>().expect_err(text).to_string();
    assert!(error.contains(message), "{text}: {error}");
    for secret in ["hunter2", "ghp_"] {
        assert!(!error.contains(secret), "{error}");
    }
}

#[test]
fn a_url_is_told_from_a_path() {
    remote("https://git.example.com/team/fleet.git", "https://git.example.com");
    remote("https://git.example.com:8443/fleet", "https://git.example.com:8443");
    remote("HTTP://localhost/fleet", "http://localhost");
    remote(
        "ssh://git@git.example.com:2222/team/fleet.git",
        "ssh://git.example.com:2222",
    );
    remote("git@git.example.com:team/fleet.git", "ssh://git.example.com");
    remote("git.example.com:fleet", "ssh://git.example.com");
    remote("ssh://[::1]:22/fleet", "ssh://[::1]:22");
    remote("file:///srv/fleet.git", "file://");
    for path in ["/srv/fleet.git", "fleet.git", "./a:b", "../fleet", "srv/with:colon"] {
        match path.parse() {
            Ok(RepositoryAddress::Path(found)) => assert_eq!(found, Path::new(path)),
            other => unreachable!("{path}: {other:?}"),
        }
    }
}

#[test]
fn a_secret_in_a_url_is_refused_and_not_repeated() {
    let hint = "--git-credentials";
    refused("https://ann:hunter2@git.example.com/fleet", hint);
    refused("https://ghp_token@git.example.com/fleet", hint);
    refused("ssh://git:hunter2@git.example.com/fleet", hint);
    refused("bob:hunter2@git.example.com:fleet", hint);
    refused("bob:hunter2@git.example.com/fleet", "***@git.example.com/fleet");
    refused("https://git.example.com/fleet?token=hunter2", "query");
    assert_eq!(
        masked("unable to access 'https://ann:hunter2@git.example.com/fleet/': 403"),
        "unable to access 'https://***@git.example.com/fleet/': 403"
    );
}

#[test]
fn what_is_no_repository_is_refused_with_the_reason() {
    refused("git://git.example.com/fleet", "git:// is not spoken here");
    refused("ext::sh -c touch% /tmp/x", "ext:// is not spoken here");
    refused("https://", "names no repository");
    refused("https://git.example.com", "names no repository");
    refused("https:///fleet", "names no host");
    refused("https://git.example.com:port/fleet", "no number as its port");
    refused("ssh://-oProxyCommand=x/fleet", "dash");
    refused("-oProxyCommand=x:fleet", "dash");
    refused("git@host:", "names no repository");
    refused("git@host:-x", "dash");
    refused("file://host/fleet", "three slashes");
    refused("https://git.example.com/a b", "blank");
    assert_eq!("".parse::<RepositoryAddress>(), Err(AddressError::Empty));
}
