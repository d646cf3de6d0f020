//! Amounts of resources by name.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::quantity::{thousandths, written};

/// Amounts by resource name: `cpu` in thousandths of a core, everything else whole (bytes, devices, pods). A resource
/// that is not named is 0.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Resources(BTreeMap<String, i64>);

/// The resource that counts pods themselves.
pub(super) const PODS: &str = "pods";
const CPU: &str = "cpu";

/// Which way an amount that is no whole number goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rounding {
    /// What is asked for.
    Up,
    /// What there is.
    Down,
}

impl Resources {
    /// One amount.
    pub fn of(&self, name: &str) -> i64 {
        self.0.get(name).copied().unwrap_or_default()
    }

    /// Those that are named, sorted.
    pub fn iter(&self) -> impl Iterator<Item = (&str, i64)> {
        self.0.iter().map(|(name, amount)| (name.as_str(), *amount))
    }

    /// Whether nothing is named.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Each amount as Kubernetes writes it.
    pub fn quantities(&self) -> BTreeMap<String, String> {
        let text = |(name, amount): (&str, i64)| (name.to_owned(), written(name, amount));
        self.iter().map(text).collect()
    }

    /// Whether it is named, also where it is 0.
    pub(super) fn names(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Sets one amount.
    pub fn set(&mut self, name: &str, amount: i64) {
        self.0.insert(name.to_owned(), amount);
    }

    /// This with one more amount.
    pub fn with(mut self, name: &str, amount: i64) -> Self {
        self.set(name, amount);
        self
    }

    /// Adds so many times the other.
    pub fn add(&mut self, other: &Self, times: i64) {
        for (name, amount) in &other.0 {
            let sum = self.of(name).saturating_add(amount.saturating_mul(times));
            self.0.insert(name.clone(), sum);
        }
    }

    /// Makes each amount at least the other's.
    pub fn raise_to(&mut self, other: &Self) {
        for (name, amount) in &other.0 {
            let greater = self.of(name).max(*amount);
            self.0.insert(name.clone(), greater);
        }
    }

    /// Makes each amount at most the other's.
    pub fn lower_to(&mut self, other: &Self) {
        for (name, amount) in &mut self.0 {
            *amount = (*amount).min(other.of(name));
        }
    }

    /// How many times `asked` is in this: the scarcest resource decides. What is asked of as 0 does not.
    pub fn times(&self, asked: &Self) -> u64 {
        let asked = asked.0.iter().filter(|(_, amount)| **amount > 0);
        let times = asked.map(|(name, amount)| u64::try_from(self.of(name) / amount).unwrap_or(0));
        times.min().unwrap_or(u64::MAX)
    }

    /// A map of quantities, as pods and nodes have it. `Err` names the resource whose quantity cannot be read.
    pub fn read(map: Option<&Value>) -> Result<Self, String> {
        Self::rounded(map, Rounding::Down)
    }

    pub(super) fn rounded(map: Option<&Value>, rounding: Rounding) -> Result<Self, String> {
        let mut amounts = BTreeMap::new();
        for (name, value) in map.and_then(Value::as_object).into_iter().flatten() {
            let read = match value {
                Value::String(text) => thousandths(text),
                Value::Number(number) => thousandths(&number.to_string()),
                _ => None,
            };
            let exact = read.filter(|amount| *amount >= 0).ok_or_else(|| name.clone())?;
            let unit = if name == CPU { 1 } else { 1_000 };
            let amount = match rounding {
                Rounding::Up => (exact + unit - 1) / unit,
                Rounding::Down => exact / unit,
            };
            amounts.insert(name.clone(), i64::try_from(amount).unwrap_or(i64::MAX));
        }
        Ok(Self(amounts))
    }
}

impl<const N: usize> From<[(&str, i64); N]> for Resources {
    fn from(amounts: [(&str, i64); N]) -> Self {
        Self(
            amounts
                .into_iter()
                .map(|(name, amount)| (name.to_owned(), amount))
                .collect(),
        )
    }
}
