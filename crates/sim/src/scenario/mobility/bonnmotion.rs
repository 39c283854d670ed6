//! BonnMotion's movement files (Aschenbruck et al., SIMUTools 2010): a line for each node, with
//! triples of time (s), x and y (m). Lines that begin with `#` are comments. Files in three
//! dimensions have four numbers for each point; the number of the dimensions is not in them, so
//! they cannot be told from others and are not read.

use super::super::links::{Topology, lines};
use super::{Paths, ScenarioError, number};

/// Reads a movement file. Errors call it `file`.
pub(in crate::scenario) fn read(text: &str, file: &str) -> Result<Topology, ScenarioError> {
    // Names have the digits of the largest number, so that they sort as the lines do.
    let mut paths = Paths::new(file);
    let width = lines(text).count().to_string().len();
    for (i, (line, text)) in lines(text).enumerate() {
        let node = paths.add(format!("n{:0width$}", i + 1), line)?;

        let words: Vec<&str> = text.split_whitespace().collect();
        if !words.len().is_multiple_of(3) {
            let message = format!(
                "{} numbers: each line is the node's triples of time, x and y (two dimensions)",
                words.len()
            );
            return Err(paths.error(line, message));
        }

        for point in words.chunks_exact(3) {
            let [time, x, y] = [point[0], point[1], point[2]].map(number);
            let (Some(time), Some(x), Some(y)) = (time, x, y) else {
                let message = format!("`{}`: must be time, x and y", point.join(" "));
                return Err(paths.error(line, message));
            };
            // A node that waits has its place twice at the same time when it does not move at all.
            if paths.paths[node].0.last() != Some(&(time, [x, y, 0.0])) {
                paths.push(node, time, [x, y, 0.0], line)?;
            }
        }
    }

    paths.finish()
}

#[cfg(test)]
mod tests {
    use super::super::tests::walk;
    use super::read;

    #[test]
    fn nodes_walk_from_point_to_point() {
        let text = "# made by hand\n0.0 1.0 2.0 10.0 11.0 2.0 20 11 2\n\n0 5 5\n";
        let topology = read(text, "walk.movements").unwrap();
        let walked = walk(&topology, &[0.0, 5.0, 30.0]);
        let expected = [
            ("n1".to_owned(), vec![[1.0, 2.0, 0.0], [6.0, 2.0, 0.0], [11.0, 2.0, 0.0]]),
            ("n2".to_owned(), vec![[5.0, 5.0, 0.0]; 3]),
        ];
        assert_eq!(walked, expected);
    }

    #[test]
    fn errors_name_the_line_and_what_is_allowed() {
        for (text, message) in [
            ("", "m: no node moves in this file"),
            ("0 1 2 3\n", "m:1: 4 numbers"),
            ("#\n0 1 x\n", "m:2: `0 1 x`: must be time, x and y"),
            ("0 1 2 0 3 4\n", "m:1: `n1`: time 0 is not later than 0 before it"),
            ("5 1 2 4 3 4\n", "m:1: `n1`: time 4 is not later than 5"),
            ("-1 1 2\n", "m:1: time -1: must be 0 to"),
            ("0 inf 2\n", "m:1: `0 inf 2`: must be"),
            ("0 1 2 9 -1e308 2\n", "m:1: position -1e308: must be within 1e7 m"),
        ] {
            let error = read(text, "m").unwrap_err().to_string();
            assert!(error.starts_with(message), "{error}");
        }
    }
}
