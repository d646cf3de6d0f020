//! Numbers by object.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::name::ObjectKey;

/// Object → a number, sorted. Read and written as a map. A thousand clusters have one for each of a thousand units, mostly
/// of one object and mostly alike: so it is a list that is shared until somebody changes it, and the keys are shared too.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct ByObject(Option<Arc<Vec<Entry>>>);

type Entry = (Arc<ObjectKey>, u64);

impl ByObject {
    /// An object's number.
    pub fn get(&self, object: &ObjectKey) -> Option<&u64> {
        let list = self.list();
        self.place(object).ok().map(|place| &list[place].1)
    }

    /// Whether an object has a number.
    pub fn contains_key(&self, object: &ObjectKey) -> bool {
        self.place(object).is_ok()
    }

    /// Sets an object's number, and gives the one that it had.
    pub fn insert(&mut self, object: impl Into<Arc<ObjectKey>>, number: u64) -> Option<u64> {
        let object = object.into();
        let place = self.place(&object);
        let list = Arc::make_mut(self.0.get_or_insert_default());
        match place {
            Ok(place) => Some(std::mem::replace(&mut list[place].1, number)),
            Err(place) => {
                // Mostly it stays the only one.
                list.reserve_exact(1);
                list.insert(place, (object, number));
                None
            }
        }
    }

    /// Objects with their numbers, sorted.
    pub fn iter(&self) -> impl Iterator<Item = (&ObjectKey, &u64)> {
        self.into_iter()
    }

    /// The objects, sorted.
    pub fn keys(&self) -> impl Iterator<Item = &ObjectKey> {
        self.iter().map(|(object, _)| object)
    }

    /// The numbers, in the order of their objects.
    pub fn values(&self) -> impl Iterator<Item = &u64> {
        self.iter().map(|(_, number)| number)
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.list().len()
    }

    /// Whether no object has a number.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    fn list(&self) -> &[Entry] {
        self.0.as_ref().map_or(&[], |list| list.as_slice())
    }

    fn place(&self, object: &ObjectKey) -> Result<usize, usize> {
        let order = |(known, _): &Entry| match std::ptr::eq(known.as_ref(), object) {
            true => std::cmp::Ordering::Equal,
            false => known.as_ref().cmp(object),
        };
        self.list().binary_search_by(order)
    }
}

impl<K: Into<Arc<ObjectKey>>> FromIterator<(K, u64)> for ByObject {
    fn from_iter<I: IntoIterator<Item = (K, u64)>>(items: I) -> Self {
        let mut numbers = Self::default();
        for (object, number) in items {
            numbers.insert(object, number);
        }
        numbers
    }
}

impl<K: Into<Arc<ObjectKey>>, const N: usize> From<[(K, u64); N]> for ByObject {
    fn from(items: [(K, u64); N]) -> Self {
        items.into_iter().collect()
    }
}

impl<'a> IntoIterator for &'a ByObject {
    type Item = (&'a ObjectKey, &'a u64);
    type IntoIter = std::iter::Map<std::slice::Iter<'a, Entry>, fn(&'a Entry) -> (&'a ObjectKey, &'a u64)>;
    fn into_iter(self) -> Self::IntoIter {
        self.list().iter().map(|(object, number)| (object.as_ref(), number))
    }
}

impl IntoIterator for ByObject {
    type Item = Entry;
    type IntoIter = std::vec::IntoIter<Entry>;
    fn into_iter(self) -> Self::IntoIter {
        self.0.map(Arc::unwrap_or_clone).unwrap_or_default().into_iter()
    }
}

impl Serialize for ByObject {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self)
    }
}

impl<'de> Deserialize<'de> for ByObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let numbers = BTreeMap::<ObjectKey, u64>::deserialize(deserializer)?;
        Ok(numbers.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_written_and_read_as_a_sorted_map() {
        let [a, b] = ["a", "b"].map(|name| ObjectKey::new("apps/v1", "Deployment", "", name));
        let mut numbers = ByObject::from([(b.clone(), 2), (a.clone(), 1)]);
        assert_eq!(numbers.insert(b.clone(), 3), Some(2));
        let as_map = BTreeMap::from([(a, 1), (b.clone(), 3)]);
        let written = serde_json::to_string(&numbers).expect("it can be written");
        assert_eq!(written, serde_json::to_string(&as_map).expect("it can be written"));
        assert_eq!(
            serde_json::from_str::<ByObject>(&written).expect("it reads back"),
            numbers
        );
        assert_eq!((numbers.len(), numbers.get(&b)), (2, Some(&3)));
    }
}
