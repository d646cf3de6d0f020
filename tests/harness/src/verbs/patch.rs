//! Patches, and server-side apply.

use serde_json::{Value, json};

use super::{Answer, Ask};
use crate::failure::Failure;
use crate::fields::{self, ApplyOptions, Conflict, Operation};
use crate::patch::{self, PatchType};
use crate::schema;
use crate::store::now;

impl Ask<'_> {
    pub(super) fn patch(&mut self) -> Result<Answer, Failure> {
        let kind = PatchType::of(&self.call.content_type).filter(|patch| self.takes(*patch));
        match kind {
            Some(PatchType::Apply) => self.apply(),
            Some(patch) => {
                let live = self.live()?;
                let object = self.patched(&live, patch)?;
                let written = self.write_patched(&live, object)?;
                self.shaped(200, written)
            }
            None => {
                let strategic = if self.kind.custom.is_some() {
                    ""
                } else {
                    ", application/strategic-merge-patch+json"
                };
                let message = format!(
                    "the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml{strategic}"
                );
                Err(Failure::new(415, "UnsupportedMediaType", message))
            }
        }
    }

    fn takes(&self, patch: PatchType) -> bool {
        patch != PatchType::Strategic || self.kind.custom.is_none()
    }

    /// An object as a patch of it says.
    pub(super) fn patched(&self, live: &Value, kind: PatchType) -> Result<Value, Failure> {
        let read = || -> Result<Value, Failure> {
            serde_json::from_slice(&self.call.body).map_err(|error| Failure::bad_request(error.to_string()))
        };
        match kind {
            PatchType::Json => patch::json(live, &self.call.body),
            PatchType::Merge => Ok(patch::merge(live, &read()?)),
            PatchType::Strategic | PatchType::Apply => Ok(patch::strategic(live, &read()?, &self.kind.shape)),
        }
    }

    fn write_patched(&mut self, live: &Value, object: Value) -> Result<Value, Failure> {
        let mut object = self.typed(object)?;
        self.place_object(&mut object)?;
        self.preconditions(live, &object)?;
        self.check(&mut object)?;
        self.replace(live, object)
    }

    fn apply(&mut self) -> Result<Answer, Failure> {
        if self.call.query.text("fieldManager").is_none_or(str::is_empty) {
            let problem = (
                "fieldManager".to_owned(),
                "FieldValueRequired",
                "Required value: is required for apply patch".to_owned(),
            );
            return Err(Failure::invalid("meta.k8s.io", "PatchOptions", "", &[problem]));
        }
        // Everybody sends JSON, which is YAML.
        let config: Value = serde_json::from_slice(&self.call.body)
            .map_err(|_| Failure::lacking("an applied configuration in YAML that is not JSON"))?;
        if config["kind"].as_str().is_none_or(str::is_empty) || config["apiVersion"].as_str().is_none_or(str::is_empty)
        {
            return Err(Failure::bad_request(
                "invalid object type: Object 'Kind' and 'apiVersion' are required",
            ));
        }
        let mut config = self.typed(config)?;
        let said = config["metadata"]["namespace"].as_str().unwrap_or_default().to_owned();
        self.place_object(&mut config)?;
        if config["metadata"]
            .get("managedFields")
            .is_some_and(|fields| !fields.is_null())
        {
            return Err(Failure::bad_request("metadata.managedFields must be nil"));
        }
        schema::tidy(&mut config);
        self.known(&config, &said)?;
        match self.live() {
            Ok(live) => {
                self.preconditions(&live, &config)?;
                let object = self.applied(&live, &config)?;
                let written = self.keep(&live, object)?;
                self.shaped(200, written)
            }
            Err(missing) if self.place.subresource.is_empty() => self.apply_new(config, missing),
            Err(missing) => Err(missing),
        }
    }

    fn apply_new(&mut self, mut config: Value, missing: Failure) -> Result<Answer, Failure> {
        if config["metadata"].get("uid").is_some() {
            let why = "uid mismatch: the provided object specified uid, and no existing object was found";
            return Err(Failure::conflict(
                &self.kind.group,
                &self.kind.plural,
                &self.place.name,
                why,
            ));
        }
        if config["metadata"].get("resourceVersion").is_some() {
            return Err(missing);
        }
        self.name(&mut config)?;
        self.open_namespace(&self.place.name)?;
        let empty = json!({"metadata": {}});
        let mut object = self.applied(&empty, &config)?;
        object["apiVersion"] = self.kind.api_version().into();
        object["kind"] = Value::from(&*self.kind.kind);
        let created = self.born(object, |_, _, _| {})?;
        self.shaped(201, created)
    }

    /// Merges a configuration into an object, checks the outcome, and files who owns what.
    fn applied(&mut self, live: &Value, config: &Value) -> Result<Value, Failure> {
        let draft = self.draft();
        let ignored = draft.ignored();
        let manager = self.manager(Operation::Apply);
        let options = ApplyOptions {
            force: self.call.query.flag("force"),
            now: &now(),
            ignored: &ignored,
        };
        let applied = fields::apply(live, config, &self.kind.shape, &manager, &options)
            .map_err(|conflicts| conflict(&conflicts))?;
        let mut object = draft.confine(live, applied.object);
        let problems = schema::check(&mut object, &self.kind.shape);
        self.sound(&object, &problems)?;
        self.complete(&mut object);
        applied.entries.write(&mut object);
        Ok(object)
    }

    /// A configuration may only name fields that its kind has.
    fn known(&self, config: &Value, namespace: &str) -> Result<(), Failure> {
        let problems = schema::check(&mut config.clone(), &self.kind.shape);
        let unknown = problems
            .unknown
            .iter()
            .map(|path| format!(".{path}: field not declared in schema"));
        let wrong = problems
            .wrong
            .iter()
            .map(|wrong| format!(".{}: expected {}, got {}", wrong.path, wrong.expected, wrong.found));
        let twice = problems
            .twice
            .iter()
            .map(|path| format!(".{path}: duplicate entries for key"));
        let errors: Vec<_> = unknown.chain(wrong).chain(twice).collect();
        let text = match &errors[..] {
            [] => return Ok(()),
            [one] => one.clone(),
            many => format!("errors:\n  {}", many.join("\n  ")),
        };
        let (name, kind) = (&self.place.name, &self.kind);
        let what = format!(
            "{namespace}/{name}; {}/{}, Kind={}",
            kind.group, kind.version, kind.kind
        );
        let message = format!("failed to create typed patch object ({what}): {text}");
        Err(Failure::unforeseen(message))
    }
}

/// Conflicts as the real server tells them.
fn conflict(conflicts: &[Conflict]) -> Failure {
    let causes = conflicts.iter().map(|conflict| {
        json!({"reason": "FieldManagerConflict", "message": format!("conflict with {}", conflict.manager), "field": conflict.path})
    });
    let causes: Vec<_> = causes.collect();
    let text = match conflicts {
        [one] => format!(
            "Apply failed with 1 conflict: conflict with {}: {}",
            one.manager, one.path
        ),
        many => {
            let mut managers: Vec<_> = many.iter().map(|conflict| conflict.manager.as_str()).collect();
            managers.sort_unstable();
            managers.dedup();
            let mut lines = Vec::new();
            for manager in managers {
                lines.push(format!("conflicts with {manager}:"));
                let of_manager = many.iter().filter(|conflict| conflict.manager == manager);
                lines.extend(of_manager.map(|conflict| format!("- {}", conflict.path)));
            }
            format!("Apply failed with {} conflicts: {}", many.len(), lines.join("\n"))
        }
    };
    Failure::new(409, "Conflict", text).about(json!({ "causes": causes }))
}
