//! SUMO's floating car data (`sumo --fcd-output`): the position of every vehicle, person and
//! container at every time step, in metres of the network, or in degrees with `--fcd-output.geo`.
//!
//! SUMO begins the file with a comment that has its configuration, which says whether x and y are
//! metres or degrees. Without it, metres are told by places that no degrees can be, or by the
//! speeds. A file that leaves it open is an error.
//!
//! Times are seconds, or `HH:MM:SS` as with `--human-readable-time`, with days in front.
//!
//! ```text
//! <fcd-export>
//!   <timestep time="0.00">
//!     <vehicle id="bus" x="10.0" y="4.8" z="0.0" angle="90" speed="13.9" .../>
//!   </timestep>
//! </fcd-export>
//! ```

use super::super::earth::{Degrees, Plane};
use super::super::error::Place;
use super::super::links::Topology;
use super::super::netjson::name;
use super::{Paths, ScenarioError, number};
use roxmltree::{Document, Node, ParsingOptions};
use std::collections::BTreeMap;

/// Elements that move.
const MOVERS: [&str; 3] = ["vehicle", "person", "container"];

/// Unit of x and y.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Metres,
    /// Longitude and latitude.
    Degrees,
}

/// Returns the unit that the comment before the root states: SUMO's configuration, which names all
/// options that differ from their defaults.
fn stated(document: &Document<'_>) -> Option<Unit> {
    let before = document.root().children().take_while(|node| !node.is_element());
    let comments: Vec<&str> = before.filter_map(|node| node.text()).collect();
    let option = comments.iter().find_map(|text| text.split_once("fcd-output.geo"));

    match option {
        Some((_, value)) => {
            let value = value.split(['"', '\'']).nth(1)?;
            let is_on = ["true", "1", "on", "yes", "x", "t"].contains(&value.trim());
            Some(if is_on { Unit::Degrees } else { Unit::Metres })
        }
        // The option is absent where it has its default: metres.
        None if comments.iter().any(|text| text.to_lowercase().contains("configuration")) => {
            Some(Unit::Metres)
        }
        None => None,
    }
}

/// Returns the unit by the values: some are no degrees, or the way that was driven is as long as
/// the speeds say, m/s, in one of the units.
fn inferred(root: Node<'_, '_>) -> Option<Unit> {
    let mut last: BTreeMap<&str, (f64, [f64; 2])> = BTreeMap::new();
    let mut driven_m = 0.0;
    let mut way = 0.0;

    // Vehicles come and go, so each is followed by its id.
    for step in root.children().filter(|child| child.has_tag_name("timestep")) {
        let time = step.attribute("time").and_then(seconds)?;
        for mover in step.children().filter(|it| MOVERS.iter().any(|tag| it.has_tag_name(*tag))) {
            let of = |key| mover.attribute(key).and_then(number);
            let (Some(id), Some(x), Some(y)) = (mover.attribute("id"), of("x"), of("y")) else {
                continue;
            };

            // No degree is that large.
            if x.abs() > 180.0 || y.abs() > 90.0 {
                return Some(Unit::Metres);
            }

            if let (Some((before, at)), Some(speed)) =
                (last.insert(id, (time, [x, y])), of("speed"))
            {
                driven_m += speed * (time - before);
                way += libm::hypot(x - at[0], y - at[1]);
            }
        }
    }

    // Without any vehicle both units mean the same.
    if last.is_empty() {
        return Some(Unit::Metres);
    }

    // A degree is 111 km, of longitude less; speeds and ways agree but for lane changes.
    let is_way = driven_m > 0.0 && way > 0.0;
    match way / driven_m {
        _ if !is_way => None,
        0.1..=10.0 => Some(Unit::Metres),
        1e-6..=1e-3 => Some(Unit::Degrees),
        _ => None,
    }
}

