//! The audit log: one line of JSON for each thing that somebody reached, in a file that only grows, or on stdout.
//!
//! In: lines. Out: the same lines, written by a thread of their own, which tries again what it could not write and says that
//! it cannot. What a line says is whose log it is: the door for people has its own words, and `StreamLine` those of a stream
//! to a cluster, or of a request on it. A payload, a query and a credential are in neither.

#[cfg(any(feature = "hub", feature = "agent"))]
mod folded;
#[cfg(any(feature = "hub", feature = "agent"))]
mod stream;

use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use serde::Serialize;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};

#[cfg(any(feature = "hub", feature = "agent"))]
pub(crate) use folded::{Alike, Folded};
#[cfg(any(feature = "hub", feature = "agent"))]
pub(crate) use stream::{Begun, StreamLine};

use crate::limits::{AUDIT_LINES_MAX, AUDIT_RETRY, AUDIT_ROOM_TIMEOUT};

/// Where an audit log goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuditTo {
    /// To stdout: `-`.
    Stdout,
    /// To the end of a file, which is made for its owner alone.
    File(PathBuf),
}

impl From<&str> for AuditTo {
    fn from(text: &str) -> Self {
        match text {
            "-" => Self::Stdout,
            path => Self::File(path.into()),
        }
    }
}

/// An audit log that cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("failed to open the audit log {}; hint: name a file in a folder that this process may write to, or - for stdout", path.display())]
pub struct AuditError {
    path: PathBuf,
    #[source]
    source: io::Error,
}

/// Takes lines. Clones write to the same log.
#[derive(Clone, Debug, Default)]
pub struct AuditLog {
    lines: Option<mpsc::Sender<String>>,
    /// Nothing can be written now.
    fails: Arc<AtomicBool>,
    lost: Lost,
}

/// A line's place among those that wait.
#[cfg(feature = "agent")]
#[derive(Debug)]
pub struct Reserved(Option<mpsc::OwnedPermit<String>>);

#[cfg(feature = "agent")]
impl Reserved {
    pub fn write(self, line: &impl Serialize) {
        if let (Some(place), Ok(text)) = (self.0, serde_json::to_string(line)) {
            place.send(text);
        }
    }
}

/// How much of the lines that wait a line may be one of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// All: somebody was served.
    Whole,
    /// Half: nobody was. Who is refused may ask without end, and must not crowd out the lines of those who were served.
    Half,
}

/// Lines that were never written. Clones count the same, and keep no log open.
#[derive(Clone, Debug, Default)]
pub struct Lost(Arc<LostLines>);

#[derive(Debug, Default)]
struct LostLines {
    lines: AtomicU64,
    /// How many of them the log of this process tells of.
    told: AtomicU64,
}

impl Lost {
    /// How many since the process began.
    pub fn count(&self) -> u64 {
        self.0.lines.load(Ordering::Relaxed)
    }

    fn add(&self) {
        self.0.lines.fetch_add(1, Ordering::Relaxed);
    }
}

impl AuditLog {
    /// Begins to write there; `None` is nowhere.
    pub fn open(to: Option<&AuditTo>) -> Result<Self, AuditError> {
        let out: Box<dyn Write + Send> = match to {
            None => return Ok(Self::default()),
            Some(AuditTo::Stdout) => Box::new(io::stdout()),
            Some(AuditTo::File(path)) => Box::new(appended(path)?),
        };
        Ok(Self::into(out, AUDIT_RETRY))
    }

    fn into(out: Box<dyn Write + Send>, retry: Duration) -> Self {
        let (lines, waiting) = mpsc::channel(AUDIT_LINES_MAX);
        let fails = Arc::<AtomicBool>::default();
        let told = Arc::clone(&fails);
        // Ends with the last of those who write.
        tokio::task::spawn_blocking(move || write(out, waiting, &told, retry));
        Self {
            lines: Some(lines),
            fails,
            lost: Lost::default(),
        }
    }

    /// A log that its test reads, with so many places.
    #[cfg(test)]
    pub(crate) fn read(places: usize) -> (Self, mpsc::Receiver<String>) {
        let (lines, waiting) = mpsc::channel(places);
        let log = Self {
            lines: Some(lines),
            ..Self::default()
        };
        (log, waiting)
    }

    /// The same, of which nothing can be written.
    #[cfg(test)]
    pub(crate) fn failing(places: usize) -> (Self, mpsc::Receiver<String>) {
        let (log, waiting) = Self::read(places);
        log.fails.store(true, Ordering::Relaxed);
        (log, waiting)
    }

