//! A real `sshd`.

use std::path::Path;

use flotilla_tests::eventually;
use flotilla_tests::git_host::Ssh;

use super::super::support::LIMIT;
use super::support::{Hub, greet, repository, until_released};

#[test]
fn a_key_or_an_agent_opens_a_repository_over_ssh() {
    let (repository, ssh, mut hub) = (repository(), Ssh::start(), Hub::new());
    let (url, hosts, key) = (ssh.url(repository.bare()), ssh.known_hosts(), ssh.key("writer"));
    hub.start(&url, &["--git-known-hosts", &hosts, "--git-ssh-key", &key]);
    until_released(&repository, &repository.head("main").expect("it was pushed"));
    hub.until("StatePushed", "Pushed");

    let agent = ssh.agent("writer");
    let environment = [("SSH_AUTH_SOCK", agent.socket().as_os_str())];
    hub.start_in(&environment, &url, &["--git-known-hosts", &hosts]);
    let commit = greet(&repository, "hello by an agent");
    until_released(&repository, &commit);
}

#[test]
fn a_key_that_is_not_known_and_a_host_that_is_not_known_are_named_states() {
    let (repository, ssh, mut hub) = (repository(), Ssh::start(), Hub::new());
    let (url, hosts) = (ssh.url(repository.bare()), ssh.known_hosts());
    let (writer, stranger, wrong) = (ssh.key("writer"), ssh.key("stranger"), ssh.wrong_hosts());
    for (flags, reason, words) in [
        (
            ["--git-known-hosts", &hosts, "--git-ssh-key", &stranger],
            "AuthenticationFailed",
            "--git-ssh-key",
        ),
        (
            ["--git-known-hosts", "/dev/null", "--git-ssh-key", &writer],
            "HostKeyUnknown",
            "--git-known-hosts",
        ),
        (
            ["--git-known-hosts", &wrong, "--git-ssh-key", &writer],
            "HostKeyChanged",
            "somebody may be in between",
        ),
    ] {
        hub.start(&url, &flags);
        let said = hub.until("RemoteReached", reason);
        assert!(said.contains(words) && said.contains(&url), "{said}");
    }
    let nowhere = ssh.url(Path::new("/nowhere.git"));
    let mut hub = Hub::new();
    hub.start(&nowhere, &["--git-known-hosts", &hosts, "--git-ssh-key", &writer]);
    hub.until("RemoteReached", "RepositoryNotFound");
}

#[test]
fn a_read_only_deploy_key_works_with_a_state_repository() {
    let (repository, ssh, mut hub) = (repository(), Ssh::start(), Hub::new());
    let (url, hosts, key) = (ssh.url(repository.bare()), ssh.known_hosts(), ssh.key("reader"));
    let flags = ["--git-known-hosts", &hosts, "--git-ssh-key", &key];
    hub.start(&url, &flags);
    let said = hub.until("StatePushed", "WriteForbidden");
    assert!(
        said.contains("marked as read only") && said.contains("--state-repository"),
        "{said}"
    );
    let state = hub.path("state.git");
    hub.start(&url, &[&flags[..], &["--state-repository", &state]].concat());
    let commit = greet(&repository, "hello to readers");
    eventually(LIMIT, "the state repository has it", || {
        let show = ["cat-file", "blob", "refs/heads/flotilla/released:release.yaml"];
        let record = flotilla_tests::repository::git(Path::new(&state), &show).ok()?;
        record.contains(&commit).then_some(()).ok_or(record)
    });
    assert_eq!(repository.head("flotilla/rendered"), None, "nothing was pushed");
}
