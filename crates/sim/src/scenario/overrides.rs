//! Overrides of the form `key=value`.
//!
//! An override changes the table that the scenario was read from. The table is then written as
//! TOML and read like a file, so an override passes every check that a file passes.

use ncmesh_engine::settings::parse;
use toml::{Table, Value};

use super::reader::Original;
use super::{Scenario, ScenarioError, read};

/// Returns the scenario with `assignment` applied.
pub(super) fn with(original: &Original, assignment: &str) -> Result<Scenario, ScenarioError> {
    let fail =
        |message: String| ScenarioError::Override { assignment: assignment.to_owned(), message };
    let (key, text) = assignment
        .split_once('=')
        .ok_or_else(|| fail("must read key=value, such as medium.bit_rate=2M".into()))?;

    let mut table = original.table.clone();
    put(&mut table, key.trim(), text.trim()).map_err(fail)?;

    // The user did not write this text, so the line numbers of an error would mean nothing to them.
    let written = toml::to_string(&table).map_err(|error| fail(error.to_string()))?;
    let made = read::scenario(&written, &original.origin, &original.directory);
    made.map_err(|error| fail(error.into_message()))
}

/// Sets the value at a dotted key and creates the tables on its path.
fn put(table: &mut Table, key: &str, text: &str) -> Result<(), String> {
    // Bare keys only: a quoted key could contain a dot.
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let mut parts: Vec<_> = key.split('.').collect();
    if parts.iter().any(|part| part.is_empty() || !part.chars().all(plain)) {
        return Err(format!("`{key}` is no key: names joined by dots, such as medium.bit_rate"));
    }

    // Walk down to the table of the last part. A table that is absent is created, so that an
    // override can add a section.
    let last = parts.pop().unwrap_or_default();
    let mut place = table;
    for part in parts {
        let entry = place.entry(part).or_insert_with(|| Value::Table(Table::new()));
        place = entry.as_table_mut().ok_or_else(|| format!("`{part}` is not a table"))?;
    }

    // The value that is there tells the type: text stays text, even if it looks like a number.
    let value = value(text, place.get(last));
    place.insert(last.to_owned(), value);
    Ok(())
}

/// Reads `text` as one TOML value, or else as plain text. If the present value `now` is a list,
/// the result is a list too: text that is not a TOML list is split at commas.
fn value(text: &str, now: Option<&Value>) -> Value {
    // Text with a line break could define further keys, so anything but one value is plain text.
    let parsed = parse::<Table>(&format!("value = {text}")).ok();
    let parsed =
        parsed.filter(|table| table.len() == 1).and_then(|mut table| table.remove("value"));
    match (parsed, now) {
        (Some(value @ Value::Array(_)), _) => value,
        (_, Some(Value::Array(_))) => Value::Array(
            text.split(',').map(|part| Value::String(part.trim().to_owned())).collect(),
        ),
        (Some(value), _) => value,
        (None, _) => Value::String(text.to_owned()),
    }
}
