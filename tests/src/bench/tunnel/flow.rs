//! Bytes moved from one place to another, and what that took.
//!
//! Whoever wants bytes writes how many, as eight bytes; the other end sends that many and then the end. So
//! one protocol serves raw TLS, streams of the tunnel and the whole path.

use std::time::{Duration, Instant};

use anyhow::ensure;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use super::place::Place;

/// What programs commonly read and write at once.
const BUFFER_BYTES: usize = 64 * 1024;

/// What moving took.
#[derive(Clone, Copy)]
pub(super) struct Flow {
    bytes: u64,
    time: Duration,
    cpu: Duration,
}

impl Flow {
    pub(super) fn bytes_per_second(self) -> f64 {
        self.bytes as f64 / self.time.as_secs_f64()
    }

    /// Processor time per byte at the places that were looked at.
    pub(super) fn cpu_per_byte(self) -> f64 {
        self.cpu.as_secs_f64() / self.bytes as f64
    }
}

/// Asks for `bytes` on every one of `open` at once and reads them at `reader`. Time runs from the first
/// request to the last end.
pub(super) fn measure<S>(places: &[&Place], reader: &Place, open: Vec<S>, bytes: u64) -> anyhow::Result<Flow>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let cpu = || places.iter().map(|place| place.cpu()).sum::<anyhow::Result<Duration>>();
    let (cpu_before, total) = (cpu()?, bytes * open.len() as u64);
    let started = Instant::now();
    reader.run(async move {
        let readers: Vec<_> = open.into_iter().map(|end| tokio::spawn(receive(end, bytes))).collect();
        for reader in readers {
            reader.await??;
        }
        Ok(())
    })?;
    Ok(Flow {
        bytes: total,
        time: started.elapsed(),
        cpu: cpu()? - cpu_before,
    })
}

/// Asks for bytes and reads them to the end.
pub(super) async fn receive<S: AsyncRead + AsyncWrite + Unpin>(mut end: S, bytes: u64) -> anyhow::Result<()> {
    end.write_all(&bytes.to_be_bytes()).await?;
    end.flush().await?;
    let (mut buffer, mut received) = (vec![0; BUFFER_BYTES], 0_u64);
    while received < bytes {
        let read = end.read(&mut buffer).await?;
        ensure!(read > 0, "{received} of {bytes} bytes came");
        received += read as u64;
    }
    Ok(())
}

/// Sends what is asked for, then the end.
pub(super) async fn send<S: AsyncRead + AsyncWrite + Unpin>(mut end: S) -> anyhow::Result<()> {
    let mut left = end.read_u64().await?;
    let buffer = vec![0x5a; BUFFER_BYTES];
    while left > 0 {
        let bytes = left.min(BUFFER_BYTES as u64);
        end.write_all(&buffer[..bytes as usize]).await?;
        left -= bytes;
    }
    end.shutdown().await?;
    // The other end closes when it has everything.
    let _ = end.read(&mut [0]).await;
    Ok(())
}

/// Gives back every byte at once, until the end.
pub(super) async fn echo<S: AsyncRead + AsyncWrite + Unpin>(mut end: S) -> anyhow::Result<()> {
    let mut buffer = vec![0; 4 * 1024];
    loop {
        let read = end.read(&mut buffer).await?;
        if read == 0 {
            return Ok(());
        }
        end.write_all(&buffer[..read]).await?;
    }
}

/// The times of `count` small requests, one after the other.
pub(super) async fn ask<S: AsyncRead + AsyncWrite + Unpin>(end: &mut S, count: usize) -> anyhow::Result<Vec<Duration>> {
    const REQUEST: [u8; 64] = [7; 64];
    let (mut times, mut answer) = (Vec::with_capacity(count), REQUEST);
    for _ in 0..count {
        let started = Instant::now();
        end.write_all(&REQUEST).await?;
        end.flush().await?;
        end.read_exact(&mut answer).await?;
        times.push(started.elapsed());
    }
    Ok(times)
}
