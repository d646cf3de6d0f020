//! `flotilla get capacity`: what room each cluster said it has.
//!
//! As JSON or YAML it is the whole answer, of which `--reports FILE` of other commands reads the JSON.

use std::collections::BTreeMap;
use std::process::ExitCode;

use render::capacity::{Capacity, Resources};
use render::model::FLEET_API_VERSION;
use render::schedule::{NOT_SAID, Report, Reports};
use serde_json::{Value, json};

use super::resource::Resource;
use super::{Asked, GetOptions, Output, not_found, path};
use crate::cli::client::{ClientError, JSON, rooms};
use crate::cli::{exit, output};
use crate::words::age;

/// What may be typed for it.
const WORDS: [&str; 4] = ["capacity", "capacities", "rooms", "room"];

/// The kind whose objects have it.
const CLUSTERS: &str = "managedclusters";

/// Bytes of a Gi, which is what memory is told in.
const GI: i64 = 1 << 30;

/// Whether capacity is asked for, and of which cluster.
pub(super) fn asked(options: &GetOptions) -> Option<Option<&str>> {
    let (kind, name) = match options.kind.split_once('/') {
        Some((kind, name)) => (kind, Some(name)),
        None => (options.kind.as_str(), options.name.as_deref()),
    };
    WORDS.contains(&kind.to_ascii_lowercase().as_str()).then_some(name)
}

/// Shows it for the clusters that were asked for.
pub(super) async fn show(
    options: &GetOptions,
    known: &[Resource],
    name: Option<&str>,
) -> Result<ExitCode, ClientError> {
    if options.watch {
        output::tell(
            "error: capacity cannot be watched\nhint: `flotilla get capacity` shows what clusters said last\n",
        );
        return Ok(exit::usage());
    }
    let Some(resource) = known.iter().find(|resource| resource.plural == CLUSTERS) else {
        return Ok(ExitCode::FAILURE);
    };
    let clusters = Asked {
        resources: Vec::new(),
        namespace: None,
        name,
    };
    let list = options.server.value(&path(options, &clusters, resource), JSON).await?;
    let items = list["items"].as_array().into_iter().flatten();
    let names: Vec<&str> = items.filter_map(|item| item["metadata"]["name"].as_str()).collect();
    if names.is_empty() {
        if let Some(name) = name {
            return not_found(options, resource, name).await;
        }
        output::tell("No capacity found.\n");
    }
    let answer = options.server.value(&rooms::path(), JSON).await?;
    let now = jiff::Timestamp::now().as_second();
    let answer = of_these(answer, &names, now);
    match options.output {
        Output::Json => output::print(&output::json(&answer)),
        Output::Yaml => output::print(&render::yaml::write(&answer)),
        Output::Name => output::print(
            &names
                .iter()
                .map(|name| format!("capacity/{}\n", output::visible(name)))
                .collect::<String>(),
        ),
        Output::Table | Output::Wide => {
            let reports = rooms::reports(answer).map_err(|error| ClientError::NotAHub {
                server: options.server.server().clone(),
                why: error.to_string(),
            })?;
            output::print(&table(&reports, &names, options.output == Output::Wide, now))
        }
    };
    Ok(ExitCode::SUCCESS)
}

/// The answer with these clusters alone, what it is, and when it was given.
fn of_these(mut answer: Value, names: &[&str], now: i64) -> Value {
    for field in ["clusters", "unknown", "presence", "predicted"] {
        if let Some(clusters) = answer.get_mut(field).and_then(Value::as_object_mut) {
            clusters.retain(|name, _| names.contains(&name.as_str()));
        }
    }
    if let Some(fields) = answer.as_object_mut() {
        fields.insert("apiVersion".to_owned(), json!(FLEET_API_VERSION));
        fields.insert("kind".to_owned(), json!("Capacity"));
        fields.insert("at".to_owned(), json!(now));
    }
    answer
}

