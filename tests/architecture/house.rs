//! The visible top level, and no forgotten file in a test binary.

use std::path::Path;

use super::sources;

const ROOMS: [&str; 7] = [
    "reconciler",
    "render",
    "tunnel",
    "pedia",
    "edge",
    "fleet-repo-template",
    "tests",
];
const PAPERS: [&str; 6] = [
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "SECURITY.md",
    "LICENSE",
];
const SETTINGS: [&str; 6] = [
    "Cargo.toml",
    "Cargo.lock",
    "clippy.toml",
    "rustfmt.toml",
    "rust-toolchain.toml",
    "docs",
];

#[test]
fn the_top_level_holds_the_rooms_papers_and_settings_alone() {
    for path in sources::files() {
        let top = path.split('/').next().unwrap_or_default();
        let allowed = [&ROOMS[..], &PAPERS, &SETTINGS].concat();
        assert!(
            top.starts_with('.') || allowed.contains(&top),
            "{top} has no place at the top level"
        );
    }
}

/// The folders whose Rust files are compiled into a test binary, with the file that is its door.
fn test_doors() -> Vec<String> {
    let doors = sources::files_named("tests/main.rs");
    assert!(
        doors.iter().any(|door| door == "tests/main.rs"),
        "the house itself is one of them"
    );
    doors
}

#[test]
fn no_test_file_is_forgotten() {
    for door in test_doors() {
        let folder = door.strip_suffix("main.rs").expect("every door is a main.rs");
        let files = sources::files_named(".rs")
            .into_iter()
            .filter(|path| path.starts_with(folder) && *path != door);
        for path in files {
            // The library, its binaries and the simulated fleet are crates of their own.
            if ["src/", "harness/", "parts/"]
                .iter()
                .any(|other| path.starts_with(&format!("{folder}{other}")))
            {
                continue;
            }
            let (parent, name) = declared_in(Path::new(&path));
            let text = sources::read(&parent);
            let is_declared = text.lines().any(|line| {
                line.trim().trim_start_matches("pub ").trim_start_matches("pub(crate) ") == format!("mod {name};")
            });
            assert!(is_declared, "{path} is not compiled: {parent} must say `mod {name};`");
        }
    }
}

/// The file that has to declare the module at `path`, and the module's name.
fn declared_in(path: &Path) -> (String, String) {
    let text = |path: &Path| path.display().to_string();
    let module = if path.ends_with("mod.rs") {
        path.parent().expect("mod.rs is in a folder").to_owned()
    } else {
        path.with_extension("")
    };
    let folder = module.parent().expect("a module is in a folder");
    let name = module
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    let candidates = [
        folder.join("mod.rs"),
        folder.with_extension("rs"),
        folder.join("main.rs"),
    ];
    let parent = candidates
        .iter()
        .find(|candidate| sources::root().join(candidate).is_file());
    (text(parent.unwrap_or(&candidates[0])), name)
}
