//! Git's words as they were seen, and the states that they are.

use super::super::answers::{PushedRef, pushed, refs};
use super::super::failure::kind;
use crate::hub::git::Said;
use crate::hub::remote::{Failure, FailureKind as Kind, RemoteUrl, RepositoryAddress};

fn url() -> RemoteUrl {
    match "https://git.example.com/team/fleet.git".parse() {
        Ok(RepositoryAddress::Remote(url)) => url,
        other => unreachable!("{other:?}"),
    }
}

fn said(stdout: &str, stderr: &str) -> Said {
    Said {
        success: false,
        stdout: stdout.to_owned(),
        stderr: stderr.to_owned(),
    }
}

/// What Git 2.39 and servers wrote, and the state that it is.
const SEEN: &[(&str, Kind)] = &[
    (
        "fatal: Authentication failed for 'https://git.example.com/team/fleet.git/'",
        Kind::AuthenticationFailed,
    ),
    (
        "fatal: could not read Username for 'https://git.example.com': terminal prompts disabled",
        Kind::AuthenticationFailed,
    ),
    (
        "fatal: unable to access 'https://git.example.com/team/fleet.git/': The requested URL returned error: 403",
        Kind::AuthenticationFailed,
    ),
    (
        "git@git.example.com: Permission denied (publickey).\nfatal: Could not read from remote repository.",
        Kind::AuthenticationFailed,
    ),
    (
        "No ED25519 host key is known for [127.0.0.1]:2222 and you have requested strict checking.\nHost key verification failed.\nfatal: Could not read from remote repository.",
        Kind::HostKeyUnknown,
    ),
    (
        "@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\nIT IS POSSIBLE THAT SOMEONE IS DOING SOMETHING NASTY!\nHost key verification failed.",
        Kind::HostKeyChanged,
    ),
    (
        "fatal: unable to access 'https://nowhere.invalid/fleet/': Could not resolve host: nowhere.invalid",
        Kind::HostNotFound,
    ),
    (
        "ssh: Could not resolve hostname nowhere.invalid: Name or service not known\nfatal: Could not read from remote repository.",
        Kind::HostNotFound,
    ),
    (
        "fatal: unable to access 'https://127.0.0.1:1/fleet/': Failed to connect to 127.0.0.1 port 1 after 0 ms: Couldn't connect to server",
        Kind::Unreachable,
    ),
    (
        "ssh: connect to host 127.0.0.1 port 1: Connection refused\nfatal: Could not read from remote repository.",
        Kind::Unreachable,
    ),
    (
        "fatal: unable to access 'https://127.0.0.1/fleet/': server certificate verification failed. CAfile: none CRLfile: none",
        Kind::CertificateInvalid,
    ),
    (
        "fatal: unable to access 'https://127.0.0.1/fleet/': SSL certificate problem: self-signed certificate",
        Kind::CertificateInvalid,
    ),
    (
        "fatal: unable to access 'https://10.0.0.1/fleet/': Failed to connect to 10.0.0.1 port 443: Connection timed out",
        Kind::TimedOut,
    ),
    (
        "error: RPC failed; curl 28 Operation too slow. Less than 100 bytes/sec transferred the last 60 seconds",
        Kind::TimedOut,
    ),
    (
        "fatal: repository 'https://git.example.com/team/fleet.git/' not found",
        Kind::RepositoryNotFound,
    ),
    (
        "ERROR: Repository not found.\nfatal: Could not read from remote repository.",
        Kind::RepositoryNotFound,
    ),
    (
        "fatal: '/srv/fleet.git' does not appear to be a git repository\nfatal: Could not read from remote repository.",
        Kind::RepositoryNotFound,
    ),
    (
        "fatal: unable to access 'https://git.example.com/team/fleet.git/': The requested URL returned error: 502",
        Kind::ServerError,
    ),
    (
        "fatal: https://git.example.com/login/info/refs not valid: is this a git repository?",
        Kind::NotGit,
    ),
    ("fatal: transport 'http' not allowed", Kind::NotGit),
    (
        "fatal: mismatched algorithms: client sha1; server sha256",
        Kind::FormatUnsupported,
    ),
    (
        "fatal: dumb http transport does not support shallow capabilities",
        Kind::ShallowUnsupported,
    ),
    (
        "fatal: Unable to create '/srv/copy/shallow.lock': File exists.",
        Kind::CopyLocked,
    ),
    (
        "error: object file objects/12/34 is empty\nfatal: loose object 1234 (stored in objects/12/34) is corrupt",
        Kind::CopyDamaged,
    ),
    ("fatal: write error: No space left on device", Kind::DiskFull),
    ("fatal: the world has ended", Kind::Failed),
];

#[test]
fn what_git_says_is_a_named_state() {
    for (stderr, expected) in SEEN {
        assert_eq!(kind(stderr), *expected, "{stderr}");
    }
}

#[test]
fn every_state_has_a_name_of_its_own_and_is_told_in_one_line() {
    for (stderr, _) in SEEN {
        let failure = Failure::of_read(&url(), &said("", stderr));
        assert!(
            failure.message.contains("for https://git.example.com/team/fleet.git"),
            "{}",
            failure.message
        );
        assert!(!failure.message.contains('\n'), "{}", failure.message);
    }
    let mut names: Vec<_> = Kind::ALL.iter().map(|kind| kind.reason()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), Kind::ALL.len());
}

