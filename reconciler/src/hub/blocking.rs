//! The hub's one boundary to work that blocks: gix, files, digests.

/// Does blocking work elsewhere. A panic in it goes on here.
pub(in crate::hub) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(join) => std::panic::resume_unwind(join.into_panic()),
    }
}
