//! JSON fields kept exactly as they came, so that what we do not know survives us.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// Field name → raw JSON text.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Fields(BTreeMap<String, Box<RawValue>>);

impl Fields {
    pub fn parse(json: &str) -> Result<Fields, serde_json::Error> {
        serde_json::from_str(json)
    }

    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("raw JSON under string keys is always valid JSON")
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn get(&self, name: &str) -> Option<&RawValue> {
        self.0.get(name).map(AsRef::as_ref)
    }

    pub fn take(&mut self, name: &str) -> Option<Box<RawValue>> {
        self.0.remove(name)
    }

    /// The field as text; `None` when it is absent or not a string.
    pub fn text(&self, name: &str) -> Option<String> {
        self.get(name).and_then(|raw| serde_json::from_str(raw.get()).ok())
    }

    pub fn put_raw(&mut self, name: &str, raw: Box<RawValue>) {
        self.0.insert(name.to_owned(), raw);
    }

    pub fn put<T: Serialize + ?Sized>(&mut self, name: &str, value: &T) {
        let raw = serde_json::value::to_raw_value(value).expect("plain values always serialise");
        self.put_raw(name, raw);
    }

    pub fn remove(&mut self, name: &str) {
        self.0.remove(name);
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &RawValue)> {
        self.0.iter().map(|(name, raw)| (name.as_str(), raw.as_ref()))
    }
}

impl PartialEq for Fields {
    fn eq(&self, other: &Fields) -> bool {
        self.0.len() == other.0.len()
            && self.iter().zip(other.iter()).all(|(a, b)| a.0 == b.0 && a.1.get() == b.1.get())
    }
}

impl Eq for Fields {}
