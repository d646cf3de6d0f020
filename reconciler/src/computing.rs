//! Work that blocks or computes for longer than a moment, kept from the threads that wait for sockets: half of the processors.

/// Does such work elsewhere. A panic in it goes on here; whoever gives up leaves it to end by itself.
pub(crate) async fn computing<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(join) => match join.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime ends, and whoever waits here with it.
            Err(_) => std::future::pending().await,
        },
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::mpsc;

    /// Whether work waits for another thread before it is ready, where none is free; what it needs is made while one is.
    pub(crate) fn is_elsewhere<M, W: Future>(made: impl Future<Output = M>, work: impl FnOnce(M) -> W) -> bool {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let runtime = builder.enable_all().max_blocking_threads(1).build();
        runtime.expect("a runtime begins").block_on(async {
            let mut work = std::pin::pin!(work(made.await));
            let (go, gone) = mpsc::sync_channel::<()>(1);
            let taken = tokio::task::spawn_blocking(move || gone.recv());
            let is_waiting = futures_util::poll!(&mut work).is_pending();
            drop(go);
            drop(taken.await);
            if is_waiting {
                work.await;
            }
            is_waiting
        })
    }

    #[tokio::test]
    async fn a_panic_of_the_work_goes_on_where_it_is_waited_for() {
        let waiting = tokio::spawn(super::computing(|| assert!(std::hint::black_box(false), "of the work")));
        let ended = waiting.await.expect_err("nobody went on as if it were done");
        assert!(ended.is_panic());
    }
}
