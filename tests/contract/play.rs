//! Plays the scripts on a server, and writes down what it answers without what differs from run to run.

use std::collections::BTreeMap;
use std::time::Duration;

use http::{Request, header};
use http_body_util::BodyExt as _;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

use super::scripts::{Script, Step, scripts};

/// Headers and body of an answer.
struct Heard {
    code: u16,
    warning: String,
    body: Value,
}

/// Plays one script after the other.
pub(super) async fn transcript(client: &Client) -> String {
    let mut text = String::new();
    for script in scripts() {
        text.push_str(&format!("# {}\n", script.name));
        let mut player = Player {
            client,
            saved: BTreeMap::from([("ns".to_owned(), script.name.to_owned())]),
            versions: Vec::new(),
            uids: Vec::new(),
        };
        text.push_str(&player.play(&script).await);
    }
    text
}

struct Player<'a> {
    client: &'a Client,
    /// `$name` in paths and bodies.
    saved: BTreeMap<String, String>,
    versions: Vec<String>,
    uids: Vec<String>,
}

impl Player<'_> {
    async fn play(&mut self, script: &Script) -> String {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": script.name}});
        self.send(&Step::post("/api/v1/namespaces", namespace)).await;
        let mut text = String::new();
        for step in &script.steps {
            let shown = if step.watch {
                self.watch(step).await
            } else {
                self.step(step).await
            };
            text.push_str(&format!("{} {}\n  {shown}\n", step.method, step.path));
        }
        text
    }

    async fn step(&mut self, step: &Step) -> String {
        let mut heard = self.send(step).await;
        for _ in 0..200 {
            let satisfied = step.until.as_ref().is_none_or(|(pointer, wanted)| {
                let found = if *pointer == "code" {
                    json!(heard.code)
                } else {
                    heard.body.pointer(pointer).cloned().unwrap_or_default()
                };
                found == *wanted
            });
            if satisfied {
                break;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
            heard = self.send(step).await;
        }
        let same = self.saved.get("rv").cloned();
        self.uids.extend(uid(&heard.body));
        if !step.quiet {
            self.save(&heard.body);
        }
        self.shown(step, &heard, same)
    }

    fn save(&mut self, body: &Value) {
        let metadata = &body["metadata"];
        for (name, field) in [
            ("rv", "resourceVersion"),
            ("uid", "uid"),
            ("continue", "continue"),
            ("name", "name"),
        ] {
            if let Some(text) = metadata[field].as_str().filter(|text| !text.is_empty()) {
                self.saved.insert(name.to_owned(), text.to_owned());
                if name == "rv" {
                    self.versions.push(text.to_owned());
                }
            }
        }
    }

    fn filled(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (name, value) in &self.saved {
            text = text.replace(&format!("${name}"), value);
        }
        text
    }

    async fn send(&self, step: &Step) -> Heard {
        let response = self.client.send(self.request(step)).await.expect("the server answers");
        let code = response.status().as_u16();
        let warning = response
            .headers()
            .get(header::WARNING)
            .map(|value| format!("{value:?}"))
            .unwrap_or_default();
        let bytes = response
            .into_body()
            .collect()
            .await
            .expect("an answer can be read")
            .to_bytes();
        let body = serde_json::from_slice(&bytes).unwrap_or_else(|_| json!(String::from_utf8_lossy(&bytes)));
        Heard { code, warning, body }
    }

    fn request(&self, step: &Step) -> Request<Body> {
        let mut builder = Request::builder()
            .method(step.method)
            .uri(self.filled(&step.path))
            .header(header::USER_AGENT, "contract/1");
        if let Some(media) = step.content_type {
            builder = builder.header(header::CONTENT_TYPE, media);
        }
        if let Some(media) = step.accept {
            builder = builder.header(header::ACCEPT, media);
        }
        let body = step
            .body
            .as_ref()
            .map(|body| self.filled(&body.to_string()))
            .unwrap_or_default();
        builder
            .body(Body::from(body.into_bytes()))
            .expect("a script's request is valid")
    }

    fn shown(&self, step: &Step, heard: &Heard, version_before: Option<String>) -> String {
        let mut shown = vec![heard.code.to_string()];
        if !heard.warning.is_empty() {
            shown.push(format!("warning {}", heard.warning));
        }
        let body = self.scrubbed(&heard.body);
        if heard.body["kind"] == "Status" {
            for field in ["status", "reason", "message", "details"] {
                if !body[field].is_null() && !step.vague {
                    shown.push(format!("{field}={}", body[field]));
                }
            }
            if step.vague {
                shown.push(format!("reason={}", body["reason"]));
            }
        }
        for pointer in step.look {
            let found = match *pointer {
                "same-version" => {
                    json!(version_before.as_deref() == heard.body["metadata"]["resourceVersion"].as_str())
                }
                "names" => names(&body),
                "managers" => managers(&body),
                pointer => look(&body, pointer),
            };
            shown.push(format!("{pointer}={found}"));
        }
        shown.join(" ")
    }

    /// Without UIDs, versions and times.
    fn scrubbed(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => {
                let mut text = text.clone();
                for uid in &self.uids {
                    text = text.replace(uid.as_str(), "<uid>");
                }
                if self.versions.contains(&text) {
                    text = "<version>".to_owned();
                }
                Value::String(without_times(&text))
            }
            Value::Array(items) => items.iter().map(|item| self.scrubbed(item)).collect(),
            Value::Object(map) => {
                let kept = map.iter().filter(|(name, _)| *name != "time");
                Value::Object(kept.map(|(name, item)| (name.clone(), self.scrubbed(item))).collect())
            }
            other => other.clone(),
        }
    }

    async fn watch(&mut self, step: &Step) -> String {
        let response = self.client.send(self.request(step)).await.expect("the server answers");
        let code = response.status().as_u16();
        let mut body = response.into_body();
        let mut text = String::new();
        // Its own timeout ends it.
        while let Some(Ok(frame)) = body.frame().await {
            if let Some(data) = frame.data_ref() {
                text.push_str(&String::from_utf8_lossy(data));
            }
        }
        let events = text
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok())
            .map(|event| {
                let object = &event["object"];
                let what = match event["type"].as_str() {
                    Some("BOOKMARK") => object["metadata"]["annotations"].to_string(),
                    Some("ERROR") => object["reason"].to_string(),
                    _ => object["metadata"]["name"].as_str().unwrap_or_default().to_owned(),
                };
                format!("{} {what}", event["type"].as_str().unwrap_or_default())
            });
        let events: Vec<_> = events.collect();
        format!("{code} {}", events.join(", "))
    }
}

