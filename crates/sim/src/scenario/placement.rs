//! Nodes placed by a rule (`uniform`, `grid`) or by a file of positions (`positions`).
//!
//! These topologies have nodes and no links: `[medium.propagation]` derives the links from the
//! positions. Nodes are named n1, n2, ..., with zeros in front so that all names have one length.

use ncmesh_engine::rng;
use ncmesh_medium::MAX_RADIOS;
use ncmesh_wire::NodeId;

use super::earth::{Degrees, Plane};
use super::error::Place;
use super::links::{Topology, lines};
use super::mobility::FARTHEST_M;
use super::{Node, Position, ScenarioError};

ncmesh_engine::settings! {
    /// Key `uniform` of `[topology]`: nodes scattered uniformly over a rectangle.
    #[derive(Clone, Copy)]
    pub(super) struct Uniform {
        /// Number of nodes.
        nodes: usize, within 1..=MAX_RADIOS;
        /// Width of the rectangle, to the east.
        width_m: f64, within 0.0..=FARTHEST_M, unit "m";
        /// Its height, to the north.
        height_m: f64, within 0.0..=FARTHEST_M, unit "m";
        /// Seed that places them, so that runs with other seeds meet the same mesh.
        seed: Option<u64> = None, absent "the scenario's";
    }
}

ncmesh_engine::settings! {
    /// Key `grid` of `[topology]`: nodes on a square grid, row by row.
    #[derive(Clone, Copy)]
    pub(super) struct Grid {
        /// Nodes in each row.
        columns: usize, within 1..=MAX_RADIOS;
        /// Number of rows.
        rows: usize, within 1..=MAX_RADIOS;
        /// Distance between neighbours in a row or column.
        spacing_m: f64, above 0, unit "m";
    }
}

/// Scatters nodes at random positions drawn from their own seed, or from `seed` of the scenario.
pub(super) fn uniform(uniform: &Uniform, seed: u64) -> Topology {
    let Uniform { nodes, width_m, height_m, seed: own } = *uniform;

    // A random stream of its own, so that the placement does not depend on anything else that uses
    // the seed.
    let mut rng = rng::stream(own.unwrap_or(seed), NodeId(0), "scenario", "placement");
    let mut along = |length: f64| rng::unit(&mut rng) * length;
    named((0..nodes).map(|_| Position { x: along(width_m), y: along(height_m), z: 0.0 }))
}

/// Places nodes on a grid.
pub(super) fn grid(grid: &Grid, place: Place) -> Result<Topology, ScenarioError> {
    let Grid { columns, rows, spacing_m } = *grid;
    let nodes = columns.saturating_mul(rows);
    if nodes > MAX_RADIOS {
        let message = format!("grid: `columns` times `rows` must be at most {MAX_RADIOS}");
        return Err(ScenarioError::value(place, message));
    }

    let at = |i: usize| Position {
        x: (i % columns) as f64 * spacing_m,
        y: (i / columns) as f64 * spacing_m,
        z: 0.0,
    };
    Ok(named((0..nodes).map(at)))
}

/// Columns of a file of positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Column {
    X,
    Y,
    Z,
    Latitude,
    Longitude,
}

/// Names of the columns in the first line of a file, in small letters.
const COLUMNS: [(&str, Column); 12] = [
    ("x", Column::X),
    ("x_m", Column::X),
    ("y", Column::Y),
    ("y_m", Column::Y),
    ("z", Column::Z),
    ("z_m", Column::Z),
    ("lat", Column::Latitude),
    ("latitude", Column::Latitude),
    ("lon", Column::Longitude),
    ("lng", Column::Longitude),
    ("long", Column::Longitude),
    ("longitude", Column::Longitude),
];

