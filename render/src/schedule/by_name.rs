//! Something of each cluster, sorted by the clusters' names.

use std::borrow::Borrow;
use std::ops::Index;

use crate::name::ClusterName;

/// Cluster → something, as a sorted list. Thousands of clusters are gone through in order for each of thousands of units;
/// a tree would compare names for each of them, and a place in a list is a number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ByName<K, V>(Vec<(K, V)>);

impl<K, V> Default for ByName<K, V> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<K: Ord + Borrow<ClusterName>, V> ByName<K, V> {
    pub(super) fn get(&self, name: &ClusterName) -> Option<&V> {
        self.place(name).ok().map(|place| &self.0[place].1)
    }

    pub(super) fn get_mut(&mut self, name: &ClusterName) -> Option<&mut V> {
        self.place(name).ok().map(|place| &mut self.0[place].1)
    }
    /// What stands at a place in the order.
    pub(super) fn at(&self, place: usize) -> Option<&V> {
        self.0.get(place).map(|(_, value)| value)
    }

    pub(super) fn at_mut(&mut self, place: usize) -> Option<&mut V> {
        self.0.get_mut(place).map(|(_, value)| value)
    }

    /// Those that come in the order of their names are added at the end.
    pub(super) fn insert(&mut self, name: K, value: V) {
        if self.0.last().is_none_or(|(last, _)| *last < name) {
            self.0.push((name, value));
            return;
        }
        match self.place(name.borrow()) {
            Ok(place) => self.0[place].1 = value,
            Err(place) => self.0.insert(place, (name, value)),
        }
    }

    pub(super) fn retain(&mut self, mut stays: impl FnMut(&K, &mut V) -> bool) {
        self.0.retain_mut(|(name, value)| stays(name, value));
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = &K> {
        self.0.iter().map(|(name, _)| name)
    }

    pub(super) fn values(&self) -> impl Iterator<Item = &V> {
        self.0.iter().map(|(_, value)| value)
    }

    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.0.iter_mut().map(|(_, value)| value)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.into_iter()
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Other things of the same clusters, in the same order.
    pub(super) fn with<W>(&self, values: impl IntoIterator<Item = W>) -> ByName<K, W>
    where
        K: Clone,
    {
        ByName(self.0.iter().map(|(name, _)| name.clone()).zip(values).collect())
    }

    fn place(&self, name: &ClusterName) -> Result<usize, usize> {
        self.0.binary_search_by(|(known, _)| known.borrow().cmp(name))
    }
}

impl<K: Ord + Borrow<ClusterName>, V> Extend<(K, V)> for ByName<K, V> {
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, items: I) {
        for (name, value) in items {
            self.insert(name, value);
        }
    }
}

impl<K: Ord + Borrow<ClusterName>, V> FromIterator<(K, V)> for ByName<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(items: I) -> Self {
        let items = items.into_iter();
        let mut list = Self(Vec::with_capacity(items.size_hint().0));
        list.extend(items);
        list
    }
}

impl<K: Ord + Borrow<ClusterName>, V> Index<&ClusterName> for ByName<K, V> {
    type Output = V;
    fn index(&self, name: &ClusterName) -> &V {
        &self.0[self.place(name).unwrap_or(usize::MAX)].1
    }
}

type Pair<K, V> = (K, V);

impl<'a, K, V> IntoIterator for &'a ByName<K, V> {
    type Item = (&'a K, &'a V);
    type IntoIter = std::iter::Map<std::slice::Iter<'a, Pair<K, V>>, fn(&'a Pair<K, V>) -> (&'a K, &'a V)>;
    fn into_iter(self) -> Self::IntoIter {
        self.0.iter().map(|(name, value)| (name, value))
    }
}

impl<'a, K, V> IntoIterator for &'a mut ByName<K, V> {
    type Item = (&'a K, &'a mut V);
    type IntoIter = std::iter::Map<std::slice::IterMut<'a, Pair<K, V>>, fn(&'a mut Pair<K, V>) -> (&'a K, &'a mut V)>;
    fn into_iter(self) -> Self::IntoIter {
        self.0.iter_mut().map(|(name, value)| (&*name, value))
    }
}

impl<K, V> IntoIterator for ByName<K, V> {
    type Item = Pair<K, V>;
    type IntoIter = std::vec::IntoIter<Pair<K, V>>;
    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::cluster_name;

    #[test]
    fn in_whatever_order_they_come_they_stand_by_name() {
        let mut list: ByName<ClusterName, u8> = ["b", "d", "a", "c", "b"]
            .into_iter()
            .zip(0..)
            .map(|(name, value)| (cluster_name(name), value))
            .collect();
        let found: Vec<_> = list.iter().map(|(name, value)| (name.as_str(), *value)).collect();
        assert_eq!(
            found,
            [("a", 2), ("b", 4), ("c", 3), ("d", 1)],
            "the newest of a name counts"
        );
        assert_eq!((list.get(&cluster_name("c")), list.at(3)), (Some(&3), Some(&1)));
        list.retain(|_, value| *value > 2);
        assert!(list.get(&cluster_name("a")).is_none() && list.len() == 2);
    }
}
