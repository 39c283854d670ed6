//! ns-2's movement files, as `setdest` of CMU and BonnMotion's `NSFile` write them:
//!
//! ```text
//! $node_(0) set X_ 150.0
//! $ns_ at 50.0 "$node_(0) setdest 369.4 170.5 3.3"
//! ```
//!
//! From its place at that time a node moves to the destination with that speed, m/s. A later
//! `setdest` takes effect at once, wherever the node is. A `set` at a time puts the node there at
//! once, as SUMO's `traceExporter` writes it. Lines about `$god_` (hop counts), `random-motion` and
//! the start and end of nodes are passed over. Nodes are numbered from 0 or from 1.

use super::super::links::{Topology, lines};
use super::super::path::Path;
use super::{Paths, ScenarioError, number};
use std::collections::BTreeMap;

/// Greatest number of a node.
const MAX_NODE: usize = 65_533;

/// Names of the coordinates.
const AXES: [&str; 3] = ["X_", "Y_", "Z_"];

/// Lines of a file about one node.
#[derive(Default)]
struct Walker {
    start: [f64; 3],
    /// Line that gave each coordinate of the start.
    set: [Option<usize>; 3],
    /// Line of the first mention.
    line: usize,
    orders: Vec<Order>,
}

/// Change of a node's movement.
struct Order {
    time: f64,
    line: usize,
    motion: Motion,
}

#[derive(Clone, Copy)]
enum Motion {
    /// It leaves for a destination with a speed, m/s.
    Go { to: [f64; 2], speed: f64 },
    /// It is elsewhere at once: a coordinate, m.
    Jump { axis: usize, metres: f64 },
}

enum Statement {
    /// A coordinate of a node's first place.
    Set { node: usize, axis: usize, metres: f64 },
    /// A node's movement changes.
    Move { node: usize, time: f64, motion: Motion },
    /// Something that moves no node.
    Other,
}

