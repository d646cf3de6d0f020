//! A thread with a runtime of its own, standing for one process of the real thing.

use std::fs;
use std::future::Future;
use std::path::PathBuf;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Context as _;
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

/// Where work is done whose processor time is looked at apart from that of others.
pub(super) struct Place {
    handle: Handle,
    schedstat: PathBuf,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Place {
    pub(super) fn start(name: &str) -> anyhow::Result<Self> {
        let (stop, stopped) = oneshot::channel();
        let (started, handle) = mpsc::sync_channel(1);
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(move || {
            let runtime = Builder::new_current_thread().enable_all().build();
            let runtime = runtime.map(|runtime| {
                let this_thread = fs::read_link("/proc/thread-self");
                (runtime.handle().clone(), runtime, this_thread)
            });
            let (said, runtime) = match runtime {
                Ok((handle, runtime, Ok(thread))) => (Ok((handle, thread)), Some(runtime)),
                Ok((_, _, Err(error))) | Err(error) => (Err(error), None),
            };
            // Whoever started us waits for exactly this; if it is gone, so is our work.
            let _ = started.send(said);
            if let Some(runtime) = runtime {
                let _ = runtime.block_on(stopped);
            }
        })?;
        let (handle, this_thread) = handle.recv().context("a place ended at its start")??;
        Ok(Self {
            handle,
            schedstat: PathBuf::from("/proc").join(this_thread).join("schedstat"),
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// Does something here and waits for its end.
    pub(super) fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = anyhow::Result<T>> + Send + 'static,
    ) -> anyhow::Result<T> {
        self.begin(work)()
    }

    /// Begins something here; the function it gives waits for the end.
    pub(super) fn begin<T: Send + 'static>(
        &self,
        work: impl Future<Output = anyhow::Result<T>> + Send + 'static,
    ) -> impl FnOnce() -> anyhow::Result<T> {
        let (ended, end) = mpsc::sync_channel(1);
        self.handle.spawn(async move {
            let _ = ended.send(work.await);
        });
        move || end.recv().context("work ended without an outcome")?
    }

    /// Does something here that goes on until the place ends.
    pub(super) fn keep(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.handle.spawn(work);
    }

    /// Processor time used here so far.
    pub(super) fn cpu(&self) -> anyhow::Result<Duration> {
        let text = fs::read_to_string(&self.schedstat).context("this kernel accounts no time to threads")?;
        let nanos = text.split_whitespace().next().context("schedstat begins with a time")?;
        Ok(Duration::from_nanos(nanos.parse()?))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic was printed where it happened.
            let _ = thread.join();
        }
    }
}
