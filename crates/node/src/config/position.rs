//! `[node] position`: where the node is.

use ncmesh_engine::settings::{Kind, Mismatch, Toml, Value, from_serde};
use ncmesh_engine::topology::{FARTHEST_M, Position};
use serde::Deserialize;

/// Place of a node: metres as a list, or degrees as a table. A list of two numbers does not say
/// which it is, nor whether latitude or longitude comes first.
#[derive(Clone, Copy)]
pub(super) struct Place(pub(super) Position);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Degrees {
    latitude: f64,
    longitude: f64,
}

impl Value for Place {
    const KINDS: &'static [Kind] = &[Kind::List, Kind::Table];

    fn from_toml(value: Toml) -> Result<Self, Mismatch> {
        let allowed = |words: String| Mismatch::Value(words);

        // A list is a plan in metres, a table is a place on the earth: the shape tells which.
        match value {
            Toml::Array(list) => {
                let axes: Result<Vec<f64>, Mismatch> =
                    list.into_iter().map(f64::from_toml).collect();
                let axes = match axes?[..] {
                    [x, y] => [x, y, 0.0],
                    [x, y, z] => [x, y, z],
                    _ => return Err(allowed("[x, y] or [x, y, z] in metres".into())),
                };

                Position::plan(axes)
                    .map(Self)
                    .ok_or_else(|| allowed(format!("metres from -{FARTHEST_M} to {FARTHEST_M}")))
            }
            Toml::Table(_) => {
                let Degrees { latitude, longitude } = from_serde(value)?;
                Position::earth(latitude, longitude).map(Self).ok_or_else(|| {
                    allowed("a latitude from -90 to 90 and a longitude from -180 to 180".into())
                })
            }
            _ => Err(Mismatch::Type(
                "[x, y] or [x, y, z] in metres, or { latitude = 52.5, longitude = 13.4 }",
            )),
        }
    }

    fn to_toml(&self) -> Option<Toml> {
        None
    }
}
