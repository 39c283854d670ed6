//! Nodes placed by a rule (`uniform`, `grid`) or by a file of positions (`positions`).
//!
//! These topologies have nodes and no links: `[medium.propagation]` derives the links from the
//! positions. Nodes are named n1, n2, ..., with zeros in front so that all names have one length.

use ncmesh_engine::rng;
use ncmesh_medium::MAX_RADIOS;
use ncmesh_wire::NodeId;

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
