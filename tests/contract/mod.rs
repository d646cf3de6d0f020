//! What the in-memory API server does, held against a real one.
//!
//! In: scripts of requests. Out: `answers.txt`, what a real API server answers to each, as far as it counts.
//! Both servers are held to that file, so it is the subset that the in-memory one covers. `UPDATE_GOLDEN=1`
//! rewrites it from the real server. What only the in-memory server has (faults, 501, memory) is tested
//! beside it.

mod kubectl;
mod play;
mod scripts;
mod served;
mod tables;

use std::fs;
use std::path::PathBuf;

use flotilla_tests::{ControlPlane, Options};
use harness::ApiServer;
use reconciler::apply::ApiServer as Api;

use play::transcript;

fn golden() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("contract/answers.txt")
}

fn runtime() -> tokio::runtime::Runtime {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime starts")
}

/// The first lines that differ, with the script that they are of.
fn difference(found: &str) -> Option<String> {
    let golden = fs::read_to_string(golden()).expect("the answers of a real server are there");
    let mut script = "";
    let mut differences = Vec::new();
    let mut lines = golden.lines();
    for found in found.lines() {
        let expected = lines.next().unwrap_or("(nothing more)");
        if let Some(name) = expected.strip_prefix("# ") {
            script = name;
        }
        if expected != found {
            differences.push(format!("in {script}:\n  real: {expected}\n  here: {found}"));
        }
    }
    differences.extend(lines.map(|line| format!("missing: {line}")));
    (!differences.is_empty()).then(|| format!("{} differences\n{}", differences.len(), differences.join("\n")))
}

#[test]
fn the_real_server_answers_as_it_is_written() {
    let cluster = ControlPlane::start("contract", Options::default());
    let (found, tables) = runtime().block_on(async {
        let api = Api::from_kubeconfig(&cluster.kubeconfig(), None)
            .await
            .expect("the kubeconfig is good");
        (transcript(&api.client).await, tables::tables(&api.client).await)
    });
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    if update {
        fs::write(golden(), &found).expect("the answers can be written");
    }
    for (file, table) in tables::files().iter().zip(tables) {
        if update {
            fs::write(file, &table).expect("a table can be written");
        }
        let held = fs::read_to_string(file).expect("a table can be read");
        let differs = held.lines().zip(table.lines()).find(|(held, real)| held != real);
        assert!(
            held == table,
            "{} is not what the real server says: {differs:?}",
            file.display()
        );
    }
    if let Some(difference) = difference(&found) {
        panic!("{difference}");
    }
}

#[test]
fn the_in_memory_server_answers_as_the_real_one() {
    let found = runtime().block_on(async { transcript(&ApiServer::default().client()).await });
    if let Some(difference) = difference(&found) {
        panic!("{difference}");
    }
}
