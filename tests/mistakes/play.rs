//! Sets up what a case says, types its command, and takes down what comes of it.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use flotilla_tests::{Child, Output, eventually, ports, scratch};

use super::case::{Beside, Case, Step};

/// How long a command may take on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

/// What every case begins with: a bare repository, and a clone of it with what `flotilla init` writes and two
/// clusters.
pub(super) struct Beginning {
    folder: PathBuf,
}

const BEGIN: &str = "set -e
git init --quiet --bare --initial-branch=main fleet.git
flotilla init clone
cd clone
for name in oslo paris; do
  flotilla agent join --cluster $name --label environment=production --key ../$name.key >clusters/$name.yaml
done
flotilla hub key --key ../hub.key >../hub.pub
git init --quiet --initial-branch=main
git remote add origin ../fleet.git
git add --all
git commit --quiet --message begin
git push --quiet origin main
";

impl Beginning {
    pub(super) fn new() -> Self {
        let folder = scratch::folder("mistakes");
        let output = Output::of(shell(&folder).args(["-c", BEGIN]));
        assert_eq!(output.code(), Some(0), "{output:?}");
        Self { folder }
    }
}

/// A shell that finds `flotilla`, for a person with no settings.
fn shell(folder: &Path) -> Command {
    let flotilla = PathBuf::from(flotilla_tests::flotilla::flotilla().get_program());
    let path = std::env::var("PATH").unwrap_or_default();
    let mut shell = Command::new("sh");
    for (name, _) in std::env::vars_os() {
        if ["FLOTILLA_", "KUBE"]
            .iter()
            .any(|begin| name.to_string_lossy().starts_with(begin))
        {
            shell.env_remove(name);
        }
    }
    for role in ["AUTHOR", "COMMITTER"] {
        shell
            .env(format!("GIT_{role}_NAME"), "Ada")
            .env(format!("GIT_{role}_EMAIL"), "ada@example.com");
        shell.env(format!("GIT_{role}_DATE"), "2026-01-01T00:00:00Z");
    }
    shell
        .current_dir(folder)
        .env("PATH", format!("{}:{path}", flotilla.parent().unwrap().display()))
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .env("HOME", folder)
        .env("HOSTNAME", "host");
    shell
}

const HUB: &str = "exec flotilla hub --key ../hub.key --repository ../fleet.git --recovery-grace-seconds 0 \
     --listen 127.0.0.1:$PORT --api 127.0.0.1:$PORT2";

/// A web server that has nothing: it reads what is asked and says so.
fn answer_nothing(listener: &TcpListener) {
    while let Ok((mut stream, _)) = listener.accept() {
        let mut asked = [0; 4096];
        let _read = stream.read(&mut asked);
        let _said = stream.write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n");
    }
}

/// Plays one case; the lines of what came of it.
pub(super) fn play(began: &Beginning, case: &Case) -> Vec<String> {
    let folder = scratch::folder("mistake");
    Output::of(Command::new("cp").arg("-R").arg(began.folder.join(".")).arg(&folder)).expect_ok();
    let work = folder.join("clone");
    let ports = [ports::free(), ports::free()].map(|port| port.to_string());
    let typed = |line: &str| {
        let mut shell = shell(&work);
        shell.env("PORT", &ports[0]).env("PORT2", &ports[1]).args(["-c", line]);
        shell
    };
    for step in &case.steps {
        match step {
            Step::Shell(line) => drop(Output::of(&mut typed(line)).expect_ok()),
            Step::File { path, text } => write(&work.join(path), text),
            Step::Edit { path, old, new } => {
                let text = fs::read_to_string(work.join(path)).unwrap();
                assert_eq!(
                    text.matches(old.as_str()).count(),
                    1,
                    "{}: {old:?} is in {text}",
                    case.name
                );
                write(&work.join(path), &text.replace(old, new));
            }
        }
    }
    let commit = "git add --all && { git diff --cached --quiet || git commit --quiet --message mistake; }";
    Output::of(&mut typed(commit)).expect_ok();
    let clean = |text: &str| clean(text, &folder, &ports);
    let listener = [Beside::Taken, Beside::Web]
        .contains(&case.beside)
        .then(|| TcpListener::bind(format!("127.0.0.1:{}", ports[0])).unwrap());
    if let (Beside::Web, Some(listener)) = (case.beside, &listener) {
        let listener = listener.try_clone().unwrap();
        std::thread::spawn(move || answer_nothing(&listener));
    }
    let _hub = (case.beside == Beside::Hub).then(|| {
        let hub = Child::start("hub", &folder, &mut typed(HUB));
        eventually(LIMIT, "the hub has released", || {
            let head = Output::of(typed("git ls-remote --exit-code origin flotilla/released").stdin(Stdio::null()));
            head.ok().map_err(|error| format!("{error}{}", hub.log()))
        });
        hub
    });
    if let Some(words) = &case.until {
        let mut child = Child::start("mistake", &folder, &mut typed(&format!("exec {}", case.command)));
        let line = eventually(LIMIT, &case.name, || {
            let log = clean(&child.log());
            let found = log.lines().find(|line| line.contains(words.as_str()));
            // What ended says no more.
            let ended = child.ended().map(|status| format!("ended with {status}: {log}"));
            found.map(str::to_owned).or(ended).ok_or(log)
        });
        return vec![format!("> {line}")];
    }
    let output = Output::of(typed(&format!("exec timeout 20 {}", case.command)).stdin(Stdio::null()));
    let mut found = vec![format!("exit {}", output.code().unwrap())];
    found.extend(
        clean(&output.stderr)
            .lines()
            .map(|line| format!("> {line}").trim_end().to_owned()),
    );
    if !case.is_quiet {
        found.extend(
            clean(&output.stdout)
                .lines()
                .map(|line| format!("1 {line}").trim_end().to_owned()),
        );
    }
    found
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// What differs between runs gets a name: the folder, ports, times, commits and keys.
fn clean(text: &str, folder: &Path, ports: &[String; 2]) -> String {
    let folder = folder.display().to_string();
    let text = text.replace(&folder, "DIR");
    let text = text.replace(&ports[0], "PORT").replace(&ports[1], "PORT2");
    let lines = text.lines().map(|line| {
        let words = line.split(' ').map(|word| {
            let is_time = word.len() > 20 && word.starts_with("20") && word.contains('T') && word.ends_with('Z');
            if is_time { "TIME".to_owned() } else { named(word) }
        });
        words.collect::<Vec<_>>().join(" ")
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// A word whose commit or key has its name instead.
fn named(word: &str) -> String {
    if let Some((before, key)) = word.split_once("ed25519:")
        && key.len() >= 40
    {
        let rest = key.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || "+/=_-".contains(c));
        return format!("{before}KEY{rest}");
    }
    let is_hex = |part: &str| part.len() == 40 && part.chars().all(|c| c.is_ascii_hexdigit());
    let parts = word.split_inclusive(|c: char| !c.is_ascii_alphanumeric());
    let name = |part: &str| {
        let hex = part.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
        if is_hex(hex) {
            part.replace(hex, "COMMIT")
        } else {
            part.to_owned()
        }
    };
    parts.map(name).collect()
}