#[test]
fn a_message_says_host_cause_and_what_to_do() {
    let stderr = "fatal: Authentication failed for 'https://git.example.com/team/fleet.git/'";
    assert_eq!(
        Failure::of_read(&url(), &said("", stderr)).message,
        "authentication failed for https://git.example.com/team/fleet.git: Authentication failed for \
         'https://git.example.com/team/fleet.git/'; name a file with username= and password= (a token that may \
         read the repository) with --git-credentials"
    );
}

/// A push of two refs, of which the server says this, and this of the first.
#[track_caller]
fn check_push(first: &str, stderr: &str, expected: Kind, words: &str) {
    let id = "1".repeat(40);
    let stdout = format!(
        "To https://git.example.com/team/fleet.git\n!\t{id}:refs/heads/flotilla/released\t[rejected] (atomic push failed)\n!\t{id}:refs/heads/flotilla/rendered\t{first}\nDone\n"
    );
    let failure = Failure::of_push(&url(), &said(&stdout, stderr));
    assert_eq!(failure.kind, expected, "{first}: {}", failure.message);
    assert!(failure.message.contains(words), "{}", failure.message);
}

#[test]
fn a_refused_push_says_who_refused_it_and_why() {
    check_push(
        "[rejected] (stale info)",
        "error: failed to push some refs to 'x'",
        Kind::LeaseLost,
        "flotilla/rendered",
    );
    check_push(
        "[rejected] (fetch first)",
        "",
        Kind::LeaseLost,
        "somebody else moved a ref first",
    );
    check_push("[remote rejected] (failed to update ref)", "", Kind::LeaseLost, "");
    check_push(
        "[remote rejected] (pre-receive hook declined)",
        "remote: \nremote: Gitea: Not allowed to push to protected branch flotilla/rendered        \nTo https://x\n",
        Kind::PushRefused,
        "the server says: Gitea: Not allowed to push to protected branch flotilla/rendered; let the hub's user push flotilla/*",
    );
    check_push(
        "[remote rejected] (protected branch hook declined)",
        "remote: error: GH006: Protected branch update failed for refs/heads/flotilla/rendered.",
        Kind::PushRefused,
        "GH006: Protected branch update failed",
    );
    check_push(
        "[remote rejected] (unpacker error)",
        "remote: error: insufficient permission for adding an object to repository database ./objects",
        Kind::WriteForbidden,
        "--state-repository",
    );
}

#[test]
fn a_push_that_may_not_write_names_the_way_out() {
    for stderr in [
        "fatal: unable to access 'https://git.example.com/team/fleet.git/': The requested URL returned error: 403",
        "ERROR: The key you are authenticating with has been marked as read only.\nfatal: Could not read from remote repository.",
        "remote: ========\nremote: ERROR: This deploy key does not have write access to this project.",
        "remote: You are not allowed to push code to this project.\nfatal: unable to access 'x': The requested URL returned error: 403",
        "remote: Write access to repository not granted.\nfatal: unable to access 'x': The requested URL returned error: 403",
    ] {
        let failure = Failure::of_push(&url(), &said("", stderr));
        assert_eq!(failure.kind, Kind::WriteForbidden, "{stderr}");
        assert!(failure.message.contains("--state-repository"), "{}", failure.message);
    }
    let failure = Failure::of_push(&url(), &said("", "fatal: Authentication failed for 'x'"));
    assert_eq!(failure.kind, Kind::AuthenticationFailed);
}

#[test]
fn long_words_of_a_server_are_shortened_and_carry_no_escape() {
    let stderr = format!("remote: \u{1b}[31m{}\n", "no ".repeat(500));
    let stdout = format!(
        "!\t{}:refs/heads/x\t[remote rejected] (hook declined)\n",
        "1".repeat(40)
    );
    let failure = Failure::of_push(&url(), &said(&stdout, &stderr));
    assert!(failure.message.chars().count() < 700, "{}", failure.message);
    assert!(!failure.message.contains('\u{1b}'));
}

#[test]
fn porcelain_is_read_ref_by_ref() {
    let one = "1".repeat(40);
    let output = format!(
        "To x\n*\t{one}:refs/heads/a\t[new branch]\n-\t:refs/heads/b\t[deleted]\n!\t{one}:refs/heads/c\t[rejected] (stale info)\nDone\n"
    );
    let expected = [
        ("refs/heads/a", false, "[new branch]"),
        ("refs/heads/b", false, "[deleted]"),
        ("refs/heads/c", true, "[rejected] (stale info)"),
    ];
    let expected = expected.map(|(name, is_refused, summary)| PushedRef {
        name: name.to_owned(),
        is_refused,
        summary: summary.to_owned(),
    });
    assert_eq!(pushed(&output), expected);
    let listed = refs(
        &format!("{one}\trefs/heads/a\n{one}\trefs/x/refs/heads/a\nnoise\n"),
        |name| name == "refs/heads/a",
    );
    assert_eq!(
        listed.into_iter().collect::<Vec<_>>(),
        [("refs/heads/a".to_owned(), one)]
    );
}
