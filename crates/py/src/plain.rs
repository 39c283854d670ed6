//! Values of Python as values of TOML: settings and whole scenarios.
//!
//! Scalars of NumPy count as the plain numbers they hold, arrays and tuples as lists, paths as
//! text. Everything else is an error that names the key.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyFloat, PyInt, PyMapping, PySequence, PyString};
use std::path::PathBuf;
use toml::{Table, Value};

/// Deepest nesting of tables and lists. A scenario needs six; a list that holds itself never ends.
const DEEPEST: usize = 32;

/// Returns the table of a mapping. `key` is its own key in errors, empty for a whole scenario.
pub(crate) fn table(of: &Bound<'_, PyAny>, key: &str) -> Result<Table, String> {
    match value(of, key, 0)? {
        Value::Table(table) => Ok(table),
        other => Err(format!("{}: allowed is a dict, not {}", named(key), other.type_str())),
    }
}

/// Returns the value of an object at `key`, at `depth` below the argument.
fn value(of: &Bound<'_, PyAny>, key: &str, depth: usize) -> Result<Value, String> {
    let key_or_all = named(key);
    let failed = |error: PyErr| format!("{key_or_all}: {error}");
    let kind = || of.get_type().name().map_or_else(|_| "object".to_owned(), |n| n.to_string());
    if depth > DEEPEST {
        return Err(format!("{key_or_all}: nested more than {DEEPEST} deep"));
    }

    // A bool is an int too, so it is asked for first.
    if let Ok(truth) = of.cast::<PyBool>() {
        return Ok(Value::Boolean(truth.is_true()));
    }
    if of.is_instance_of::<PyInt>() {
        let number = of.extract::<i64>();
        let wrong = |_| format!("{key_or_all} = {of}: allowed are whole numbers of 64 bits");
        return number.map(Value::Integer).map_err(wrong);
    }

    if of.is_instance_of::<PyFloat>() {
        return of.extract().map(Value::Float).map_err(failed);
    }
    if of.is_instance_of::<PyString>() {
        return of.extract().map(Value::String).map_err(failed);
    }
    if let Ok(mapping) = of.cast::<PyMapping>() {
        let mut table = Table::new();
        for item in mapping.items().map_err(failed)? {
            let (name, inner): (Bound<'_, PyAny>, Bound<'_, PyAny>) =
                item.extract().map_err(failed)?;
            let name: String =
                name.extract().map_err(|_| format!("{key_or_all}: a key is text, not {name}"))?;
            let path = if key.is_empty() { name.clone() } else { format!("{key}.{name}") };
            table.insert(name, value(&inner, &path, depth + 1)?);
        }

        return Ok(Value::Table(table));
    }

    // NumPy's scalars and arrays both have `tolist()`, which returns plain numbers.
    if let Ok(plain) = of.call_method0("tolist") {
        return value(&plain, key, depth + 1);
    }
    let is_bytes = of.is_instance_of::<PyBytes>();
    if let (Ok(sequence), false) = (of.cast::<PySequence>(), is_bytes) {
        let items = sequence
            .try_iter()
            .map_err(failed)?
            .enumerate()
            .map(|(i, item)| value(&item.map_err(failed)?, &format!("{key}[{i}]"), depth + 1));
        return Ok(Value::Array(items.collect::<Result<_, _>>()?));
    }

    if let (Ok(path), false) = (of.extract::<PathBuf>(), is_bytes) {
        let text = path.to_str().ok_or_else(|| format!("{key_or_all}: a path of valid text"))?;
        return Ok(Value::String(text.to_owned()));
    }

    if of.is_none() {
        return Err(format!("{key_or_all}: None; leave the key out for its default"));
    }
    Err(format!(
        "{key_or_all}: {} is no setting; allowed are numbers, text, True, False, lists and dicts",
        kind()
    ))
}

/// Returns how errors call the value at `key`.
fn named(key: &str) -> &str {
    if key.is_empty() { "scenario" } else { key }
}

/// Returns a time limit in seconds, of Python's or NumPy's numbers.
pub(crate) fn seconds(of: &Bound<'_, PyAny>) -> PyResult<f64> {
    let is_number = !of.is_instance_of::<PyBool>() && !of.is_instance_of::<PyString>();
    of.extract::<f64>().ok().filter(|_| is_number).ok_or_else(|| {
        PyTypeError::new_err(format!("limit_s = {of}: allowed is a number of seconds above 0"))
    })
}
