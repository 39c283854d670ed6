//! Types of settings that are tables and lists: errors keep the places of what is in them.

use ncmesh_engine::settings::{Kind, Mismatch, Section, Setting, Toml, Value, from_serde};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, DeserializeOwned, Deserializer, MapAccess, SeqAccess, Visitor};
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use toml::Spanned;

/// A table inside another one, whose errors keep their own places.
pub(super) struct Nested<T>(pub(super) Spanned<T>);

impl<T: Section> Value for Nested<T> {
    const KINDS: &'static [Kind] = &[Kind::Table];

    fn from_toml(value: Toml) -> Result<Self, Mismatch> {
        from_serde(value).map(|table| Self(Spanned::new(0..0, table)))
    }

    fn to_toml(&self) -> Option<Toml> {
        None
    }

    fn read<'de, D: Deserializer<'de>>(
        _: &Setting<Self>,
        deserializer: D,
    ) -> Result<Self, D::Error> {
        Spanned::deserialize(deserializer).map(Self)
    }

    fn read_some<'de, D: Deserializer<'de>>(
        _: &Setting<Option<Self>>,
        deserializer: D,
    ) -> Result<Option<Self>, D::Error> {
        Spanned::deserialize(deserializer).map(|table| Some(Self(table)))
    }
}

impl<T> Nested<T> {
    /// Returns the table.
    pub(super) fn table(&self) -> &T {
        self.0.get_ref()
    }
}

impl<T: Default> Default for Nested<T> {
    fn default() -> Self {
        Self(Spanned::new(0..0, T::default()))
    }
}

/// A list whose entries keep their own places.
pub(super) struct Entries<T>(pub(super) Vec<T>);

impl<T> Default for Entries<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: DeserializeOwned> Value for Entries<T> {
    const KINDS: &'static [Kind] = &[Kind::List];

    fn from_toml(value: Toml) -> Result<Self, Mismatch> {
        from_serde(value).map(Self)
    }

    fn to_toml(&self) -> Option<Toml> {
        None
    }

    fn read<'de, D: Deserializer<'de>>(
        _: &Setting<Self>,
        deserializer: D,
    ) -> Result<Self, D::Error> {
        Vec::deserialize(deserializer).map(Self)
    }
}

/// One table, or a list of tables. Values within keep their own places.
pub(super) struct OneOrMore<T>(pub(super) Vec<T>);

impl<T> Default for OneOrMore<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: DeserializeOwned> Value for OneOrMore<T> {
    const KINDS: &'static [Kind] = &[Kind::Table, Kind::List];

    fn from_toml(value: Toml) -> Result<Self, Mismatch> {
        match value {
            Toml::Array(_) => from_serde(value).map(Self),
            one => from_serde(one).map(|one| Self(vec![one])),
        }
    }

    fn to_toml(&self) -> Option<Toml> {
        None
    }

    fn read<'de, D: Deserializer<'de>>(
        _: &Setting<Self>,
        deserializer: D,
    ) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Tables(PhantomData)).map(Self)
    }
}

/// Reader of one table or a list of them.
struct Tables<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Tables<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a table, or a list of tables")
    }

    fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<Self::Value, A::Error> {
        T::deserialize(MapAccessDeserializer::new(table)).map(|one| vec![one])
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut tables = Vec::new();
        while let Some(table) = list.next_element()? {
            tables.push(table);
        }
        Ok(tables)
    }
}

/// Settings of protocols by their names, which the protocols check.
#[derive(Default)]
pub(super) struct Protocols(pub(super) BTreeMap<String, toml::Table>);

impl Value for Protocols {
    const KINDS: &'static [Kind] = &[Kind::Table];

    fn from_toml(value: Toml) -> Result<Self, Mismatch> {
        from_serde(value).map(Self)
    }

    fn to_toml(&self) -> Option<Toml> {
        None
    }

    fn read<'de, D: Deserializer<'de>>(
        _: &Setting<Self>,
        deserializer: D,
    ) -> Result<Self, D::Error> {
        BTreeMap::deserialize(deserializer).map(Self)
    }
}
