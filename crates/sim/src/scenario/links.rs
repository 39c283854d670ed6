//! Topologies from text files with the loss of each link: a matrix or a list.
//!
//! Empty lines and lines that begin with `#` are skipped.
//!
//! - Matrix: the first line is `from\to,a,b,c` with the names of the nodes; the cell before the
//!   first comma is ignored. Each further line has the name of a node and its losses to all nodes.
//!   An empty cell or `-` means that there is no link.
//! - List: the first line is `from,to,loss`. Each further line is one directed link.

use super::error::Place;
use super::path::Path;
use super::reader::add_node;
use super::{Node, ScenarioError};
use std::collections::BTreeMap;

/// A topology read from a file, in the order of the file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Topology {
    /// The nodes.
    pub nodes: Vec<Node>,
    /// Directed links: from and to, as indices into `nodes`, and the loss, 0 to 1.
    pub links: Vec<(usize, usize, f64)>,
    /// Where each node is at which time, if the nodes move.
    pub paths: Vec<Path>,
    /// Remarks on the file, each one line.
    pub notes: Vec<String>,
}

/// Returns the lines that are neither empty nor comments, with their numbers from 1.
pub(super) fn lines<'a>(text: &'a str) -> impl Iterator<Item = (usize, &'a str)> + use<'a> {
    let numbered = text.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
    numbered.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
}

/// Returns the loss that a cell contains.
fn loss(cell: &str, place: Place) -> Result<f64, ScenarioError> {
    let loss = cell.parse().ok().filter(|loss| (0.0..=1.0).contains(loss));
    loss.ok_or_else(|| {
        ScenarioError::value(place, format!("loss `{cell}`: must be a number from 0 to 1"))
    })
}

/// Reads a loss matrix. Errors call the file `file`.
pub(super) fn matrix(text: &str, file: &str) -> Result<Topology, ScenarioError> {
    let mut lines = lines(text);
    let empty = || ScenarioError::value(Place::file(file), "no line with the nodes' names");
    let (at, header) = lines.next().ok_or_else(empty)?;

    // The header names the nodes, behind the cell in the corner.
    let mut topology = Topology::default();
    let mut columns = BTreeMap::new();
    for (column, name) in header.split(',').enumerate().skip(1) {
        if let Some(first) = columns.insert(name.trim(), column + 1) {
            let message = format!(
                "node `{}` is named twice, in columns {first} and {}",
                name.trim(),
                column + 1
            );
            return Err(ScenarioError::value(Place::line(file, at), message));
        }
        let node = Node { name: name.trim().to_owned(), position: None };
        add_node(&mut topology.nodes, node, Place::line(file, at))?;
    }

    // One row for each of them. A missing last row would otherwise pass as "no links".
    let mut rows = 0;
    for (at, line) in lines {
        matrix_row(&mut topology, rows, line, &Place::line(file, at))?;
        rows += 1;
    }
    let nodes = topology.nodes.len();
    if rows != nodes {
        return Err(ScenarioError::value(
            Place::file(file),
            format!("{rows} rows for {nodes} nodes"),
        ));
    }

    Ok(topology)
}

/// Adds the links of row `row`, whose name must be the one in the first line.
fn matrix_row(
    topology: &mut Topology,
    row: usize,
    line: &str,
    place: &Place,
) -> Result<(), ScenarioError> {
    let fail = |message: String| Err(ScenarioError::value(place.clone(), message));
    let mut cells = line.split(',').map(str::trim);
    let name = cells.next().unwrap_or_default();

    // Rows in another order than columns are usually an editing mistake, so they are refused.
    match topology.nodes.get(row) {
        None => {
            return fail(format!("row `{name}`: there are only {row} nodes in the first line"));
        }
        Some(node) if node.name != name => {
            return fail(format!("row `{name}`: `{}` comes here by the first line", node.name));
        }
        Some(_) => {}
    }

    // One loss for each column. A node has no link to itself, so the diagonal is ignored.
    let cells: Vec<_> = cells.collect();
    if cells.len() != topology.nodes.len() {
        return fail(format!("{} losses for {} nodes", cells.len(), topology.nodes.len()));
    }
    for (to, cell) in cells.into_iter().enumerate().filter(|&(to, _)| to != row) {
        if !cell.is_empty() && cell != "-" {
            topology.links.push((row, to, loss(cell, place.clone())?));
        }
    }
    Ok(())
}

/// Reads a list of links. Errors call the file `file`.
pub(super) fn list(text: &str, file: &str) -> Result<Topology, ScenarioError> {
    let mut lines = lines(text);
    let header = lines.next().map(|(_, line)| line.replace(' ', ""));
    if header.as_deref() != Some("from,to,loss") {
        return Err(ScenarioError::value(
            Place::file(file),
            "must begin with a line `from,to,loss`",
        ));
    }

    // Nodes get their indices in the order in which the list names them first.
    let mut topology = Topology::default();
    let mut indices = BTreeMap::new();
    let mut given = BTreeMap::new();
    for (at, line) in lines {
        let place = Place::line(file, at);
        let cells: Vec<_> = line.split(',').map(str::trim).collect();

        let [from, to, cell] = cells[..] else {
            return Err(ScenarioError::value(
                place,
                format!("{} fields: must be from,to,loss", cells.len()),
            ));
        };

        let mut index = |name: &str| -> Result<usize, ScenarioError> {
            if let Some(&index) = indices.get(name) {
                return Ok(index);
            }
            let node = Node { name: name.to_owned(), position: None };
            add_node(&mut topology.nodes, node, place.clone())?;
            indices.insert(name.to_owned(), topology.nodes.len() - 1);
            Ok(topology.nodes.len() - 1)
        };

        let ends = (index(from)?, index(to)?);
        if let Some(first) = given.insert(ends, at) {
            let message = format!("the link from `{from}` to `{to}` is given on line {first}, too");
            return Err(ScenarioError::value(place, message));
        }
        topology.links.push((ends.0, ends.1, loss(cell, place)?));
    }

    Ok(topology)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_matrix_is_read_by_rows() {
        let topology = matrix("# note\nfrom\\to,a,b\na,,0.25\n\nb,-,0\n", "m.csv").unwrap();
        assert_eq!(topology.links, [(0, 1, 0.25)]);
        assert_eq!(topology.nodes[1].name, "b");
    }

    #[test]
    fn faults_name_their_line() {
        let cases = [
            ("", "m.csv: no line with the nodes' names"),
            (",a,b\na,0,0.5\nc,0.5,0\n", "m.csv:3: row `c`: `b` comes here by the first line"),
            (",a,b\na,0,0.5\n", "m.csv: 1 rows for 2 nodes"),
            (",a,b\na,0,1.5\nb,0,0\n", "m.csv:2: loss `1.5`: must be a number from 0 to 1"),
            (",a,b,a\n", "m.csv:1: node `a` is named twice, in columns 2 and 4"),
            (",a,b\na,0\n", "m.csv:2: 1 losses for 2 nodes"),
            (",a\na,0\nb,0\n", "m.csv:3: row `b`: there are only 1 nodes in the first line"),
        ];
        for (text, message) in cases {
            assert_eq!(matrix(text, "m.csv").unwrap_err().to_string(), message);
        }
        assert_eq!(
            list("a,b\n", "l.csv").unwrap_err().to_string(),
            "l.csv: must begin with a line `from,to,loss`"
        );
        let fields = list("from,to,loss\na,b\n", "l.csv").unwrap_err().to_string();
        assert_eq!(fields, "l.csv:2: 2 fields: must be from,to,loss");
    }

    #[test]
    fn a_list_numbers_nodes_as_they_come() {
        let topology = list("from,to,loss\nb,a,0.5\na,b,nan\n", "l.csv");
        assert!(topology.unwrap_err().to_string().starts_with("l.csv:3: loss `nan`"));
        let twice = list("from,to,loss\na,b,0.1\nb,a,0.1\n\na,b,0.1\n", "l.csv").unwrap_err();
        let message = "l.csv:5: the link from `a` to `b` is given on line 2, too";
        assert_eq!(twice.to_string(), message);
        let topology = list("from, to, loss\nb, a, 0.5\nb,c,1\n", "l.csv").unwrap();
        assert_eq!(topology.links, [(0, 1, 0.5), (0, 2, 1.0)]);
    }
}
