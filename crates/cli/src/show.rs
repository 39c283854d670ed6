//! Output: JSON, tables and numbers.

use crate::failure::{Failure, Kind};
use ncmesh_console::schema::{Field, Unit, Values};
use serde::Serialize;
use std::fmt;
use std::io::{self, Write};
use std::ops::Range;

/// Form of a command's output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Tables and lines for people; progress on standard error.
    Text,
    /// One JSON document at the end, and no progress.
    Json,
    /// A line of JSON for each step, and one for the result.
    JsonLines,
}

impl Form {
    /// Returns the form that `--json` and `--json-stream` ask for.
    pub(crate) fn of(json: bool, json_stream: bool) -> Self {
        match (json, json_stream) {
            (_, true) => Self::JsonLines,
            (true, false) => Self::Json,
            (false, false) => Self::Text,
        }
    }
}

/// Prints one JSON document on standard output.
pub(crate) fn json(value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value)
        .map_err(|e| Failure::new(Kind::Other, e.to_string()))?;
    line(&text)
}

/// Prints one JSON document as one of many lines. Returns whether the reader is still there.
pub(crate) fn json_line(value: &impl Serialize) -> Result<bool, Failure> {
    let text =
        serde_json::to_string(value).map_err(|e| Failure::new(Kind::Other, e.to_string()))?;
    endless_line(&text)
}

/// Prints a line on standard output. A reader that has closed the pipe (`| head`) is no error.
pub(crate) fn line(text: &str) -> Result<(), Failure> {
    endless_line(text).map(drop)
}

/// Prints one of many lines on standard output. Returns whether the reader is still there.
pub(crate) fn endless_line(text: &str) -> Result<bool, Failure> {
    // Flushed at once, so that a program that reads lines gets each when it is there.
    let mut out = io::stdout();
    match writeln!(out, "{text}").and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(e) => Err(Failure::new(Kind::Other, format!("standard output cannot be written: {e}"))),
    }
}

/// Prints a line on standard error. Errors are ignored: there is nowhere else to report.
pub(crate) fn note(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}

/// Text in place of what is not known.
const DASH: &str = "-";

/// Returns the text, or a dash for none.
pub(crate) fn or_dash(text: Option<String>) -> String {
    text.unwrap_or_else(|| DASH.into())
}

/// Returns a number of bytes with a unit.
pub(crate) fn bytes(n: u64) -> String {
    Unit::Bytes.show(n as f64)
}

/// Returns a duration in its two largest units.
pub(crate) fn duration(seconds: f64) -> String {
    let s = seconds as u64;
    match (s / 86_400, s / 3600 % 24, s / 60 % 60, s % 60) {
        (0, 0, 0, s) => format!("{s} s"),
        (0, 0, m, s) => format!("{m} min {s} s"),
        (0, h, m, _) => format!("{h} h {m} min"),
        (d, h, ..) => format!("{d} d {h} h"),
    }
}

/// Table whose columns are as wide as their contents.
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
    /// Columns for values of a state, which are left out where no row has one.
    values: Range<usize>,
}

impl Table {
    /// Returns a table with these columns and no rows.
    pub(crate) fn new<'a>(head: impl IntoIterator<Item = &'a str>) -> Self {
        Self { rows: vec![head.into_iter().map(Into::into).collect()], values: 0..0 }
    }

    /// Adds columns for values of a state. Those that no row knows are not shown.
    pub(crate) fn columns(&mut self, fields: impl IntoIterator<Item = &'static Field>) {
        let head = &mut self.rows[0];
        let before = head.len();
        head.extend(fields.into_iter().map(Field::heading));
        self.values = before..head.len();
    }

    /// Adds a column at the end.
    pub(crate) fn column(&mut self, heading: &str) {
        self.rows[0].push(heading.to_owned());
    }

    /// Adds a row.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }
}

/// Returns the values of a state as cells of a table, with a dash for each that is unknown.
pub(crate) fn cells<V: Values>(values: &V) -> impl Iterator<Item = String> {
    let all = V::FIELDS.iter().zip(values.known());
    all.map(|(field, value)| or_dash(value.map(|value| field.unit.show(value))))
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Widths count characters. Formatting pads by characters as well.
        let cells = |i: usize| self.rows.iter().filter_map(move |row| row.get(i));
        let is_shown =
            |i: &usize| !self.values.contains(i) || cells(*i).skip(1).any(|cell| cell != DASH);
        let shown: Vec<usize> = (0..self.rows[0].len()).filter(is_shown).collect();
        let width = |i: usize| cells(i).map(|cell| cell.chars().count()).max().unwrap_or(0);
        for (n, row) in self.rows.iter().enumerate() {
            let cells = shown.iter().map(|i| format!("{:1$}", row[*i], width(*i)));
            let line = cells.collect::<Vec<_>>().join("  ");
            write!(f, "{}{}", if n > 0 { "\n" } else { "" }, line.trim_end())?;
        }

        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ncmesh_console::schema::PeerValues;

    #[test]
    fn tables_line_up() {
        let mut table = Table::new(["A", "LONG"]);
        table.row(["wide".into(), "é".into()]);
        assert_eq!(table.to_string(), "A     LONG\nwide  é");
    }

    #[test]
    fn values_that_no_row_knows_have_no_column() {
        let mut table = Table::new(["NAME"]);
        table.columns(PeerValues::FIELDS);
        let near = PeerValues { delivery_from: Some(0.5), ..PeerValues::default() };
        for values in [near, PeerValues::default()] {
            table.row(["n".to_owned()].into_iter().chain(cells(&values)));
        }
        assert_eq!(table.to_string(), "NAME  IN\nn     50 %\nn     -");
    }

    #[test]
    fn durations_are_for_people() {
        let shown = [0.4, 61.0, 3600.0, 90_000.0].map(duration);
        assert_eq!(shown, ["0 s", "1 min 1 s", "1 h 0 min", "1 d 1 h"]);
    }
}
