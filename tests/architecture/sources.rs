//! The files of the repository, and which part of a Rust source is test code.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use flotilla_tests::Output;

/// The folder of the workspace.
pub(super) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("tests/ lies in the workspace")
}

/// Every file that Git has or would take, by its path from the root, in order.
pub(super) fn files() -> Vec<String> {
    let mut command = Command::new("git");
    // A clone may belong to another user than the one who tests it.
    command
        .current_dir(root())
        .args(["-c", "safe.directory=*", "ls-files", "-z"]);
    let listed = Output::of(command.args(["--cached", "--others", "--exclude-standard"])).expect_ok();
    let mut files: Vec<_> = listed
        .split('\0')
        .filter(|path| !path.is_empty())
        .map(str::to_owned)
        .collect();
    // A file that is deleted and not committed is still listed.
    files.retain(|path| root().join(path).is_file());
    files.sort();
    files.dedup();
    files
}

/// The files with this ending.
pub(crate) fn files_named(ending: &str) -> Vec<String> {
    files().into_iter().filter(|path| path.ends_with(ending)).collect()
}

/// The text of a file.
pub(crate) fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path} is not readable: {error}"))
}

/// The text of a file, unless it is not text.
pub(super) fn read_text(path: &str) -> Option<String> {
    fs::read(root().join(path))
        .ok()
        .and_then(|bytes| String::from_utf8(bytes).ok())
}

/// What a crate ships: its sources (path, text) without test modules.
pub(super) fn shipped(folder: &str) -> Vec<(String, String)> {
    let prefix = format!("{folder}/src/");
    let paths: Vec<_> = files_named(".rs")
        .into_iter()
        .filter(|path| path.starts_with(&prefix))
        .collect();
    let texts: Vec<_> = paths.into_iter().map(|path| (read(&path), path)).collect();
    let test_only: BTreeSet<_> = texts.iter().flat_map(|(text, path)| test_modules(path, text)).collect();
    let is_test = |path: &str| test_only.iter().any(|module| Path::new(path).starts_with(module));
    let shipped = texts
        .into_iter()
        .filter(|(_, path)| !is_test(&Path::new(path).with_extension("").display().to_string()));
    shipped
        .map(|(text, path)| (path, without_tests(&text).to_owned()))
        .collect()
}

/// The paths, without `.rs`, of the modules that `path` declares for tests only.
fn test_modules(path: &str, text: &str) -> Vec<PathBuf> {
    let path = Path::new(path);
    let folder = match path.file_name().and_then(|name| name.to_str()) {
        Some("mod.rs" | "lib.rs" | "main.rs") => path.parent().expect("a file is in a folder").to_owned(),
        _ => path.with_extension(""),
    };
    let declared = after_test_markers(text).filter_map(|rest| declared_module(rest));
    declared.map(|name| folder.join(name)).collect()
}

/// The text up to its in-file test module, which stands last.
fn without_tests(text: &str) -> &str {
    let module = after_test_markers(text).find(|rest| is_inline_module(rest));
    module.map_or(text, |rest| &text[..text.len() - rest.len()])
}

/// What fuzzers call is in no build that ships, either.
fn after_test_markers(text: &str) -> impl Iterator<Item = &str> {
    ["#[cfg(test)]", "#[cfg(any(test, fuzzing))]"]
        .into_iter()
        .flat_map(|marker| text.match_indices(marker))
        .map(|(at, marker)| &text[at + marker.len()..])
}

/// The line after the attributes that may follow a marker.
fn item_line(rest: &str) -> &str {
    let is_item = |line: &&str| !(line.is_empty() || line.starts_with("#[") || line.starts_with("//"));
    rest.lines().map(str::trim).find(is_item).unwrap_or_default()
}

fn declared_module(rest: &str) -> Option<&str> {
    let (_, name) = item_line(rest).split_once("mod ")?;
    name.strip_suffix(';')
}

fn is_inline_module(rest: &str) -> bool {
    let line = item_line(rest);
    line.contains("mod ") && line.ends_with('{')
}

#[test]
fn test_code_is_told_from_what_ships() {
    let text = "fn a() {}\n#[cfg(any(test, fuzzing))]\nmod fixture;\n\n#[cfg(test)]\n#[expect(x)]\nmod tests {\n fn b() {}\n}\n";
    assert_eq!(
        without_tests(text),
        "fn a() {}\n#[cfg(any(test, fuzzing))]\nmod fixture;\n\n#[cfg(test)]"
    );
    assert_eq!(
        test_modules("x/src/room.rs", text),
        [PathBuf::from("x/src/room/fixture")]
    );
    assert_eq!(test_modules("x/src/lib.rs", text), [PathBuf::from("x/src/fixture")]);
}