const HEADER: [&str; 9] = [
    "NAME",
    "NODES",
    "CPU(FREE/ALL)",
    "MEMORY(FREE/ALL)",
    "PODS(FREE/ALL)",
    "EXTENDED(FREE/ALL)",
    "UNSCHEDULABLE",
    "AGE",
    "KNOWN",
];

const WIDE: [&str; 3] = ["PROMISED", "SEQUENCE", "DOUBT"];

/// A row for each cluster; one that never said anything has no numbers.
fn table(reports: &Reports, names: &[&str], wide: bool, now: i64) -> String {
    if names.is_empty() {
        return String::new();
    }
    let said: BTreeMap<&str, &Report> = reports
        .clusters
        .iter()
        .map(|(name, report)| (name.as_str(), report))
        .collect();
    let why: BTreeMap<&str, &str> = reports
        .unknown
        .iter()
        .map(|(name, why)| (name.as_str(), why.as_str()))
        .collect();
    let row = |name: &&str| {
        let mut cells = match said.get(name) {
            Some(report) => row(name, report, now),
            None => unknown(name, why.get(name).copied()),
        };
        cells.truncate(if wide { cells.len() } else { HEADER.len() });
        cells
    };
    let header = HEADER.iter().chain(WIDE.iter().filter(|_| wide));
    let header: Vec<String> = header.map(|&column| column.to_owned()).collect();
    let rows: Vec<_> = std::iter::once(header).chain(names.iter().map(row)).collect();
    output::columns(&rows)
}

fn unknown(name: &str, why: Option<&str>) -> Vec<String> {
    let mut cells = vec!["-".to_owned(); HEADER.len() + WIDE.len()];
    cells[0] = output::visible(name);
    cells[HEADER.len() - 1] = "False".to_owned();
    cells[HEADER.len() + WIDE.len() - 1] = output::visible(why.unwrap_or(NOT_SAID));
    cells
}

fn row(name: &str, report: &Report, now: i64) -> Vec<String> {
    let capacity: &Capacity = &report.capacity;
    let (free, all) = (capacity.nodes.free(), capacity.nodes.allocatable());
    let of = |resource: &str| {
        format!(
            "{}/{}",
            short(resource, free.of(resource)),
            short(resource, all.of(resource))
        )
    };
    let extended: Vec<_> = all
        .iter()
        .filter(|(resource, amount)| resource.contains('/') && *amount > 0)
        .map(|(resource, amount)| format!("{} {}/{amount}", output::visible(resource), free.of(resource)))
        .collect();
    let unschedulable: u64 = capacity.workloads.iter().map(|workload| workload.unschedulable).sum();
    vec![
        output::visible(name),
        capacity.nodes.count().to_string(),
        of("cpu"),
        of("memory"),
        of("pods"),
        or_dash(extended.join(",")),
        unschedulable.to_string(),
        age(Some(report.at), now),
        if report.doubt.is_none() { "True" } else { "False" }.to_owned(),
        or_dash(promised(&capacity.promised)),
        capacity
            .sequence
            .map_or_else(|| "-".to_owned(), |sequence| sequence.to_string()),
        or_dash(report.doubt.as_deref().map(output::visible).unwrap_or_default()),
    ]
}

/// What is put aside for pods that are not there yet: free and this are what is free gross.
fn promised(promised: &Resources) -> String {
    let parts = promised.iter().filter(|(_, amount)| *amount != 0);
    let parts: Vec<_> = parts
        .map(|(resource, amount)| format!("{} {}", output::visible(resource), short(resource, amount)))
        .collect();
    parts.join(",")
}

fn or_dash(text: String) -> String {
    if text.is_empty() { "-".to_owned() } else { text }
}

