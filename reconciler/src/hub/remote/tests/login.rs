use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use crate::hub::remote::{Login, RemoteUrl, RepositoryAddress};

fn url(text: &str) -> RemoteUrl {
    match text.parse() {
        Ok(RepositoryAddress::Remote(url)) => url,
        other => unreachable!("{text}: {other:?}"),
    }
}

#[track_caller]
fn check(content: &str, mode: u32, at: &str, expected: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("token");
    fs::write(&file, content).expect("writable");
    fs::set_permissions(&file, fs::Permissions::from_mode(mode)).expect("ours");
    let login = Login {
        credentials: Some(file),
        ..Login::default()
    };
    let said = login
        .check(&url(at))
        .err()
        .map(|error| error.to_string())
        .unwrap_or_default();
    assert!(
        if expected.is_empty() {
            said.is_empty()
        } else {
            said.contains(expected)
        },
        "{content:?}: {said:?}"
    );
    assert!(!said.contains("hunter2"), "{said}");
}

#[test]
fn credentials_are_a_private_file_and_mistakes_name_their_line() {
    let at = "https://git.example.com/fleet";
    check("username=flotilla\npassword=hunter2\n", 0o600, at, "");
    check("# a token\n\npassword=a=b=hunter2\nusername=x", 0o400, at, "");
    check(
        "username=flotilla\npassword=hunter2\n",
        0o640,
        at,
        "may be read by others (mode 640)",
    );
    check(
        "username=flotilla\nhunter2\n",
        0o600,
        at,
        "token:2: this line is neither username=NAME",
    );
    check("username=flotilla\npassword=\n", 0o600, at, "token:2: this line");
    check("username=a\nusername=b\n", 0o600, at, "token:2: this line");
    check("username=flotilla\n", 0o600, at, "there is no line password=…");
    check("password=hunter2\n", 0o600, at, "there is no line username=…");
    check(&"x".repeat(70_000), 0o600, at, "is larger than");
}

#[test]
fn a_password_goes_over_encrypted_connections_only() {
    let good = "username=flotilla\npassword=hunter2\n";
    check(good, 0o600, "http://git.example.com/fleet", "is not encrypted");
    check(good, 0o600, "http://127.0.0.1:3000/fleet", "");
    check(
        good,
        0o600,
        "ssh://git@git.example.com/fleet",
        "--git-credentials is for https URLs",
    );
}

#[test]
fn files_that_mean_nothing_for_the_url_are_refused() {
    let missing = Some("/nowhere/file".into());
    let check = |login: Login, at: &str, expected: &str| {
        let said = login.check(&url(at)).expect_err("refused").to_string();
        assert!(said.contains(expected), "{said}");
    };
    let of = |ca, ssh_key, known_hosts| Login {
        credentials: None,
        ca,
        ssh_key,
        known_hosts,
    };
    let (web, ssh) = ("https://git.example.com/fleet", "git@git.example.com:fleet");
    check(of(missing.clone(), None, None), ssh, "--git-ca is for https URLs");
    check(
        of(missing.clone(), None, None),
        web,
        "failed to read /nowhere/file, which --git-ca names",
    );
    check(of(None, missing.clone(), None), web, "--git-ssh-key is for ssh URLs");
    check(of(None, None, missing), ssh, "which --git-known-hosts names");
}

#[test]
fn no_secret_is_in_what_git_is_started_with() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("token");
    fs::write(&file, "username=flotilla\npassword=hunter2\n").expect("writable");
    let login = Login {
        credentials: Some(file),
        ..Login::default()
    };
    let url = url("https://git.example.com:8443/fleet");
    let all = format!("{:?}{:?}", login.settings(&url), login.environment(&url));
    assert!(!all.contains("hunter2"), "{all}");
    assert!(all.contains("credential.https://git.example.com:8443.helper"), "{all}");
    assert!(
        all.contains("StrictHostKeyChecking=yes") && all.contains("BatchMode=yes"),
        "{all}"
    );
}