/// Reads a movement file. Errors call it `file`.
pub(in crate::scenario) fn read(text: &str, file: &str) -> Result<Topology, ScenarioError> {
    let mut paths = Paths::new(file);
    let mut walkers: BTreeMap<usize, Walker> = BTreeMap::new();

    // ns-2 lets orders come in any sequence, so all are read before any node walks.
    for (line, text) in lines(text) {
        let statement = statement(text).ok_or_else(|| {
            let shown: String = text.chars().take(80).collect();
            let allowed = "`$node_(0) set X_ 1.5` and `$ns_ at 2.0 \"$node_(0) setdest 3 4 5\"`";
            paths.error(line, format!("`{shown}`: allowed are {allowed}"))
        })?;

        let (Statement::Set { node, .. } | Statement::Move { node, .. }) = statement else {
            continue;
        };
        let walker = walkers.entry(node).or_insert(Walker { line, ..Walker::default() });

        match statement {
            Statement::Set { node, axis, metres } => {
                if let Some(first) = walker.set[axis].replace(line) {
                    let message =
                        format!("node {node}: `{}` is set on line {first}, too", AXES[axis]);
                    return Err(paths.error(line, message));
                }
                walker.start[axis] = metres;
            }
            Statement::Move { time: 0.0, motion: Motion::Jump { axis, metres }, .. } => {
                walker.start[axis] = metres;
            }
            Statement::Move { time, motion, .. } => {
                walker.orders.push(Order { time, line, motion });
            }
            Statement::Other => {}
        }
    }

    // Nodes are numbered without gaps, or links between them would mean others than in ns-2.
    let width = walkers.len().to_string().len();
    let first = walkers.keys().next().map_or(0, |first| (*first).min(1));
    for (i, (number, walker)) in walkers.iter().enumerate() {
        if i + first != *number {
            let message = format!("there is a node {number} and no node {}", i + first);
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
    orders.sort_by(|a, b| a.time.total_cmp(&b.time));
    paths.push(node, 0.0, walker.start, walker.line)?;
    for Order { time, line, motion } in orders {
        // Where it is now, wherever it was going.
        let here = paths.paths[node].at(*time);
        let Path(points) = &mut paths.paths[node];
        let kept = points.partition_point(|(at, _)| at <= time);
        paths.points -= points.len() - kept;
        points.truncate(kept);

        if paths.paths[node].end() != Some(*time) {
            paths.push(node, *time, here, *line)?;
        }

        match *motion {
            Motion::Go { to: [x, y], speed } => {
                let distance = libm::hypot(x - here[0], y - here[1]);
                if speed > 0.0 && distance > 0.0 {
                    paths.push(node, time + distance / speed, [x, y, here[2]], *line)?;
                }
            }
            Motion::Jump { axis, metres } => {
                let mut there = here;
                there[axis] = metres;
                paths.jump(node, *time, there, *line)?;
            }
        }
    }

    Ok(())
}

/// Returns what a line says; `None` if it is none of the format.
fn statement(line: &str) -> Option<Statement> {
    // Tcl ends commands with `;`, and quotes with braces as well.
    let (line, _) = line.split_once(";#").or(line.split_once("; #")).unwrap_or((line, ""));
    let is_between = |c: char| c.is_whitespace() || matches!(c, '"' | '{' | '}' | ';');
    let words: Vec<&str> = line.split(is_between).filter(|w| !w.is_empty()).collect();

    let axis = |name| AXES.iter().position(|axis| *axis == name);
    match words[..] {
        [god, ..] if god.starts_with("$god_") => Some(Statement::Other),
        [node, "random-motion", _] => numbered(node).map(|_| Statement::Other),
        [node, "set", name, metres] => {
            let axis = axis(name)?;
            Some(Statement::Set { node: numbered(node)?, axis, metres: number(metres)? })
        }

        ["$ns_" | "$ns", "at", time, ref command @ ..] => {
            let time = number(time).filter(|time| *time >= 0.0)?;
            let moves =
                |node, motion| Some(Statement::Move { node: numbered(node)?, time, motion });

            match *command {
                [god, ..] if god.starts_with("$god_") => Some(Statement::Other),
                [node, "on" | "off" | "start" | "stop" | "reset"] => {
                    numbered(node).map(|_| Statement::Other)
                }
                [node, "set", name, metres] => {
                    moves(node, Motion::Jump { axis: axis(name)?, metres: number(metres)? })
                }
                [node, "setdest", x, y, speed] => {
                    let speed = number(speed).filter(|speed| *speed >= 0.0)?;
                    moves(node, Motion::Go { to: [number(x)?, number(y)?], speed })
                }
                _ => None,
            }
        }
        _ => None,
    }
}

/// Returns the number of `$node_(7)`, which scripts also call `$node(7)` and `$n(7)`.
fn numbered(word: &str) -> Option<usize> {
    let arrays = ["$node_(", "$node(", "$n("];
    let number = arrays.iter().find_map(|array| word.strip_prefix(array))?.strip_suffix(')')?;
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

    /// Dialect of SUMO's `traceExporter` and of scripts by hand: nodes from 1, places at times.
    #[test]
    fn other_dialects_are_read() {
        let text = "\
$node_(1) set X_ 0.0;
$node_(1) set Y_ 10.0 ;# beside the road
$node_(1) random-motion 0
$ns_ at 0.0 \"$node_(2) set X_ 7.0\"
$ns_ at 0.0 {$node_(2) setdest 17.0 0.0 1.0}
$ns at 4.0 \"$node_(2) set X_ 100.0\"
$ns at 4.0 \"$node_(2) set Y_ 50.0\"
$ns at 4.0 \"$node_(2) setdest 110.0 50.0 1.0\"
$ns_ at 9.0 \"$node_(1) reset\";
";
        let walked = walk(&read(text, "t").unwrap(), &[0.0, 3.0, 3.999, 4.0, 6.0, 99.0]);
        assert_eq!(walked[0], ("n1".to_owned(), vec![[0.0, 10.0, 0.0]; 6]));
        let x: Vec<i64> = walked[1].1.iter().map(|[x, ..]| x.round() as i64).collect();
        let y: Vec<i64> = walked[1].1.iter().map(|[_, y, _]| y.round() as i64).collect();
        assert_eq!((x, y), (vec![7, 10, 11, 100, 102, 110], vec![0, 0, 0, 50, 50, 50]));
        assert_eq!(walked[1].0, "n2");
    }

    #[test]
    fn errors_name_the_line_and_what_is_allowed() {
        for (text, message) in [
            ("# nothing\n", "t: no node moves"),
            ("puts hello\n", "t:1: `puts hello`: allowed are"),
            ("$node_(0) set X_ 1\n$node_(2) set X_ 1\n", "t:2: there is a node 2 and no node 1"),
            ("$node_(1) set X_ 1\n$node_(3) set X_ 1\n", "t:2: there is a node 3 and no node 2"),
            ("$node_(2) set X_ 1\n", "t:1: there is a node 2 and no node 1"),
            ("$node_(0) set X_ 1\n\n$node_(0) set X_ 2", "t:3: node 0: `X_` is set on line 1"),
            ("$ns_ at 1 \"$node_(0) explode\"\n", "t:1:"),
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