/// An amount for a table, rounded down to a tenth: cores, Gi, or a number.
fn short(resource: &str, amount: i64) -> String {
    let tenths = |unit: i64| {
        let tenths = (i128::from(amount) * 10).div_euclid(i128::from(unit));
        match tenths % 10 {
            0 => (tenths / 10).to_string(),
            _ => format!("{}.{}", tenths.div_euclid(10), tenths.rem_euclid(10)),
        }
    };
    match resource {
        "cpu" => tenths(1_000),
        "memory" | "ephemeral-storage" => format!("{}Gi", tenths(GI)),
        _ => amount.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer() -> Value {
        let node = json!({ "count": 3,
            "allocatable": { "cpu": 32_000, "memory": 64 * GI, "pods": 110, "nvidia.com/gpu": 4 },
            "free": { "cpu": 7_550, "memory": 3 * GI / 2, "pods": 100, "nvidia.com/gpu": 1 } });
        let workload = json!({ "unit": "shop/web", "object": "apps/Deployment/shop/web", "replicas": 9, "requests": {},
            "scheduled": 7, "unschedulable": 2 });
        let capacity = json!({ "version": 1, "sequence": 12, "nodes": [node], "promised": { "cpu": 1_500 },
            "workloads": [workload] });
        json!({ "clusters": {
            "a": { "capacity": capacity, "at": 1_000 },
            "b": { "capacity": { "version": 1, "nodes": [] }, "at": 900, "doubt": "it is not heard of" },
            "z": { "capacity": { "version": 1, "nodes": [] }, "at": 900 },
        }, "unknown": {
            "d": "what it says of its room cannot be:\u{1b} capacity of version 99 cannot be read",
            "y": "no nodes",
        } })
    }

    #[test]
    fn every_cluster_has_a_row_and_what_nobody_said_is_no_number() {
        let names = ["a", "b", "c", "d"];
        let reports = rooms::reports(of_these(answer(), &names, 1_042)).expect("it is an answer");
        let text = table(&reports, &names, true, 1_042);
        let words: Vec<Vec<&str>> = text
            .lines()
            .map(|line| {
                line.split("   ")
                    .map(str::trim)
                    .filter(|cell| !cell.is_empty())
                    .collect()
            })
            .collect();
        let expected = [
            [HEADER.as_slice(), WIDE.as_slice()].concat(),
            vec![
                "a",
                "3",
                "22.6/96",
                "4.5Gi/192Gi",
                "300/330",
                "nvidia.com/gpu 3/12",
                "2",
                "42s",
                "True",
                "cpu 1.5",
                "12",
                "-",
            ],
            vec![
                "b",
                "0",
                "0/0",
                "0Gi/0Gi",
                "0/0",
                "-",
                "0",
                "2m22s",
                "False",
                "-",
                "-",
                "it is not heard of",
            ],
            vec![
                "c",
                "-",
                "-",
                "-",
                "-",
                "-",
                "-",
                "-",
                "False",
                "-",
                "-",
                "it has not said what room it has",
            ],
            [
                ["d"].as_slice(),
                &["-"; 7],
                &[
                    "False",
                    "-",
                    "-",
                    "what it says of its room cannot be:\\u{1b} capacity of version 99 cannot be read",
                ],
            ]
            .concat(),
        ];
        assert_eq!(words, expected, "{text}");
        let narrow = table(&reports, &names, false, 1_042);
        assert!(narrow.starts_with("NAME") && !narrow.contains("DOUBT"), "{narrow}");
    }

    #[test]
    fn what_is_recorded_reads_as_what_was_told() {
        let recorded = of_these(answer(), &["a", "b", "d", "y", "z"], 1_042);
        assert_eq!(recorded["kind"], "Capacity");
        assert_eq!(
            rooms::reports(recorded).expect("it is a record"),
            rooms::reports(answer()).expect("it is an answer")
        );
        let some = of_these(answer(), &["b"], 1_042);
        let some = rooms::reports(some).expect("it is a record");
        assert_eq!(
            (some.clusters.len(), some.unknown.len()),
            (1, 0),
            "others were not asked for"
        );
    }
}
