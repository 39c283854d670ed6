//! ns-2's movement files, as `setdest` of CMU and BonnMotion's `NSFile` write them:
//!
//! ```text
//! $node_(0) set X_ 150.0
//! $ns_ at 50.0 "$node_(0) setdest 369.4 170.5 3.3"
//! ```
//!
//! From its place at that time a node moves to the destination with that speed, m/s. A later
//! `setdest` takes effect at once, wherever the node is. Lines about `$god_` (hop counts) are
//! passed over.

use super::super::links::{Topology, lines};
use super::super::path::Path;
use super::{Paths, ScenarioError, number};
use std::collections::BTreeMap;

/// Greatest number of a node.
const MAX_NODE: usize = 65_533;

/// Lines of a file about one node.
#[derive(Default)]
struct Walker {
    start: [f64; 3],
    /// Line of the first mention.
    line: usize,
    /// Time, destination, speed and line of each `setdest`.
    orders: Vec<(f64, [f64; 2], f64, usize)>,
}

enum Statement {
    /// A coordinate of a node's first place: node, axis, m.
    Set(usize, usize, f64),
    /// A node leaves for a destination: time, node, destination, speed.
    Go(f64, usize, [f64; 2], f64),
    /// Something that moves no node.
    Other,
}

/// Reads a movement file. Errors call it `file`.
pub(in crate::scenario) fn read(text: &str, file: &str) -> Result<Topology, ScenarioError> {
    let mut paths = Paths::new(file);
    let mut walkers: BTreeMap<usize, Walker> = BTreeMap::new();
    for (line, text) in lines(text) {
        let statement = statement(text).ok_or_else(|| {
            let shown: String = text.chars().take(80).collect();
            let allowed = "`$node_(0) set X_ 1.5` and `$ns_ at 2.0 \"$node_(0) setdest 3 4 5\"`";
            paths.error(line, format!("`{shown}`: allowed are {allowed}"))
        })?;
        let (Statement::Set(node, ..) | Statement::Go(_, node, ..)) = statement else { continue };
        let walker = walkers.entry(node).or_insert(Walker { line, ..Walker::default() });
        match statement {
            Statement::Set(_, axis, metres) => walker.start[axis] = metres,
            Statement::Go(time, _, to, speed) => walker.orders.push((time, to, speed, line)),
            Statement::Other => {}
        }
    }

    // Nodes are numbered without gaps, or links between them would mean others than in ns-2.
    let width = walkers.len().to_string().len();
    for (i, (number, walker)) in walkers.iter().enumerate() {
        if i != *number {
            let message = format!("there is a node {number} and no node {i}");
            return Err(paths.error(walker.line, message));
        }
        let node = paths.add(format!("n{:0width$}", i + 1), walker.line)?;
        walk(walker, node, &mut paths)?;
    }
    paths.finish()
}

/// Adds the points of a node.
fn walk(walker: &Walker, node: usize, paths: &mut Paths<'_>) -> Result<(), ScenarioError> {
    let mut orders: Vec<_> = walker.orders.iter().collect();
    orders.sort_by(|a, b| a.0.total_cmp(&b.0));
    paths.push(node, (0.0, walker.start), walker.line)?;
    for &(time, [x, y], speed, line) in orders {
        // Where it is now, wherever it was going.
        let here = paths.paths[node].at(time);
        let Path(points) = &mut paths.paths[node];
        let kept = points.partition_point(|(at, _)| *at < time);
        paths.points -= points.len() - kept;
        points.truncate(kept);
        paths.push(node, (time, here), line)?;
        let there = [x, y, here[2]];
        let distance = libm::hypot(x - here[0], y - here[1]);
        if speed > 0.0 && distance > 0.0 {
            paths.push(node, (time + distance / speed, there), line)?;
        }
    }
    Ok(())
}

/// Returns what a line says; `None` if it is none of the format.
fn statement(line: &str) -> Option<Statement> {
    let words: Vec<&str> =
        line.split(|c: char| c.is_whitespace() || c == '"').filter(|w| !w.is_empty()).collect();
    match words[..] {
        [god, ..] if god.starts_with("$god_") => Some(Statement::Other),
        ["$ns_", "at", time, god, ..] if god.starts_with("$god_") => {
            number(time).map(|_| Statement::Other)
        }
        [node, "set", axis, metres] => {
            let axis = ["X_", "Y_", "Z_"].iter().position(|name| *name == axis)?;
            Some(Statement::Set(numbered(node)?, axis, number(metres)?))
        }
        ["$ns_", "at", time, node, "setdest", x, y, speed] => {
            let time = number(time).filter(|time| *time >= 0.0)?;
            let speed = number(speed).filter(|speed| *speed >= 0.0)?;
            Some(Statement::Go(time, numbered(node)?, [number(x)?, number(y)?], speed))
        }
        _ => None,
    }
}

/// Returns the number of `$node_(7)`.
fn numbered(word: &str) -> Option<usize> {
    let number = word.strip_prefix("$node_(")?.strip_suffix(')')?;
    number.parse().ok().filter(|number| *number <= MAX_NODE)
}

#[cfg(test)]
mod tests {
    use super::super::tests::walk;
    use super::read;

    const FILE: &str = "\
# nodes: 2
$node_(0) set X_ 0.0
$node_(0) set Y_ 10.0
$node_(0) set Z_ 0.0
$node_(1) set X_ 100.0
$node_(1) set Y_ 10.0
$god_ set-dist 0 1 1
$ns_ at 10.0 \"$node_(0) setdest 100.0 10.0 5.0\"
$ns_ at 20.0 \"$node_(0) setdest 50.0 110.0 10.0\"
$ns_ at 12.0 \"$god_ set-dist 0 1 2\"
$ns_ at 12.0 \"$node_(1) setdest 1.0 1.0 0.0\"
";

    #[test]
    fn a_later_order_replaces_one_under_way() {
        let topology = read(FILE, "walk.tcl").unwrap();
        let walked = walk(&topology, &[0.0, 10.0, 16.0, 20.0, 25.0, 30.0, 99.0]);
        let (name, first) = &walked[0];
        let xy: Vec<_> = first.iter().map(|[x, y, _]| (*x, *y)).collect();
        let expected = [
            (0.0, 10.0),
            (0.0, 10.0),
            (30.0, 10.0),
            (50.0, 10.0),
            (50.0, 60.0),
            (50.0, 110.0),
            (50.0, 110.0),
        ];
        assert_eq!((name.as_str(), xy), ("n1", expected.to_vec()));
        assert_eq!(walked[1].1, [[100.0, 10.0, 0.0]; 7]);
    }

    #[test]
    fn errors_name_the_line_and_what_is_allowed() {
        for (text, message) in [
            ("# nothing\n", "t: no node moves"),
            ("puts hello\n", "t:1: `puts hello`: allowed are"),
            ("$node_(0) set X_ 1\n$node_(2) set X_ 1\n", "t:2: there is a node 2 and no node 1"),
            ("$node_(99999) set X_ 1\n", "t:1: `$node_(99999)"),
            ("$node_(0) set W_ 1\n", "t:1:"),
            ("$ns_ at x \"$node_(0) setdest 1 2 3\"\n", "t:1:"),
            ("$ns_ at 1 \"$node_(0) setdest 1 2 -3\"\n", "t:1:"),
            ("$ns_ at 1 \"$node_(0) setdest 1e300 2 1e-300\"\n", "t:1: time inf"),
        ] {
            let error = read(text, "t").unwrap_err().to_string();
            assert!(error.starts_with(message), "{error}");
        }
    }
}
