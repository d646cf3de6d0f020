//! Manifests that a person names on the command line: files, folders and stdin, each with a limit.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use render::limits::FILE_BYTES_MAX;

/// Files that one command takes; a folder with more was hardly meant.
const FILES_MAX: usize = 10_000;

/// Name and bytes of every file, folders in the order of their names.
pub(super) fn read(paths: &[PathBuf]) -> anyhow::Result<Vec<(String, Vec<u8>)>> {
    let mut files = Vec::new();
    for path in paths {
        if path == Path::new("-") {
            files.push(("stdin".to_owned(), bounded(std::io::stdin().lock(), "stdin")?));
        } else {
            walk(path, true, &mut files)?;
        }
    }
    Ok(files)
}

fn walk(path: &Path, named: bool, files: &mut Vec<(String, Vec<u8>)>) -> anyhow::Result<()> {
    let name = path.display().to_string();
    // What is named is followed; below a folder a symlink may lead anywhere.
    let found = if named {
        fs::metadata(path)
    } else {
        fs::symlink_metadata(path)
    };
    let found = found.with_context(|| format!("failed to read {name}"))?;
    if found.is_dir() {
        let entries = fs::read_dir(path).with_context(|| format!("failed to read {name}"))?;
        let mut below = entries
            .map(|entry| Ok(entry?.path()))
            .collect::<std::io::Result<Vec<_>>>()?;
        below.sort();
        for path in below {
            walk(&path, false, files)?;
        }
    } else if named || (found.is_file() && is_manifest(path)) {
        if files.len() >= FILES_MAX {
            bail!("there are more than {FILES_MAX} files");
        }
        let file = File::open(path).with_context(|| format!("failed to read {name}"))?;
        files.push((name.clone(), bounded(file, &name)?));
    }
    Ok(())
}

fn is_manifest(path: &Path) -> bool {
    path.extension()
        .is_some_and(|ending| ["yaml", "yml", "json"].iter().any(|known| ending == *known))
}

fn bounded(from: impl Read, name: &str) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let limit = FILE_BYTES_MAX as u64 + 1;
    from.take(limit)
        .read_to_end(&mut bytes)
        .with_context(|| format!("failed to read {name}"))?;
    if bytes.len() > FILE_BYTES_MAX {
        bail!("{name} has more than {FILE_BYTES_MAX} bytes");
    }
    Ok(bytes)
}
