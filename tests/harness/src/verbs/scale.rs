//! The scale subresource: replicas alone, of whatever kind.

use serde_json::{Value, json};

use super::{Answer, Ask};
use crate::failure::Failure;
use crate::patch::{self, PatchType};
use crate::schema::builtin;

impl Ask<'_> {
    pub(super) fn scale(&mut self) -> Result<Answer, Failure> {
        let live = self.live()?;
        let before = self.scale_of(&live);
        let after = match self.call.method.as_str() {
            "GET" => return Ok(Answer::ok(before)),
            "PUT" => {
                serde_json::from_slice(&self.call.body).map_err(|error| Failure::bad_request(error.to_string()))?
            }
            _ => self.patched_scale(&before)?,
        };
        let version = after["metadata"]["resourceVersion"].as_str();
        if version.is_some_and(|version| !version.is_empty() && live["metadata"]["resourceVersion"] != version) {
            return Err(Failure::modified(&self.kind.group, &self.kind.plural, &self.place.name));
        }
        let said = after["spec"].get("replicas").cloned().unwrap_or_else(|| json!(0));
        let replicas = said.as_u64();
        let replicas = replicas.ok_or_else(|| {
            self.invalid(
                &self.place.name,
                (
                    "spec.replicas",
                    "FieldValueInvalid",
                    "Invalid value: should be a non-negative integer",
                ),
            )
        })?;
        let mut object = live.clone();
        let path = self.scale_path("specReplicasPath");
        let mut at = &mut object;
        for name in path.split('.').filter(|name| !name.is_empty()) {
            at = &mut at[name];
        }
        *at = replicas.into();
        let written = self.replace(&live, object)?;
        Ok(Answer::ok(self.scale_of(&written)))
    }

    fn patched_scale(&self, before: &Value) -> Result<Value, Failure> {
        match PatchType::of(&self.call.content_type) {
            Some(PatchType::Json) => patch::json(before, &self.call.body),
            Some(PatchType::Merge | PatchType::Strategic) => {
                let body =
                    serde_json::from_slice(&self.call.body).map_err(|error| Failure::bad_request(error.to_string()))?;
                Ok(patch::strategic(before, &body, &builtin("meta.v1.ObjectMeta")))
            }
            _ => Err(Failure::lacking("server-side apply of scale")),
        }
    }

    fn scale_path(&self, name: &str) -> String {
        let custom = self.kind.custom.as_ref().and_then(|custom| custom.scale.as_ref());
        let path = custom.map(|scale| scale[name].as_str().unwrap_or_default());
        path.unwrap_or(match name {
            "specReplicasPath" => ".spec.replicas",
            "statusReplicasPath" => ".status.replicas",
            _ => "",
        })
        .to_owned()
    }

    fn scale_of(&self, object: &Value) -> Value {
        let at = |path: String| {
            let words = path.split('.').filter(|word| !word.is_empty()).map(str::to_owned);
            words.fold(object.clone(), |value, name| value[name.as_str()].clone())
        };
        let metadata = &object["metadata"];
        let mut status = json!({"replicas": at(self.scale_path("statusReplicasPath")).as_u64().unwrap_or(0)});
        let selector = match self.scale_path("labelSelectorPath") {
            path if path.is_empty() => selector_text(&object["spec"]["selector"]["matchLabels"]),
            path => at(path).as_str().map(str::to_owned),
        };
        if let Some(selector) = selector {
            status["selector"] = selector.into();
        }
        let mut spec = json!({});
        if let Some(replicas) = at(self.scale_path("specReplicasPath"))
            .as_u64()
            .filter(|replicas| *replicas > 0)
        {
            spec["replicas"] = replicas.into();
        }
        json!({"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": {"name": metadata["name"],
            "namespace": metadata["namespace"], "uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"],
            "creationTimestamp": metadata["creationTimestamp"]}, "spec": spec, "status": status})
    }
}

fn selector_text(labels: &Value) -> Option<String> {
    let labels = labels.as_object()?.iter();
    let pairs: Vec<_> = labels
        .map(|(name, value)| format!("{name}={}", value.as_str().unwrap_or_default()))
        .collect();
    Some(pairs.join(","))
}
