//! Nodes placed by a rule (`uniform`, `grid`) or by a file of positions (`positions`).
//!
//! These topologies have nodes and no links: `[medium.propagation]` derives the links from the
//! positions. Nodes are named n1, n2, ..., with zeros in front so that all names have one length.

use ncmesh_engine::rng;
use ncmesh_medium::MAX_RADIOS;
use ncmesh_wire::NodeId;
use serde::Deserialize;
use toml::Spanned;

use super::error::Place;
use super::links::{Topology, lines};
use super::{Node, Position, ScenarioError};

/// Key `uniform`: nodes scattered uniformly over a rectangle.
#[derive(Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Uniform {
    nodes: usize,
    width_m: f64,
    height_m: f64,
}

/// Key `grid`: nodes on a square grid, row by row.
#[derive(Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Grid {
    columns: usize,
    rows: usize,
    spacing_m: f64,
}

/// Scatters nodes at random positions drawn from `seed`.
pub(super) fn uniform(
    uniform: &Spanned<Uniform>,
    seed: u64,
    place: Place,
) -> Result<Topology, ScenarioError> {
    let Uniform { nodes, width_m, height_m } = *uniform.get_ref();
    let lengths = [width_m, height_m];
    if lengths.iter().any(|m| !m.is_finite() || *m < 0.0) || !(1..=MAX_RADIOS).contains(&nodes) {
        let message = format!("uniform: `nodes` must be 1 to {MAX_RADIOS}, lengths 0 or more");
        return Err(ScenarioError::value(place, message));
    }

    // A random stream of its own, so that the placement does not depend on anything else that uses
    // the seed.
    let mut rng = rng::stream(seed, NodeId(0), "scenario", "placement");
    let mut along = |length: f64| rng::unit(&mut rng) * length;
    Ok(named((0..nodes).map(|_| Position { x: along(width_m), y: along(height_m), z: 0.0 })))
}

/// Places nodes on a grid.
pub(super) fn grid(grid: &Spanned<Grid>, place: Place) -> Result<Topology, ScenarioError> {
    let Grid { columns, rows, spacing_m } = *grid.get_ref();
    let nodes = columns.saturating_mul(rows);
    if !(1..=MAX_RADIOS).contains(&nodes) || !spacing_m.is_finite() || spacing_m <= 0.0 {
        let message =
            format!("grid: `columns` times `rows` must be 1 to {MAX_RADIOS}, `spacing_m` above 0");
        return Err(ScenarioError::value(place, message));
    }
    let at = |i: usize| Position {
        x: (i % columns) as f64 * spacing_m,
        y: (i / columns) as f64 * spacing_m,
        z: 0.0,
    };
    Ok(named((0..nodes).map(at)))
}

/// Reads lines of `x,y` or `x,y,z`, in metres. Errors call the file `file`.
pub(super) fn positions(text: &str, file: &str) -> Result<Topology, ScenarioError> {
    let position = |(at, line): (usize, &str)| {
        let fault = || {
            let message = format!("`{line}`: must be x,y or x,y,z in metres");
            ScenarioError::value(Place::line(file, at), message)
        };
        let cells: Result<Vec<f64>, _> = line.split(',').map(|cell| cell.trim().parse()).collect();
        match *cells.map_err(|_| fault())? {
            [x, y] => Ok(Position { x, y, z: 0.0 }),
            [x, y, z] => Ok(Position { x, y, z }),
            _ => Err(fault()),
        }
    };
    let positions: Result<Vec<_>, _> = lines(text).map(position).collect();
    Ok(named(positions?.into_iter()))
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
