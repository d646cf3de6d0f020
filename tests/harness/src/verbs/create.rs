//! Creation.

use serde_json::Value;

use super::update::Draft;
use super::{Answer, Ask, not_allowed, rules};
use crate::failure::Failure;
use crate::fields::{self, ApplyOptions, Operation};
use crate::store::{Key, now};

impl Ask<'_> {
    pub(super) fn create(&mut self) -> Result<Answer, Failure> {
        if !self.place.name.is_empty() {
            return Err(not_allowed());
        }
        let mut object = self.body()?;
        if let Some(review) = crate::reviews::review(&self.kind, &object) {
            return self.shaped(201, review);
        }
        self.place_object(&mut object)?;
        self.name(&mut object)?;
        self.check(&mut object)?;
        let manager = self.manager(Operation::Update);
        let created = self.born(object, |object, kind, ignored| {
            let empty = serde_json::json!({"metadata": {}});
            let options = ApplyOptions {
                force: true,
                now: &now(),
                ignored,
            };
            fields::update(&empty, object, &kind.shape, &manager, &options).write(object);
        })?;
        self.shaped(201, created)
    }

    /// Writes a new object, whose owners `own` puts in.
    pub(super) fn born(
        &mut self,
        mut object: Value,
        own: impl FnOnce(&mut Value, &crate::kinds::Kind, &[fields::Path]),
    ) -> Result<Value, Failure> {
        let key = Key::of(&object);
        self.open_namespace(&key.name)?;
        if let Some(there) = self.state.find(&self.kind.shelf, &key) {
            let mut failure = Failure::exists(&self.kind.group, &self.kind.plural, &key.name);
            if there.deleting {
                failure.message = format!("object is being deleted: {}", failure.message);
            }
            return Err(failure);
        }
        if object["metadata"]["resourceVersion"]
            .as_str()
            .is_some_and(|version| !version.is_empty())
        {
            return Err(Failure::unforeseen(
                "resourceVersion should not be set on objects to be created",
            ));
        }
        let has_status = self.kind.has_subresource("status");
        if has_status && let Some(map) = object.as_object_mut() {
            map.remove("status");
        }
        own(&mut object, &self.kind, &fields::ignored("", has_status));
        rules::at_birth(&self.kind, &mut object);
        let uid = self.state.new_uid();
        let metadata = &mut object["metadata"];
        metadata["uid"] = uid.into();
        metadata["creationTimestamp"] = now().into();
        if let Some(metadata) = metadata.as_object_mut() {
            for name in [
                "deletionTimestamp",
                "deletionGracePeriodSeconds",
                "selfLink",
                "generation",
            ] {
                metadata.remove(name);
            }
            if rules::has_generation(&self.kind) {
                metadata.insert("generation".to_owned(), 1.into());
            }
        }
        if self.dry_run()? {
            return Ok(object);
        }
        Ok(self.state.put(&self.kind.shelf, object))
    }

    /// A draft of this call's write.
    pub(super) fn draft(&self) -> Draft<'_> {
        Draft {
            kind: &self.kind,
            subresource: &self.place.subresource,
        }
    }
}
