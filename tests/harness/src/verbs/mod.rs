//! What is done with a resource. In: a call, its kind, and the cluster's state. Out: an [`Answer`], and the
//! state changed where the call is a write.
//!
//! Nothing here waits, and nothing here is a connection: a watch leaves as a plan that `watching` follows.

mod admit;
mod create;
mod delete;
mod list;
mod patch;
mod rules;
mod scale;
mod update;
mod watch;

use std::sync::Arc;

use serde_json::Value;

use crate::failure::Failure;
use crate::fields::{Manager, Operation};
use crate::kinds::Kind;
use crate::request::{Call, Form, Place};
use crate::store::{Key, State};

pub(crate) use delete::{DEFINITION_FINALIZER, orphan, remove};
pub(crate) use rules::has_generation;
pub(crate) use update::{Draft, write};
pub(crate) use watch::Plan;

/// What is answered.
#[derive(Debug)]
pub(crate) enum Answer {
    Json {
        code: u16,
        value: Value,
        warnings: Vec<String>,
    },
    Text {
        code: u16,
        text: &'static str,
    },
    Watch(Plan),
}

impl Answer {
    pub(crate) fn ok(value: Value) -> Self {
        Self::Json {
            code: 200,
            value,
            warnings: Vec::new(),
        }
    }
}

/// One call on one kind.
pub(crate) struct Ask<'a> {
    pub state: &'a mut State,
    pub call: &'a Call,
    pub place: &'a Place,
    pub kind: Arc<Kind>,
    pub warnings: Vec<String>,
}

/// Does what is asked.
pub(crate) fn answer(state: &mut State, call: &Call, place: &Place) -> Result<Answer, Failure> {
    let Some(kind) = state.kind(&place.group, &place.version, &place.plural) else {
        if !state.serves(&place.group, &place.version) {
            return Ok(Answer::Text {
                code: 404,
                text: "404 page not found\n",
            });
        }
        return Err(Failure::nowhere());
    };
    if kind.namespaced && place.namespace.is_empty() && !place.name.is_empty()
        || !kind.namespaced && !place.namespace.is_empty()
    {
        return Err(Failure::nowhere());
    }
    let mut ask = Ask {
        state,
        call,
        place,
        kind,
        warnings: Vec::new(),
    };
    ask.allowed()?;
    ask.route()
}

fn not_allowed() -> Failure {
    Failure::new(
        405,
        "MethodNotAllowed",
        "the server does not allow this method on the requested resource",
    )
}

impl Ask<'_> {
    fn allowed(&self) -> Result<(), Failure> {
        let verb = self.call.verb(!self.place.name.is_empty());
        let place = self.place;
        if place.subresource.is_empty() && !self.kind.can(verb) {
            return Err(not_allowed());
        }
        if place.subresource.is_empty() || matches!(&*place.subresource, "status" | "scale" | "finalize") {
            if place.subresource.is_empty() || self.kind.has_subresource(&place.subresource) {
                return Ok(());
            }
            return Err(Failure::nowhere());
        }
        let first = place.subresource.split('/').next().unwrap_or_default();
        if self.kind.has_subresource(first) {
            return Err(Failure::lacking(&format!("{}/{first}", place.plural)));
        }
        Err(Failure::nowhere())
    }

    fn route(&mut self) -> Result<Answer, Failure> {
        let named = !self.place.name.is_empty();
        if self.call.query.flag("pretty") && self.call.query.text("pretty") == Some("yaml") {
            return Err(Failure::lacking("pretty=yaml"));
        }
        match (self.call.verb(named), &*self.place.subresource) {
            ("get" | "update" | "patch", "scale") => self.scale(),
            (_, "scale") => Err(Failure::nowhere()),
            ("get", _) => self.get(),
            ("list", _) => self.list(),
            ("watch", _) => self.watch(),
            ("create", _) => self.create(),
            ("update", _) => self.update(),
            ("patch", _) => self.patch(),
            ("delete", _) => self.delete(),
            ("deletecollection", _) => self.delete_all(),
            _ => Err(not_allowed()),
        }
    }

    fn key(&self) -> Key {
        Key::new(&self.place.namespace, &self.place.name)
    }

    /// The object at the place, as this version shows it.
    fn live(&self) -> Result<Value, Failure> {
        let found = self.state.find(&self.kind.shelf, &self.key());
        let found = found.ok_or_else(|| self.not_found())?;
        Ok(self.as_version(found.object()))
    }

    fn not_found(&self) -> Failure {
        Failure::not_found(&self.kind.group, &self.kind.plural, &self.place.name)
    }

    /// Every version shows the same object under its own name.
    fn as_version(&self, mut object: Value) -> Value {
        object["apiVersion"] = self.kind.api_version().into();
        object
    }

    fn get(&mut self) -> Result<Answer, Failure> {
        let live = self.live()?;
        self.shaped(200, live)
    }

    /// An object in the form that is wanted.
    fn shaped(&mut self, code: u16, object: Value) -> Result<Answer, Failure> {
        let form = self.form()?;
        let value = crate::table::one(&self.kind, form, &object, &self.call.query);
        Ok(Answer::Json {
            code,
            value,
            warnings: std::mem::take(&mut self.warnings),
        })
    }

    fn form(&self) -> Result<Form, Failure> {
        Form::of(&self.call.accept).ok_or_else(|| {
            let message = "only the following media types are accepted: application/json";
            Failure::new(406, "NotAcceptable", message)
        })
    }

    /// Whether nothing is to be kept.
    fn dry_run(&self) -> Result<bool, Failure> {
        match self.call.query.text("dryRun") {
            None | Some("") => Ok(false),
            Some("All") => Ok(true),
            Some(other) => {
                let problem = (
                    "dryRun".to_owned(),
                    "FieldValueNotSupported",
                    format!("Unsupported value: {other:?}: supported values: \"All\""),
                );
                Err(Failure::invalid("meta.k8s.io", "Options", "", &[problem]))
            }
        }
    }

    fn manager(&self, operation: Operation) -> Manager {
        Manager {
            operation,
            subresource: self.place.subresource.as_str().into(),
            name: self.call.manager().into(),
            api_version: self.kind.api_version().into(),
        }
    }
}
