//! A child process with its log in a file.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use crate::{eventually, watchdog};

/// Lines of a log that a failing test prints.
const TAIL_LINES: usize = 60;

/// A running child. It is killed on drop, and when this process ends.
#[derive(Debug)]
pub struct Child {
    name: String,
    log: PathBuf,
    process: std::process::Child,
}

impl Child {
    /// Starts `command` with both outputs appended to `folder/name.log`, and without input.
    pub fn start(name: &str, folder: &Path, command: &mut Command) -> Self {
        let log = folder.join(format!("{name}.log"));
        let file = File::options()
            .create(true)
            .append(true)
            .open(&log)
            .expect("the scratch folder is writable");
        let process = command
            .stdin(Stdio::null())
            .stdout(file.try_clone().expect("a log file can be shared"))
            .stderr(file)
            .spawn()
            .unwrap_or_else(|error| panic!("{name} did not start: {error}"));
        watchdog::kill_at_end(process.id());
        Self {
            name: name.to_owned(),
            log,
            process,
        }
    }

    /// Its process number.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Everything it wrote so far.
    pub fn log(&self) -> String {
        fs::read(&self.log)
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .unwrap_or_default()
    }

    /// The last lines of the log, headed by the child's name.
    pub fn log_tail(&self) -> String {
        let log = self.log();
        let lines: Vec<_> = log.lines().collect();
        let tail = &lines[lines.len().saturating_sub(TAIL_LINES)..];
        format!("--- {} ({})\n{}\n", self.name, self.log.display(), tail.join("\n"))
    }

    /// How it ended, if it did.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.process.try_wait().expect("a child can be asked for its state")
    }

    /// Panics with the log if the child is not running.
    #[track_caller]
    pub fn assert_running(&mut self) {
        if let Some(status) = self.ended() {
            panic!("{} ended with {status}\n{}", self.name, self.log_tail());
        }
    }

    /// Waits until it ends by itself.
    #[track_caller]
    pub fn wait(&mut self, limit: Duration) -> ExitStatus {
        let what = format!("{} ends", self.name);
        eventually(limit, &what, || self.ended().ok_or_else(|| "still running".to_owned()))
    }

    /// Asks it to end (SIGTERM) and waits for that.
    #[track_caller]
    pub fn terminate(&mut self, limit: Duration) -> ExitStatus {
        self.signal("TERM");
        self.wait(limit)
    }

    /// Sends a signal by name: `TERM`, `STOP`, `CONT`, `HUP`.
    pub fn signal(&self, name: &str) {
        let sent = Command::new("kill")
            .args(["-s", name, &self.id().to_string()])
            .status()
            .expect("kill starts");
        assert!(sent.success(), "{} takes the signal {name}", self.name);
    }

    /// Ends it at once, as a crash or a power cut would.
    pub fn kill(&mut self) {
        // An error means that it has ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
        watchdog::forget(self.process.id());
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.kill();
    }
}

/// What a command that ran to its end said.
#[derive(Clone, Debug)]
pub struct Output {
    /// The command line, for messages.
    pub command: String,
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

impl Output {
    /// Runs `command` to its end.
    pub fn of(command: &mut Command) -> Self {
        let line = format!("{command:?}");
        let output = command
            .stdin(Stdio::null())
            .output()
            .unwrap_or_else(|error| panic!("{line} did not start: {error}"));
        Self {
            command: line,
            status: output.status,
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// The exit code; `None` if a signal ended it.
    pub fn code(&self) -> Option<i32> {
        self.status.code()
    }

    /// Its standard output if it succeeded, else its standard error: for [`eventually`].
    pub fn ok(self) -> Result<String, String> {
        if self.status.success() {
            Ok(self.stdout)
        } else {
            Err(self.stderr)
        }
    }

    /// Its standard output.
    ///
    /// # Panics
    /// If it failed, with everything it said.
    #[track_caller]
    pub fn expect_ok(self) -> String {
        assert!(
            self.status.success(),
            "{} failed: {}\n{}{}",
            self.command,
            self.status,
            self.stdout,
            self.stderr
        );
        self.stdout
    }
}
