//! SUMO's floating car data (`sumo --fcd-output`): the position of every vehicle and person at
//! every time step, in metres of the network. With `--fcd-output.geo` they would be degrees, which
//! are not read.
//!
//! ```text
//! <fcd-export>
//!   <timestep time="0.00">
//!     <vehicle id="bus" x="10.0" y="4.8" z="0.0" angle="90" speed="13.9" .../>
//!   </timestep>
//! </fcd-export>
//! ```

use super::super::error::Place;
use super::super::links::Topology;
use super::super::netjson::name;
use super::{Paths, ScenarioError, number};
use roxmltree::{Document, Node, ParsingOptions};
use std::collections::BTreeMap;

/// Reads floating car data. Errors call the file `file`.
pub(in crate::scenario) fn read(text: &str, file: &str) -> Result<Topology, ScenarioError> {
    // Nothing is expanded: a document type is refused.
    let options = ParsingOptions { allow_dtd: false, ..ParsingOptions::default() };
    let document = Document::parse_with_options(text, options).map_err(|error| {
        let place = Place::line(file, error.pos().row as usize);
        ScenarioError::Syntax { place, message: format!("no XML: {error}") }
    })?;
    // Elements come in the order of the text, so lines are counted once.
    let mut line = 1;
    let mut counted = 0;
    let mut line_of = |node: &Node<'_, '_>| {
        let start = node.range().start;
        line += text.as_bytes()[counted..start].iter().filter(|byte| **byte == b'\n').count();
        counted = start;
        line
    };

    let mut paths = Paths::new(file);
    let root = document.root_element();
    if !root.has_tag_name("fcd-export") {
        let found = root.tag_name().name();
        let message = format!("<{found}>: floating car data of SUMO begin with <fcd-export>");
        return Err(paths.error(line_of(&root), message));
    }
    let mut known: BTreeMap<&str, usize> = BTreeMap::new();
    for step in root.children().filter(|child| child.has_tag_name("timestep")) {
        let line = line_of(&step);
        let Some(time) = step.attribute("time").and_then(number) else {
            return Err(paths.error(line, "a <timestep> needs a `time` in seconds"));
        };
        let movers = ["vehicle", "person"];
        for mover in step.children().filter(|it| movers.iter().any(|tag| it.has_tag_name(*tag))) {
            let line = line_of(&mover);
            let coordinate = |key| mover.attribute(key).and_then(number);
            let (Some(id), Some(x), Some(y)) =
                (mover.attribute("id"), coordinate("x"), coordinate("y"))
            else {
                let tag = mover.tag_name().name();
                let message = format!("a <{tag}> needs `id`, and `x` and `y` in metres");
                return Err(paths.error(line, message));
            };
            let node = match known.get(id) {
                Some(node) => *node,
                None => {
                    let node = paths.add(name(id), line)?;
                    known.insert(id, node);
                    node
                }
            };
            let z = coordinate("z").unwrap_or(0.0);
            paths.push(node, (time, [x, y, z]), line)?;
        }
    }
    paths.finish()
}

#[cfg(test)]
mod tests {
    use super::super::tests::walk;
    use super::read;

    fn steps(inner: &str) -> String {
        format!("<?xml version=\"1.0\"?>\n<fcd-export>\n{inner}\n</fcd-export>\n")
    }

    #[test]
    fn vehicles_stand_until_they_appear_and_after_they_left() {
        let text = steps(
            "<timestep time=\"0.00\"><vehicle id=\"bus 1\" x=\"0\" y=\"4.8\" speed=\"10\"/>\
             </timestep>\n\
             <timestep time=\"1.00\"><vehicle id=\"bus 1\" x=\"10\" y=\"4.8\"/>\
             <person id=\"p\" x=\"-3\" y=\"0\" z=\"2\"/></timestep>\n\
             <timestep time=\"2.00\"><person id=\"p\" x=\"-1\" y=\"0\" z=\"2\"/></timestep>",
        );
        let walked = walk(&read(&text, "cars.xml").unwrap(), &[0.0, 0.5, 1.5, 9.0]);
        let x: Vec<Vec<f64>> =
            walked.iter().map(|(_, path)| path.iter().map(|[x, ..]| *x).collect()).collect();
        assert_eq!(x, [[0.0, 5.0, 10.0, 10.0], [-3.0, -3.0, -2.0, -1.0]]);
        assert_eq!((walked[0].0.as_str(), walked[1].1[0]), ("bus-1", [-3.0, 0.0, 2.0]));
    }

    #[test]
    fn errors_name_the_line_and_what_is_allowed() {
        let vehicle = |attributes: &str| {
            steps(&format!("<timestep time=\"1\">\n<vehicle {attributes}/>\n</timestep>"))
        };
        for (text, message) in [
            ("not XML".to_owned(), "f:1: no XML"),
            ("<a>\n</b>".to_owned(), "f:2: no XML"),
            ("<routes/>".to_owned(), "f:1: <routes>: floating car data"),
            ("<!DOCTYPE a [<!ENTITY b \"c\">]>\n<fcd-export/>".to_owned(), "f:1: no XML"),
            (steps(""), "f: no node moves"),
            (steps("<timestep/>"), "f:3: a <timestep> needs"),
            (vehicle("id=\"a\" x=\"1\""), "f:4: a <vehicle> needs"),
            (vehicle("id=\"a\" x=\"1\" y=\"NaN\""), "f:4: a <vehicle> needs"),
            (vehicle("id=\"\" x=\"1\" y=\"2\""), "f:4: node name"),
            (
                steps(
                    &"<timestep time=\"2\"><vehicle id=\"a\" x=\"1\" y=\"1\"/></timestep>\n"
                        .repeat(2),
                ),
                "f:4: `a`: time 2 is not later",
            ),
        ] {
            let error = read(&text, "f").unwrap_err().to_string();
            assert!(error.starts_with(message), "{error}");
        }
    }
}
