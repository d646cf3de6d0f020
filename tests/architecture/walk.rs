//! The walk of eight rooms: ARCHITECTURE.md lists them, and each one's first line names the next.

use super::sources;

/// The rooms from push to applied, by the words that a first line may call them.
const ROOMS: [(&str, &[&str]); 8] = [
    ("reconciler/src/hub/source", &["source"]),
    ("render/src/load", &["load"]),
    ("render/src/schedule", &["schedule"]),
    ("render/src/localize", &["localize"]),
    ("reconciler/src/hub/publish", &["publish"]),
    ("render/src/release", &["release"]),
    ("tunnel/src/lib", &["tunnel"]),
    ("reconciler/src/apply", &["apply", "agent"]),
];

/// The files of the table under the heading of the walk, in order.
fn listed() -> Vec<String> {
    let text = sources::read("ARCHITECTURE.md");
    let (_, walk) = text.split_once("## The walk").expect("ARCHITECTURE.md has the walk");
    let walk = walk.split("\n## ").next().unwrap_or_default();
    let rows = walk
        .lines()
        .filter(|line| line.starts_with("| ") && line.contains(".rs"));
    rows.map(|row| {
        row.split('`')
            .find(|word| word.ends_with(".rs"))
            .unwrap_or_default()
            .to_owned()
    })
    .collect()
}

#[test]
fn one_push_can_be_followed_through_eight_files() {
    let files = listed();
    assert_eq!(files.len(), ROOMS.len(), "the walk has eight rooms: {files:?}");
    for (index, (file, (room, _))) in files.iter().zip(ROOMS).enumerate() {
        assert!(
            [format!("{room}.rs"), format!("{room}/mod.rs")].contains(file),
            "room {} is {room}, not {file}",
            index + 1
        );
        let text = sources::read(file);
        let first = text.lines().next().unwrap_or_default();
        let Some((next, words)) = ROOMS.get(index + 1) else {
            continue;
        };
        let says = words.iter().any(|word| first.contains(word));
        assert!(
            first.starts_with("//! ") && says,
            "{file}: the first line names the next room, {next}: {first}"
        );
    }
}
