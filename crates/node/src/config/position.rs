//! `[node] position`: where the node is.

use ncmesh_engine::topology::{FARTHEST_M, Position};
use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt;

/// Reads metres as a list, or degrees as a table: a list of two numbers does not say which it is,
/// nor whether latitude or longitude comes first.
pub(super) fn position<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Position>, D::Error> {
    deserializer.deserialize_any(Reader).map(Some)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Degrees {
    latitude: f64,
    longitude: f64,
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Position;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[x, y] or [x, y, z] in metres, or { latitude = 52.5, longitude = 13.4 }")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Position, A::Error> {
        let mut axes = [0.0; 3];
        let mut read = 0;
        while let Some(metres) = list.next_element::<f64>()? {
            *axes.get_mut(read).ok_or_else(|| A::Error::invalid_length(read + 1, &self))? = metres;
            read += 1;
        }
        if read < 2 {
            return Err(A::Error::invalid_length(read, &self));
        }
        let allowed = || format!("position: allowed are metres from -{FARTHEST_M} to {FARTHEST_M}");
        Position::plan(axes).ok_or_else(|| A::Error::custom(allowed()))
    }

    fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<Position, A::Error> {
        let table = serde::de::value::MapAccessDeserializer::new(table);
        let Degrees { latitude, longitude } = Degrees::deserialize(table)?;
        Position::earth(latitude, longitude).ok_or_else(|| {
            A::Error::custom(
                "position: allowed is a latitude from -90 to 90 and a longitude from -180 to 180",
            )
        })
    }
}
