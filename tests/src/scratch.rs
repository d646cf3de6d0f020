//! Folders for data and logs, below one folder per test process, which goes when the process does.
//!
//! `FLOTILLA_KEEP=1` leaves it in place and prints where it is.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::watchdog;

/// A new empty folder whose name begins with `name`.
pub fn folder(name: &str) -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let path = root().join(format!("{name}-{number}"));
    fs::create_dir_all(&path).expect("the scratch folder is writable");
    path
}

fn root() -> &'static Path {
    static ROOT: OnceLock<PathBuf> = OnceLock::new();
    ROOT.get_or_init(|| {
        let root = tempfile::Builder::new()
            .prefix("flotilla-tests-")
            .tempdir()
            .expect("the system's folder for temporary files is writable")
            .keep();
        if std::env::var_os("FLOTILLA_KEEP").is_some() {
            eprintln!("keeping {}", root.display());
        } else {
            watchdog::remove_at_end(&root);
        }
        root
    })
}