/// The UID of an object, or of the one that an answer is about.
fn uid(body: &Value) -> Option<String> {
    let uid = body["metadata"]["uid"]
        .as_str()
        .or_else(|| body["details"]["uid"].as_str());
    uid.map(str::to_owned)
}

/// `/a/*/b`: a pointer whose `*` stands for every item of a list.
fn look(value: &Value, pointer: &str) -> Value {
    match pointer.split_once("/*") {
        Some((list, rest)) => {
            let items = value.pointer(list).and_then(Value::as_array).into_iter().flatten();
            items.map(|item| look(item, rest)).collect()
        }
        None => value.pointer(pointer).cloned().unwrap_or_default(),
    }
}

fn names(list: &Value) -> Value {
    let items = list["items"].as_array().into_iter().flatten();
    items
        .map(|item| item["metadata"]["name"].clone())
        .filter(|name| name != "kube-root-ca.crt")
        .collect()
}

/// Who owns what by Apply, and by Update without the `.` entries, whose place differs.
fn managers(object: &Value) -> Value {
    let entries = object["metadata"]["managedFields"].as_array().into_iter().flatten();
    // Controllers write when it suits them.
    let people = entries.filter(|entry| entry["manager"] != "kube-controller-manager");
    let entries = people.map(|entry| {
        let mut fields = entry["fieldsV1"].clone();
        if entry["operation"] == "Update" {
            drop_dots(&mut fields);
        }
        json!([entry["manager"], entry["operation"], entry["subresource"], fields])
    });
    // Of the same second, they stand in no order.
    let mut entries: Vec<Value> = entries.collect();
    entries.sort_by_key(Value::to_string);
    entries.into()
}

fn drop_dots(fields: &mut Value) {
    if let Some(map) = fields.as_object_mut() {
        map.remove(".");
        map.values_mut().for_each(drop_dots);
    }
}

/// Without `2026-01-01T00:00:00Z`.
fn without_times(text: &str) -> String {
    let is_time = |word: &str| {
        let bytes = word.as_bytes();
        bytes.len() >= 20 && bytes[4] == b'-' && bytes[10] == b'T' && bytes[19] == b'Z'
    };
    let mut out = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if rest.is_char_boundary(20.min(rest.len())) && rest.len() >= 20 && is_time(&rest[..20]) {
            out.push_str("<time>");
            rest = &rest[20..];
        } else {
            out.push(first);
            rest = &rest[first.len_utf8()..];
        }
    }
    out
}
