//! Files of mobility generators: nodes that move while the simulation runs.
//!
//! | key of `[topology]` | format | nodes |
//! | --- | --- | --- |
//! | `bonnmotion` | BonnMotion's `.movements`: a line for each node, triples of time, x, y | n1, n2, ... |
//! | `fcd` | SUMO's floating car data: XML with the position of each vehicle by time | the vehicles' ids |
//! | `ns2` | ns-2's movement files: `set X_` and `setdest` for each node | n1 is `$node_(0)` |
//!
//! The files may be compressed with gzip.
//!
//! A node moves in straight lines between the points of its [`Path`]. It stands at the first until
//! that one's time, and stays at the last. `[medium.propagation]` says how far it is heard.

mod bonnmotion;
mod fcd;
mod ns2;

use super::error::Place;
use super::links::Topology;
use super::path::Path;
use super::reader::add_node;
use super::{Node, Position, ScenarioError};

pub(super) use bonnmotion::read as bonnmotion;
pub(super) use fcd::read as fcd;
pub(super) use ns2::read as ns2;

/// Most points of all paths of a file. The longest file that is read has about as many.
const MAX_POINTS: usize = 4_000_000;

/// Latest time of a point, s.
const LATEST_S: f64 = 1e9;

/// Greatest distance of a point from the origin along an axis, m: that of the medium.
pub(super) const FARTHEST_M: f64 = 1e7;

/// Paths being read.
struct Paths<'a> {
    file: &'a str,
    nodes: Vec<Node>,
    paths: Vec<Path>,
    points: usize,
}

impl<'a> Paths<'a> {
    fn new(file: &'a str) -> Self {
        Self { file, nodes: Vec::new(), paths: Vec::new(), points: 0 }
    }

    fn error(&self, line: usize, message: impl Into<String>) -> ScenarioError {
        ScenarioError::value(Place::line(self.file, line), message)
    }

    /// Adds a node without points. Returns its index.
    fn add(&mut self, name: String, line: usize) -> Result<usize, ScenarioError> {
        let node = Node { name, position: None };
        add_node(&mut self.nodes, node, Place::line(self.file, line))?;
        self.paths.push(Path::default());
        Ok(self.paths.len() - 1)
    }

    /// Adds a point behind those of a node, later than them.
    fn push(
        &mut self,
        node: usize,
        time: f64,
        position: [f64; 3],
        line: usize,
    ) -> Result<(), ScenarioError> {
        self.add_point(node, time, position, line, false)
    }

    /// Adds a point to which a node jumps, at the time of its last one or later.
    fn jump(
        &mut self,
        node: usize,
        time: f64,
        position: [f64; 3],
        line: usize,
    ) -> Result<(), ScenarioError> {
        self.add_point(node, time, position, line, true)
    }

    fn add_point(
        &mut self,
        node: usize,
        time: f64,
        position: [f64; 3],
        line: usize,
        jumps: bool,
    ) -> Result<(), ScenarioError> {
        // Also refuses NaN, which is in no range.
        if !(0.0..=LATEST_S).contains(&time) {
            return Err(self.error(line, format!("time {time}: must be 0 to {LATEST_S:e} s")));
        }
        if let Some(m) = position.iter().find(|m| !(-FARTHEST_M..=FARTHEST_M).contains(*m)) {
            let message = format!("position {m:e}: must be within {FARTHEST_M:e} m of the origin");
            return Err(self.error(line, message));
        }

        // Paths are searched by time, so points come in order. A jump has two at the same time.
        let end = self.paths[node].end();
        if let Some(end) = end.filter(|end| *end > time || (*end == time && !jumps)) {
            let name = &self.nodes[node].name;
            let message = format!("`{name}`: time {time} is not later than {end} before it");
            return Err(self.error(line, message));
        }

        if self.points == MAX_POINTS {
            return Err(self.error(line, format!("more than {MAX_POINTS} points")));
        }

        self.points += 1;
        self.paths[node].0.push((time, position));
        Ok(())
    }

    /// Returns the nodes, each at its first place, and their paths.
    fn finish(mut self) -> Result<Topology, ScenarioError> {
        if self.nodes.is_empty() {
            return Err(ScenarioError::value(Place::file(self.file), "no node moves in this file"));
        }
        for (node, path) in self.nodes.iter_mut().zip(&self.paths) {
            let [x, y, z] = path.at(0.0);
            node.position = Some(Position { x, y, z });
        }
        Ok(Topology { nodes: self.nodes, paths: self.paths, ..Topology::default() })
    }
}

/// Returns the number in a word of a file.
fn number(word: &str) -> Option<f64> {
    word.parse().ok().filter(|number: &f64| number.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the nodes' names and where they are at some times.
    pub(super) fn walk(topology: &Topology, times: &[f64]) -> Vec<(String, Vec<[f64; 3]>)> {
        let nodes = topology.nodes.iter().zip(&topology.paths);
        nodes
            .map(|(node, path)| {
                (node.name.clone(), times.iter().map(|time| path.at(*time)).collect())
            })
            .collect()
    }
}
