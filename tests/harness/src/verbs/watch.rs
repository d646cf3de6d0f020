//! Watches: what one begins with. How it goes on is `watching`'s.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::list::number;
use super::{Answer, Ask};
use crate::failure::Failure;
use crate::kinds::Kind;
use crate::limits::{WATCH_DEFAULT, WATCH_MAX};
use crate::request::{Form, Query, Selection};
use crate::store::Stored;

/// A watch to be followed.
#[derive(Debug)]
pub(crate) struct Plan {
    pub kind: Arc<Kind>,
    pub namespace: String,
    pub selection: Selection,
    pub form: Form,
    pub query: Query,
    /// What is there already and is told first.
    pub initial: Vec<Value>,
    /// Whether the end of that is told.
    pub mark_end: bool,
    /// Events after it follow.
    pub after: u64,
    pub bookmarks: bool,
    pub lasts: Duration,
}

impl Plan {
    /// What this watch shows of an object, if it shows it.
    pub(crate) fn shown(&self, stored: &Stored) -> Option<Value> {
        let mut object = stored.object();
        let inside = self.namespace.is_empty() || object["metadata"]["namespace"] == self.namespace;
        object["apiVersion"] = self.kind.api_version().into();
        (inside && self.selection.matches(&object)).then_some(object)
    }
}

impl Ask<'_> {
    pub(super) fn watch(&mut self) -> Result<Answer, Failure> {
        let query = &self.call.query;
        let mut selection = Selection::of(query, &self.kind)?;
        if !self.place.name.is_empty() {
            selection = selection.named(&self.place.name);
        }
        let streamed = query.flag("sendInitialEvents");
        let rule = query.text("resourceVersionMatch").filter(|text| !text.is_empty());
        if streamed && rule != Some("NotOlderThan") {
            let problem = (
                "resourceVersionMatch".to_owned(),
                "FieldValueForbidden",
                "Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan".to_owned(),
            );
            return Err(Failure::invalid("meta.k8s.io", "ListOptions", "", &[problem]));
        }
        let asked = query
            .text("resourceVersion")
            .filter(|text| !text.is_empty() && *text != "0");
        let asked = asked.map(number).transpose()?;
        if streamed {
            self.not_too_new(asked.unwrap_or(0))?;
        }
        let mut plan = Plan {
            kind: self.kind.clone(),
            namespace: self.place.namespace.clone(),
            selection,
            form: self.form()?,
            query: query.clone(),
            initial: Vec::new(),
            mark_end: streamed,
            after: asked.unwrap_or_else(|| self.state.version()),
            bookmarks: query.flag("allowWatchBookmarks"),
            lasts: lasts(query.number("timeoutSeconds")?),
        };
        let wants_initial = streamed || query.text("sendInitialEvents").is_none() && asked.is_none();
        if wants_initial {
            let found = self.state.list(&self.kind.shelf, &self.place.namespace);
            plan.initial = found.filter_map(|(_, stored)| plan.shown(stored)).collect();
            plan.after = self.state.version();
        }
        Ok(Answer::Watch(plan))
    }
}

fn lasts(seconds: Option<u64>) -> Duration {
    let asked = seconds.filter(|seconds| *seconds > 0).map(Duration::from_secs);
    asked.unwrap_or(WATCH_DEFAULT).min(WATCH_MAX)
}