/// Returns the seconds of a time, which may be `HH:MM:SS` with days in front.
fn seconds(text: &str) -> Option<f64> {
    let parts: Option<Vec<f64>> = text.split(':').map(number).collect();
    match parts?[..] {
        [s] => Some(s),
        [h, m, s] => Some((h * 60.0 + m) * 60.0 + s),
        [d, h, m, s] => Some(((d * 24.0 + h) * 60.0 + m) * 60.0 + s),
        _ => None,
    }
}

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

    // A wrong unit would place all vehicles on one spot, or spread them over continents.
    let Some(unit) = stated(&document).or_else(|| inferred(root)) else {
        let message = "`x` and `y` may be metres or degrees: leave SUMO's comment with its \
                       configuration in the file, or begin it with \
                       `<!-- fcd-output.geo value=\"false\" -->`, or \"true\" for degrees";
        return Err(paths.error(line_of(&root), message));
    };

    let mut plane = Plane::default();
    let mut known: BTreeMap<&str, usize> = BTreeMap::new();
    for step in root.children().filter(|child| child.has_tag_name("timestep")) {
        let line = line_of(&step);
        let Some(time) = step.attribute("time").and_then(seconds) else {
            return Err(paths.error(line, "a <timestep> needs a `time` in seconds"));
        };

        for mover in step.children().filter(|it| MOVERS.iter().any(|tag| it.has_tag_name(*tag))) {
            let line = line_of(&mover);
            let coordinate = |key| mover.attribute(key).and_then(number);
            let (Some(id), Some(x), Some(y)) =
                (mover.attribute("id"), coordinate("x"), coordinate("y"))
            else {
                let tag = mover.tag_name().name();
                let message = format!("a <{tag}> needs `id`, `x` and `y`");
                return Err(paths.error(line, message));
            };

            let [x, y] = match unit {
                Unit::Metres => [x, y],
                Unit::Degrees => plane
                    .metres(Degrees { latitude: y, longitude: x })
                    .map_err(|message| paths.error(line, message))?,
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
            paths.push(node, time, [x, y, z], line)?;
        }
    }

    paths.finish()
}

#[cfg(test)]
mod tests {
    use super::super::tests::walk;
    use super::read;

    fn steps(inner: &str) -> String {
        format!(
            "<?xml version=\"1.0\"?><!-- configuration -->\n<fcd-export>\n{inner}\n</fcd-export>"
        )
    }

    /// Returns where `a` is at the end of a file with a comment, after it drove `way` to the east
    /// in a second at a speed.
    fn end(comment: &str, place: [f64; 2], way: f64, speed: &str) -> Result<f64, String> {
        let [x, y] = place;
        let at = |time: &str, x: f64| {
            let place = format!("x=\"{x}\" y=\"{y}\" {speed}");
            format!("<timestep time=\"{time}\"><vehicle id=\"a\" {place}/></timestep>")
        };
        let steps = at("00:00:59.50", x) + &at("0:00:01:00.5", x + way);
        let text = format!("<?xml version=\"1.0\"?>{comment}<fcd-export>{steps}</fcd-export>");
        let topology = read(&text, "f").map_err(|error| error.to_string())?;
        let walked = walk(&topology, &[59.5, 60.5]);
        Ok((walked[0].1[1][0] - walked[0].1[0][0]).round())
    }

    #[test]
    fn the_file_says_its_unit() {
        let sumo = |option: &str| {
            format!("<!-- generated by SUMO\n<sumoConfiguration>{option}</sumoConfiguration> -->")
        };
        let geo = |value: &str| sumo(&format!("<fcd-output.geo value=\"{value}\"/>"));
        let east = 1e-4;
        for (comment, place, way, speed, metres) in [
            (geo("true"), [13.4, 60.0], east, "", 6.0),
            (geo("1"), [13.4, 60.0], east, "", 6.0),
            (geo("false"), [13.4, 60.0], 8.0, "", 8.0),
            (sumo("<fcd-output value=\"f\"/>"), [13.4, 60.0], 8.0, "", 8.0),
            // No statement: the values tell.
            (String::new(), [130.0, 5_000.0], 8.0, "", 8.0),
            (String::new(), [13.4, 60.0], 8.0, "speed=\"8\"", 8.0),
            (String::new(), [13.4, 60.0], east, "speed=\"5.6\"", 6.0),
        ] {
            assert_eq!(end(&comment, place, way, speed), Ok(metres), "{comment} {place:?} {speed}");
        }
        for speed in ["", "speed=\"0\"", "speed=\"1000\""] {
            let error = end("<!-- by hand -->", [13.4, 60.0], 8.0, speed).unwrap_err();
            assert!(error.starts_with("f:1: `x` and `y` may be metres or degrees"), "{error}");
        }
        let error = end(&geo("true"), [13.4, 91.0], east, "").unwrap_err();
        assert_eq!(error, "f:2: latitude must be -90 to 90, longitude -180 to 180");
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
