//! Kills what this process started when it ends, however it ends, and removes its scratch folder.
//!
//! A static is never dropped in Rust and a killed process drops nothing, so `Drop` alone would leave API
//! servers behind. A small shell waits on a pipe that only this process holds open: at end of file it kills
//! every process that is still on its list. It has its own process group, so that Ctrl-C reaches it last.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};

const SCRIPT: &str = r#"
while read -r verb what; do
    case $verb in
        kill) pids="$pids $what " ;;
        forget) pids=$(echo "$pids" | sed "s/ $what / /") ;;
        remove) folder=$what ;;
        namespace) namespaces="$namespaces $what" ;;
    esac
done
for pid in $pids; do kill -9 "$pid" 2>/dev/null; done
for name in $namespaces; do ip netns del "$name" 2>/dev/null; rm -rf "/etc/netns/$name"; done
[ -z "$folder" ] || { sleep 0.2; rm -rf "$folder"; }
"#;

/// Ends process `pid` together with this one.
pub(crate) fn kill_at_end(pid: u32) {
    tell(&format!("kill {pid}\n"));
}

/// Process `pid` is gone and its number may be someone else's by now.
pub(crate) fn forget(pid: u32) {
    tell(&format!("forget {pid}\n"));
}

/// Removes `folder` when this process ends.
pub(crate) fn remove_at_end(folder: &Path) {
    tell(&format!("remove {}\n", folder.display()));
}

/// Removes a network namespace, with what stands for it below `/etc/netns`, when this process ends.
pub(crate) fn remove_namespace_at_end(name: &str) {
    tell(&format!("namespace {name}\n"));
}

fn tell(line: &str) {
    static WATCHDOG: OnceLock<Mutex<Child>> = OnceLock::new();
    let watchdog = WATCHDOG.get_or_init(|| Mutex::new(start()));
    let mut watchdog = watchdog.lock().unwrap_or_else(PoisonError::into_inner);
    let pipe = watchdog.stdin.as_mut().expect("its input was asked to be a pipe");
    pipe.write_all(line.as_bytes())
        .expect("the watchdog outlives this process");
}

fn start() -> Child {
    Command::new("sh")
        .args(["-c", SCRIPT])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .expect("sh starts")
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::time::Duration;

    use super::*;
    use crate::eventually;

    #[test]
    fn what_a_test_started_ends_when_its_pipe_closes() {
        let mut sleeper = Command::new("sleep").arg("600").spawn().expect("sleep starts");
        let mut forgotten = Command::new("sleep").arg("600").spawn().expect("sleep starts");
        let folder = tempfile::tempdir()
            .expect("there is a folder for temporary files")
            .keep();
        let mut watchdog = start();
        let mut pipe = watchdog.stdin.take().expect("its input was asked to be a pipe");
        let (kept, left) = (sleeper.id(), forgotten.id());
        writeln!(
            pipe,
            "kill {left}\nkill {kept}\nforget {left}\nremove {}",
            folder.display()
        )
        .expect("it reads");
        drop(pipe);
        eventually(
            Duration::from_secs(10),
            "the sleeper ends and its folder goes",
            || match sleeper.try_wait() {
                Ok(Some(_)) if !folder.exists() => Ok(()),
                state => Err(format!("{state:?}")),
            },
        );
        watchdog.wait().expect("it ends by itself");
        assert!(
            forgotten.try_wait().expect("it can be asked").is_none(),
            "what was forgotten is left alone"
        );
        forgotten.kill().expect("it still runs");
        forgotten.wait().expect("it ends");
    }
}
