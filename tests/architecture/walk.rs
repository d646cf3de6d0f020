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
    ("reconciler/src/apply", &["reconciler::apply", "reconciler::agent"]),
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
    let mut broken = Vec::new();
    for (index, (file, (room, _))) in files.iter().zip(ROOMS).enumerate() {
        if ![format!("{room}.rs"), format!("{room}/mod.rs")].contains(file) {
            broken.push(format!("room {} is {room}, not {file}", index + 1));
        }
        let first = first_line(file);
        let Some((next, words)) = ROOMS.get(index + 1) else {
            continue;
        };
        if !first.starts_with("//! ") || !words.iter().any(|word| first.contains(word)) {
            broken.push(format!(
                "{file}: the first line names the next room, {next}, and not: {first}"
            ));
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

fn first_line(file: &str) -> String {
    let text = sources::read_text(file).unwrap_or_default();
    text.lines().next().unwrap_or("there is no such file").to_owned()
}
