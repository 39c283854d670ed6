//! Trials of two flows that cross at a relay.

use crate::signals::Signals;
use ncmesh_papers_cross::{Cross, Field, Scheme, Until};
use numpy::PyArray1;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

fn wrong(message: impl Into<String>) -> PyErr {
    PyValueError::new_err(message.into())
}

fn scheme(name: &str) -> PyResult<Scheme> {
    let found = Scheme::ALL.into_iter().find(|scheme| scheme.name() == name);
    let names = || Scheme::ALL.map(Scheme::name).join(", ");
    found.ok_or_else(|| wrong(format!("no scheme is called {name:?}: there are {}", names())))
}

fn field(name: &str) -> PyResult<Field> {
    match name {
        "gf2" => Ok(Field::Gf2),
        "gf16" => Ok(Field::Gf16),
        "gf256" => Ok(Field::Gf256),
        _ => Err(wrong(format!("no field is called {name:?}: there are gf2, gf16, gf256"))),
    }
}

fn until(name: &str) -> PyResult<Until> {
    match name {
        "both" => Ok(Until::Both),
        "one" => Ok(Until::One),
        _ => Err(wrong(format!("until = {name:?}: allowed is both, one"))),
    }
}

/// Returns the transmissions of each trial; infinity for a trial that does not end.
#[pyfunction]
#[allow(clippy::too_many_arguments)] // Python gives them names.
pub(crate) fn cross_transmissions<'py>(
    py: Python<'py>,
    scheme: &str,
    e_x: f64,
    e_oh: f64,
    generation: usize,
    field: &str,
    until: &str,
    trials: u64,
    seed: u64,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let cross = Cross::new(self::scheme(scheme)?, e_x, e_oh, generation, self::field(field)?)
        .map_err(|e| wrong(e.to_string()))?;
    let until = self::until(until)?;

    // A signal between two trials ends them all. Other threads of Python run meanwhile.
    let mut signals = Signals::new();
    let counts: Vec<f64> = py.detach(|| {
        (0..trials)
            .take_while(|_| signals.poll().is_continue())
            .map(|trial| {
                cross.transmissions(until, seed, trial).map_or(f64::INFINITY, |n| n as f64)
            })
            .collect()
    });

    signals.into_result()?;
    Ok(PyArray1::from_vec(py, counts))
}
