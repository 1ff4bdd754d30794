//! JSON fields kept exactly as they came, so that what we do not know survives us.

use std::borrow::Cow;
use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// Field name → raw JSON text, sorted by name.
#[derive(Debug, Clone, Default)]
pub struct Fields(Vec<(Cow<'static, str>, Box<RawValue>)>);

impl Fields {
    pub fn parse(json: &str) -> Result<Fields, serde_json::Error> {
        Ok(RawFields::parse(json)?.into_fields())
    }

    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("raw JSON under string keys is always valid JSON")
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn get(&self, name: &str) -> Option<&RawValue> {
        self.find(name).ok().map(|at| self.0[at].1.as_ref())
    }

    /// The field as text; `None` when it is absent or not a string.
    pub fn text(&self, name: &str) -> Option<String> {
        self.get(name).and_then(|raw| serde_json::from_str(raw.get()).ok())
    }

    pub fn put_raw(&mut self, name: &str, raw: Box<RawValue>) {
        match self.find(name) {
            Ok(at) => self.0[at].1 = raw,
            Err(at) => self.0.insert(at, (owned_name(name), raw)),
        }
    }

    pub fn put<T: Serialize + ?Sized>(&mut self, name: &str, value: &T) {
        let raw = serde_json::value::to_raw_value(value).expect("plain values always serialise");
        self.put_raw(name, raw);
    }

    pub fn remove(&mut self, name: &str) {
        if let Ok(at) = self.find(name) {
            self.0.remove(at);
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &RawValue)> {
        self.0.iter().map(|(name, raw)| (name.as_ref(), raw.as_ref()))
    }

    fn find(&self, name: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|(known, _)| known.as_ref().cmp(name))
    }
}

/// Names that every file is full of need no memory of their own.
fn owned_name(name: &str) -> Cow<'static, str> {
    match name {
        "created_at" => Cow::Borrowed("created_at"),
        "created_by" => Cow::Borrowed("created_by"),
        "description" => Cow::Borrowed("description"),
        "close_reason" => Cow::Borrowed("close_reason"),
        "updated_at" => Cow::Borrowed("updated_at"),
        "closed_at" => Cow::Borrowed("closed_at"),
        other => Cow::Owned(other.to_owned()),
    }
}

impl PartialEq for Fields {
    fn eq(&self, other: &Fields) -> bool {
        self.0.len() == other.0.len()
            && self.iter().zip(other.iter()).all(|(a, b)| a.0 == b.0 && a.1.get() == b.1.get())
    }
}

impl Eq for Fields {}

impl Serialize for Fields {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, raw) in self.iter() {
            map.serialize_entry(name, raw)?;
        }
        map.end()
    }
}

/// The fields of an object that is being read, still in its text. Of a name that comes twice the last counts.
pub(crate) struct RawFields<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> RawFields<'a> {
    pub(crate) fn parse(json: &'a str) -> Result<RawFields<'a>, serde_json::Error> {
        serde_json::from_str(json)
    }

    /// Takes a field out.
    pub(crate) fn take(&mut self, name: &str) -> Option<&'a RawValue> {
        let last = self.0.iter().rposition(|(known, _)| known == name)?;
        let (_, raw) = self.0.remove(last);
        self.0.retain(|(known, _)| known != name);
        Some(raw)
    }

    /// The field as text, borrowed where it can be; `None` when it is absent or not a string.
    pub(crate) fn text(&self, name: &str) -> Option<Cow<'a, str>> {
        let (_, raw) = self.0.iter().rev().find(|(known, _)| known == name)?;
        serde_json::from_str(raw.get()).ok().map(|Text(text)| text)
    }

    pub(crate) fn is_null(&self, name: &str) -> bool {
        self.0.iter().rev().find(|(known, _)| known == name).is_some_and(|(_, raw)| raw.get() == "null")
    }

    /// What is left, kept for good.
    pub(crate) fn into_fields(mut self) -> Fields {
        // Sorted as a whole: put in one by one, a line of very many fields would cost the square of their number.
        self.0.reverse();
        self.0.sort_by(|(a, _), (b, _)| a.cmp(b));
        self.0.dedup_by(|(later, _), (first, _)| later == first);
        Fields(self.0.into_iter().map(|(name, raw)| (owned_name(&name), raw.to_owned())).collect())
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for RawFields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<RawFields<'a>, D::Error> {
        deserializer.deserialize_map(RawVisitor)
    }
}

struct RawVisitor;

impl<'de> Visitor<'de> for RawVisitor {
    type Value = RawFields<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RawFields<'de>, A::Error> {
        let mut fields = Vec::with_capacity(16);
        while let Some(Text(name)) = map.next_key()? {
            fields.push((name, map.next_value()?));
        }
        Ok(RawFields(fields))
    }
}

/// A text of the JSON, borrowed wherever it needs no unescaping.
#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);