    /// Whether all lines are lost on purpose.
    pub fn is_nowhere(&self) -> bool {
        self.lines.is_none()
    }

    /// Whether nothing can be written now, as on a full disk. Whoever asks meanwhile would be seen by nobody.
    pub fn fails(&self) -> bool {
        self.fails.load(Ordering::Relaxed)
    }

    /// Waits until there is room for a line.
    pub async fn room(&self) {
        if let Some(lines) = &self.lines {
            let _place = lines.reserve().await;
        }
    }

    /// A place for a line that is yet to come, once there is one; of a log that goes nowhere as many as are asked for. `None` where
    /// nothing can be written now, or nothing was for a while: whoever is served without it may be seen by nobody.
    #[cfg(feature = "agent")]
    pub async fn reserve(&self) -> Option<Reserved> {
        let Some(lines) = self.lines.clone() else {
            return Some(Reserved(None));
        };
        if self.fails() {
            return None;
        }
        let place = timeout_at(Instant::now() + AUDIT_ROOM_TIMEOUT, lines.reserve_owned()).await;
        Some(Reserved(Some(place.ok()?.ok()?)))
    }

    /// Lines that are lost, for whoever counts them.
    pub fn lost(&self) -> Lost {
        self.lost.clone()
    }

    /// Says how many lines were lost since it was said last.
    pub fn tell_lost(&self) {
        let lost = self.lost.count();
        let lines = lost.saturating_sub(self.lost.0.told.fetch_max(lost, Ordering::Relaxed));
        if lines > 0 {
            tracing::error!(
                lines,
                "Audit lines are lost: they cannot be written as fast as they come."
            );
        }
    }

    /// Writes a line at once. Where its share of those that wait is taken, it is lost.
    pub fn write_soon(&self, line: &impl Serialize, share: Share) {
        let (Some(lines), Ok(text)) = (&self.lines, serde_json::to_string(line)) else {
            return;
        };
        let spare = match share {
            Share::Whole => 0,
            Share::Half => lines.max_capacity() / 2,
        };
        if lines.capacity() <= spare || lines.try_send(text).is_err() {
            self.lost.add();
        }
    }

    /// Writes a line, and waits a while where the disk is behind; not at all while nothing can be written.
    pub async fn write(&self, line: &impl Serialize) {
        self.write_until(line, Instant::now() + AUDIT_ROOM_TIMEOUT).await;
    }

    /// As [`Self::write`], until then. Whoever waits is held by no other limit: on a disk that hangs there would be ever
    /// more of them.
    pub async fn write_until(&self, line: &impl Serialize, deadline: Instant) {
        let Some(lines) = self.lines.as_ref().filter(|_| !self.fails()) else {
            return self.write_soon(line, Share::Whole);
        };
        let Ok(text) = serde_json::to_string(line) else { return };
        match timeout_at(deadline, lines.reserve()).await {
            Ok(Ok(place)) => place.send(text),
            // The writer ends after all who write.
            Ok(Err(_)) | Err(_) => self.lost.add(),
        }
    }
}

fn appended(path: &Path) -> Result<std::fs::File, AuditError> {
    let opened = std::fs::File::options()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(path);
    opened.map_err(|source| AuditError {
        path: path.to_owned(),
        source,
    })
}

fn write(mut out: Box<dyn Write + Send>, mut lines: mpsc::Receiver<String>, fails: &AtomicBool, retry: Duration) {
    while let Some(mut line) = lines.blocking_recv() {
        line.push('\n');
        let mut rest = line.as_bytes();
        while let Err(error) = write_on(&mut *out, &mut rest) {
            if !fails.swap(true, Ordering::Relaxed) {
                tracing::error!(%error, "Could not write the audit log; nobody is served what it should tell of.");
            }
            if lines.is_closed() {
                let lost = lines.len() + 1;
                tracing::error!(
                    lines = lost,
                    "Audit lines are lost: they could not be written until the end."
                );
                return;
            }
            // A blocking thread of its own, which nobody wakes.
            std::thread::park_timeout(retry);
        }
        if fails.swap(false, Ordering::Relaxed) {
            tracing::info!("Writes the audit log again.");
        }
    }
}