/// Reads lines of `x,y` or `x,y,z`, in metres, or the columns that the first line names, which may
/// be `lat` and `lon`, degrees. Errors call the file `file`.
pub(super) fn positions(text: &str, file: &str) -> Result<Topology, ScenarioError> {
    let mut lines = lines(text).peekable();
    let fail = |at, message: String| Err(ScenarioError::value(Place::line(file, at), message));

    // A first line without any number names the columns.
    let is_name = |cell: &str| cell.trim().parse::<f64>().is_err();
    let mut columns = None;
    if let Some((at, header)) = lines.next_if(|(_, line)| line.split(',').all(is_name)) {
        let mut named = Vec::new();
        for cell in header.split(',').map(|cell| cell.trim().to_lowercase()) {
            match COLUMNS.iter().find(|(name, _)| *name == cell) {
                Some((_, column)) if named.contains(column) => {
                    return fail(at, format!("column `{cell}`: its value has a column already"));
                }
                Some((_, column)) => named.push(*column),
                None => {
                    let message = "must be x, y, z in metres, or lat, lon in degrees";
                    return fail(at, format!("column `{cell}`: {message}"));
                }
            }
        }

        let has = |column| named.contains(&column);
        let is_plane = has(Column::X) && has(Column::Y);
        let is_earth = has(Column::Latitude) && has(Column::Longitude);
        if is_plane == is_earth {
            return fail(at, format!("`{header}`: must have x and y, or lat and lon"));
        }

        columns = Some(named);
    }

    let mut plane = Plane::default();
    let mut positions = Vec::new();
    for (at, line) in lines {
        let cells: Result<Vec<f64>, _> = line.split(',').map(|cell| cell.trim().parse()).collect();
        let known = columns.as_deref().unwrap_or(&[Column::X, Column::Y, Column::Z]);
        let is_complete =
            |cells: &Vec<f64>| cells.len() == known.len() || columns.is_none() && cells.len() == 2;

        let Some(cells) = cells.ok().filter(is_complete) else {
            let allowed = match &columns {
                None => "must be x,y or x,y,z in metres",
                Some(_) => "must have a number for each column of the first line",
            };
            return fail(at, format!("`{line}`: {allowed}"));
        };

        let value =
            |column| known.iter().zip(&cells).find(|(it, _)| **it == column).map(|it| *it.1);
        let z = value(Column::Z).unwrap_or(0.0);
        let [x, y] = match (value(Column::Latitude), value(Column::Longitude)) {
            (Some(latitude), Some(longitude)) => {
                match plane.metres(Degrees { latitude, longitude }) {
                    Ok(place) => place,
                    Err(message) => return fail(at, message),
                }
            }
            _ => [value(Column::X).unwrap_or(0.0), value(Column::Y).unwrap_or(0.0)],
        };

        // Not NaN either.
        if let Some(m) = [x, y, z].iter().find(|m| !(-FARTHEST_M..=FARTHEST_M).contains(*m)) {
            let message = format!("position {m:e}: must be within {FARTHEST_M:e} m of the origin");
            return fail(at, message);
        }

        positions.push(Position { x, y, z });
    }

    Ok(named(positions.into_iter()))
}

/// Numbers the positions and returns a topology of nodes without links.
fn named(positions: impl ExactSizeIterator<Item = Position>) -> Topology {
    let width = positions.len().to_string().len();
    let node = |(i, position): (usize, Position)| Node {
        name: format!("n{:0width$}", i + 1),
        position: Some(position),
    };
    Topology { nodes: positions.enumerate().map(node).collect(), ..Topology::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(text: &str) -> Result<Vec<[i64; 3]>, String> {
        let topology = positions(text, "p.csv").map_err(|error| error.to_string())?;
        let places = topology.nodes.iter().filter_map(|node| node.position);
        Ok(places.map(|p| [p.x, p.y, p.z].map(|m| m.round() as i64)).collect())
    }

    #[test]
    fn the_first_line_may_name_columns_and_so_their_units() {
        let metres = Ok(vec![[1, 2, 0], [3, 4, 0]]);
        assert_eq!(places("1,2\n3,4\n"), metres);
        assert_eq!(places("# note\nX, y\n1,2\n3,4\n"), metres);
        assert_eq!(places("y_m,x_m\n2,1\n4,3\n"), metres);
        assert_eq!(places("1,2,3\n4,5\n"), Ok(vec![[1, 2, 3], [4, 5, 0]]));
        let degrees = Ok(vec![[0, 0, 0], [56, 111, 0]]);
        assert_eq!(places("lat,lon\n60,13\n60.001,13.001\n"), degrees);
        assert_eq!(places("Longitude,Latitude\n13,60\n13.001,60.001\n"), degrees);
    }

    #[test]
    fn faults_name_their_line() {
        for (text, message) in [
            ("lat,lon\n91,13\n", "p.csv:2: latitude must be"),
            ("lat,lon\n60\n", "p.csv:2: `60`: must have a number for each column"),
            ("lat,x\n60,1\n", "p.csv:1: `lat,x`: must have x and y, or lat and lon"),
            ("x,y,lat,lon\n", "p.csv:1: `x,y,lat,lon`: must have x and y, or"),
            ("x,x_m\n", "p.csv:1: column `x_m`: its value has a column already"),
            ("feet,yards\n1,2\n", "p.csv:1: column `feet`: must be x, y, z in metres"),
            ("1,2\nx,y\n", "p.csv:2: `x,y`: must be x,y or x,y,z in metres"),
            ("1,nan\n", "p.csv:1: position NaN: must be within 1e7 m"),
            ("1,-2e7\n", "p.csv:1: position -2e7: must be within 1e7 m"),
        ] {
            let error = places(text).unwrap_err();
            assert!(error.starts_with(message), "{error}");
        }
    }
}
