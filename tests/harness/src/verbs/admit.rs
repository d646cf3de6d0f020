//! Whether an object may be written: its body, names, namespace and fields.

use serde_json::Value;

use super::{Ask, rules};
use crate::failure::Failure;
use crate::request::read_protobuf;
use crate::schema::{self, Problems};
use crate::store::Key;

impl Ask<'_> {
    /// The object in the body.
    pub(super) fn body(&self) -> Result<Value, Failure> {
        let media = self.call.content_type.split(';').next().unwrap_or_default().trim();
        if media == "application/vnd.kubernetes.protobuf" {
            let object = read_protobuf(&self.call.body, &self.kind.kind);
            let missing = || Failure::lacking(&format!("{} in Protobuf, or a field of it", self.kind.kind));
            return self.typed(object.ok_or_else(missing)?);
        }
        if !matches!(media, "" | "application/json" | "*/*") {
            let message = format!(
                "the body of the request was in an unknown format - accepted media types include: application/json (got {media})"
            );
            return Err(Failure::new(415, "UnsupportedMediaType", message));
        }
        let object: Value =
            serde_json::from_slice(&self.call.body).map_err(|error| Failure::bad_request(error.to_string()))?;
        self.typed(object)
    }

    /// The object, if it is of the kind at this path.
    pub(super) fn typed(&self, mut object: Value) -> Result<Value, Failure> {
        if !object.is_object() {
            return Err(Failure::bad_request("the body is not an object"));
        }
        let api_version = self.kind.api_version();
        let says = |name: &str| object[name].as_str().unwrap_or_default();
        let (version, kind) = (says("apiVersion"), says("kind"));
        if version.is_empty() != kind.is_empty()
            || !version.is_empty() && (version != api_version || kind != &*self.kind.kind)
        {
            let expected = format!("{api_version}, Kind={}", self.kind.kind);
            return Err(Failure::bad_request(format!(
                "the API version in the data ({version}, Kind={kind}) does not match the expected API version ({expected})"
            )));
        }
        object["apiVersion"] = api_version.into();
        object["kind"] = Value::from(&*self.kind.kind);
        if !object["metadata"].is_object() {
            object["metadata"] = serde_json::json!({});
        }
        Ok(object)
    }

    /// Puts namespace and name of the path into an object, or says why they do not fit.
    pub(super) fn place_object(&self, object: &mut Value) -> Result<(), Failure> {
        let metadata = &mut object["metadata"];
        let namespace = metadata["namespace"].as_str().unwrap_or_default();
        if !namespace.is_empty() && namespace != self.place.namespace {
            let message = if self.kind.namespaced {
                "the namespace of the provided object does not match the namespace sent on the request"
            } else {
                "namespace is not allowed on this type"
            };
            return Err(Failure::bad_request(message));
        }
        if self.kind.namespaced {
            metadata["namespace"] = self.place.namespace.as_str().into();
        }
        let name = metadata["name"].as_str().unwrap_or_default();
        if !self.place.name.is_empty() {
            if !name.is_empty() && name != self.place.name {
                let message = format!(
                    "the name of the object ({name}) does not match the name on the URL ({})",
                    self.place.name
                );
                return Err(Failure::bad_request(message));
            }
            metadata["name"] = self.place.name.as_str().into();
        }
        Ok(())
    }

    /// Gives a new object its name, and refuses one that is none.
    pub(super) fn name(&mut self, object: &mut Value) -> Result<(), Failure> {
        let metadata = &mut object["metadata"];
        let prefix = metadata["generateName"].as_str().unwrap_or_default().to_owned();
        if metadata["name"].as_str().is_none_or(str::is_empty) && !prefix.is_empty() {
            metadata["name"] = format!("{prefix}{}", self.state.new_suffix()).into();
        }
        let name = metadata["name"].as_str().unwrap_or_default();
        if name.is_empty() {
            let problem = (
                "metadata.name",
                "FieldValueRequired",
                "Required value: name or generateName is required",
            );
            return Err(self.invalid("", problem));
        }
        let fits = if &*self.kind.group == "rbac.authorization.k8s.io" {
            !name.contains(['/', '%']) && !matches!(name, "." | "..")
        } else {
            is_subdomain(name)
        };
        if !fits {
            let why = format!(
                "Invalid value: {name:?}: a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character"
            );
            return Err(self.invalid(name, ("metadata.name", "FieldValueInvalid", &why)));
        }
        Ok(())
    }

    pub(super) fn invalid(&self, name: &str, (field, reason, message): (&str, &'static str, &str)) -> Failure {
        let problem = (field.to_owned(), reason, message.to_owned());
        Failure::invalid(&self.kind.group, &self.kind.kind, name, &[problem])
    }

    /// A namespace that new objects may be made in.
    pub(super) fn open_namespace(&self, name: &str) -> Result<(), Failure> {
        if !self.kind.namespaced {
            return Ok(());
        }
        let namespace = &self.place.namespace;
        let found = self.state.find("namespaces.", &Key::new("", namespace));
        let found = found.ok_or_else(|| Failure::not_found("", "namespaces", namespace))?;
        if found.deleting {
            let what = crate::failure::qualified(&self.kind.group, &self.kind.plural);
            let message = format!(
                "{what} {name:?} is forbidden: unable to create new content in namespace {namespace} because it is being terminated"
            );
            let mut about = crate::failure::details(&self.kind.group, &self.kind.plural, name);
            about["causes"] = serde_json::json!([{"reason": "NamespaceTerminating", "field": "metadata.namespace",
                "message": format!("namespace {namespace} is being terminated")}]);
            return Err(Failure::new(403, "Forbidden", message).about(about));
        }
        Ok(())
    }

    /// Checks fields against the kind's shape, as the caller wants unknown ones treated, and fills in defaults.
    pub(super) fn check(&mut self, object: &mut Value) -> Result<(), Failure> {
        schema::tidy(object);
        let problems = schema::check(object, &self.kind.shape);
        self.unknown(&problems)?;
        self.sound(object, &problems)?;
        self.complete(object);
        Ok(())
    }

    /// Fills in what nobody said.
    pub(super) fn complete(&self, object: &mut Value) {
        rules::defaults(&self.kind, object);
        schema::fill(object, &self.kind.shape);
    }

    fn unknown(&mut self, problems: &Problems) -> Result<(), Failure> {
        if problems.unknown.is_empty() {
            return Ok(());
        }
        let texts: Vec<_> = problems
            .unknown
            .iter()
            .map(|path| format!("unknown field {path:?}"))
            .collect();
        match self.call.query.text("fieldValidation") {
            Some("Strict") => {
                let kind = &self.kind;
                let message = format!(
                    "{} in version {:?} cannot be handled as a {}: strict decoding error: {}",
                    kind.kind,
                    kind.version,
                    kind.kind,
                    texts.join(", ")
                );
                Err(Failure::bad_request(message))
            }
            Some("Ignore") => Ok(()),
            _ => {
                self.warnings.extend(texts);
                Ok(())
            }
        }
    }

    /// Types, required fields, and lists whose items are not apart.
    pub(super) fn sound(&self, object: &Value, problems: &Problems) -> Result<(), Failure> {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        if let Some(wrong) = problems.wrong.first()
            && self.kind.custom.is_none()
        {
            let Self { kind, .. } = self;
            let message = format!(
                "{} in version {:?} cannot be handled as a {}: json: cannot unmarshal {} into Go struct field {}.{} of type {}",
                kind.kind, kind.version, kind.kind, wrong.found, kind.kind, wrong.path, wrong.expected
            );
            return Err(Failure::bad_request(message));
        }
        let mut found = Vec::new();
        for wrong in &problems.wrong {
            let message = format!(
                "Invalid value: {:?}: {} in body must be of type {}: {:?}",
                wrong.found, wrong.path, wrong.expected, wrong.found
            );
            found.push((wrong.path.clone(), "FieldValueTypeInvalid", message));
        }
        for path in problems.missing.iter().filter(|path| self.must_have(path)) {
            found.push((path.clone(), "FieldValueRequired", "Required value".to_owned()));
        }
        if self.has_pods() {
            found.extend(rules::without_image(&self.kind, object));
        }
        for path in &problems.twice {
            found.push((path.clone(), "FieldValueDuplicate", "Duplicate value".to_owned()));
        }
        if found.is_empty() {
            return Ok(());
        }
        Err(Failure::invalid(&self.kind.group, &self.kind.kind, name, &found))
    }

    /// Which required fields are asked for: all of a custom resource, and of the built-in kinds those of
    /// workloads. Elsewhere the documents call fields required that the real server fills in.
    fn must_have(&self, path: &str) -> bool {
        self.kind.custom.is_some() || self.has_pods() && path.starts_with("spec")
    }

    fn has_pods(&self) -> bool {
        self.kind.custom.is_none() && (matches!(&*self.kind.group, "apps" | "batch") || self.kind.is("", "Pod"))
    }
}

fn is_subdomain(name: &str) -> bool {
    let label = |label: &str| {
        let ends = |c: Option<char>| c.is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
        ends(label.chars().next())
            && ends(label.chars().last())
            && label
                .chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
    };
    name.len() <= 253 && name.split('.').all(label)
}