/// Writes what is left of a line, so that one which was written in part is whole in the end.
fn write_on(out: &mut dyn Write, rest: &mut &[u8]) -> io::Result<()> {
    while !rest.is_empty() {
        match out.write(rest) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => *rest = rest.get(written..).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn each_line_stands_at_the_end_of_a_file_for_its_owner() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("audit.log");
        for word in ["one", "two"] {
            let log = AuditLog::open(Some(&AuditTo::File(path.clone()))).expect("it is writable");
            log.write(&serde_json::json!({ "word": word })).await;
            let lines = log.lines.clone().expect("it goes somewhere");
            drop(log);
            // The writer has taken it once the queue is whole again.
            let _all = lines.reserve_many(AUDIT_LINES_MAX).await.expect("it writes");
        }
        let mode = std::fs::metadata(&path).expect("it is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let text = tokio::task::spawn_blocking(move || {
            loop {
                let text = std::fs::read_to_string(&path).expect("it is readable");
                if text.lines().count() == 2 {
                    return text;
                }
                std::thread::yield_now();
            }
        });
        assert_eq!(
            text.await.expect("it is read"),
            "{\"word\":\"one\"}\n{\"word\":\"two\"}\n"
        );
    }

    #[test]
    fn a_log_that_cannot_be_written_says_so_at_once() {
        let to = AuditTo::from("/nowhere/at/all");
        assert!(AuditLog::open(Some(&to)).is_err());
    }

    /// A disk on which there is room for some bytes, and later for more.
    #[derive(Clone, Default)]
    struct Disk(Arc<std::sync::Mutex<(Vec<u8>, usize)>>);

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let (written, room) = &mut *self.0.lock().expect("nobody panicked");
            let fits = bytes.len().min(*room - written.len());
            written.extend_from_slice(&bytes[..fits]);
            match fits {
                0 => Err(io::ErrorKind::StorageFull.into()),
                fits => Ok(fits),
            }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    async fn until(mut so: impl FnMut() -> bool) {
        let waiting = async {
            while !so() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), waiting)
            .await
            .expect("it comes");
    }

    #[tokio::test]
    async fn a_full_disk_is_told_and_no_line_is_lost_or_torn_by_it() {
        let disk = Disk::default();
        disk.0.lock().expect("nobody panicked").1 = 5;
        let log = AuditLog::into(Box::new(disk.clone()), Duration::from_millis(1));
        assert!(!log.fails());
        for word in ["one", "two"] {
            log.write(&word).await;
        }
        until(|| log.fails()).await;
        disk.0.lock().expect("nobody panicked").1 = 1_000;
        until(|| !log.fails()).await;
        until(|| disk.0.lock().expect("nobody panicked").0 == b"\"one\"\n\"two\"\n").await;
    }

    #[tokio::test]
    async fn nobody_waits_for_a_full_disk_and_what_is_lost_is_counted() {
        let log = AuditLog::into(Box::new(Disk::default()), Duration::from_millis(1));
        log.write(&"one").await;
        until(|| log.fails()).await;
        let writing = async {
            for number in 0..AUDIT_LINES_MAX + 7 {
                log.write(&number).await;
            }
        };
        let written = tokio::time::timeout(Duration::from_secs(20), writing).await;
        assert!(written.is_ok(), "nobody waits");
        assert_eq!(log.lost().count(), 7);
    }

    #[tokio::test(start_paused = true)]
    async fn a_disk_that_hangs_is_waited_for_no_longer_than_a_request_is() {
        let (log, mut waiting) = AuditLog::read(1);
        log.write(&"one").await;
        let begun = Instant::now();
        log.write(&"two").await;
        assert_eq!((begun.elapsed(), log.lost().count()), (AUDIT_ROOM_TIMEOUT, 1));
        assert_eq!(waiting.recv().await.as_deref(), Some("\"one\""));
        log.write(&"three").await;
        assert_eq!(waiting.recv().await.as_deref(), Some("\"three\""));
    }

    #[test]
    fn what_nobody_was_served_takes_half_of_the_room() {
        let (log, mut waiting) = AuditLog::read(4);
        for share in [Share::Half, Share::Half, Share::Half, Share::Whole, Share::Whole] {
            log.write_soon(&format!("{share:?}"), share);
        }
        let mut lines = Vec::new();
        while let Ok(line) = waiting.try_recv() {
            lines.push(line.trim_matches('"').to_owned());
        }
        assert_eq!(lines, ["Half", "Half", "Whole", "Whole"]);
        assert_eq!(log.lost().count(), 1);
    }

    #[tokio::test]
    async fn a_device_without_room_is_told() {
        let log = AuditLog::open(Some(&AuditTo::from("/dev/full"))).expect("it can be opened");
        log.write(&"one").await;
        until(|| log.fails()).await;
    }
}
