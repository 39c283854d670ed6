//! The slotted wireline network of multirate multicast, as dictionaries for Python.

use crate::signals::Signals;
use ncmesh_engine::stream::UtilityConfig;
use ncmesh_engine_multirate::{Tree, Utility};
use ncmesh_papers_wireline::{
    Extent, Network, Outcome, QueueOutcome, ReceiverOutcome, Series, SessionOutcome, Setup,
    WirelineError, run,
};
use numpy::{PyArray1, PyArrayMethods};
use pyo3::exceptions::{PyKeyError, PyKeyboardInterrupt, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use pythonize::depythonize;
use serde::de::DeserializeOwned;

fn wrong(what: impl ToString) -> PyErr {
    PyValueError::new_err(what.to_string())
}

/// Reads the list `key` of `network`. An error names the index of the faulty item.
fn items<T: DeserializeOwned>(network: &Bound<'_, PyDict>, key: &str) -> PyResult<Vec<T>> {
    let Some(list) = network.get_item(key)? else { return Ok(Vec::new()) };
    // A key that is missing stands for an empty list.
    let item = |(at, item): (usize, PyResult<Bound<'_, PyAny>>)| {
        depythonize(&item?).map_err(|error| wrong(format!("{key}[{at}]: {error}")))
    };

    let list = list.try_iter().map_err(|_| wrong(format!("{key} = {list}: needed is a list")))?;
    list.enumerate().map(item).collect()
}

fn network(given: &Bound<'_, PyDict>) -> PyResult<Network> {
    // A mistyped key would be a network without that part.
    for key in given.keys() {
        let key: String = key.extract()?;
        if !["links", "sessions", "changes"].contains(&key.as_str()) {
            return Err(wrong(format!("network: no {key}: there are links, sessions, changes")));
        }
    }

    Ok(Network {
        links: items(given, "links")?,
        sessions: items(given, "sessions")?,
        changes: items(given, "changes")?,
    })
}

/// Returns the tree of each session: for each of its links `links`, `parents` (an index into the
/// tree, or `None`) and `receivers` (m); and in `last` the index of the link into each receiver.
#[pyfunction]
pub(crate) fn multirate_trees<'py>(
    py: Python<'py>,
    network: &Bound<'py, PyDict>,
) -> PyResult<Vec<Bound<'py, PyDict>>> {
    let trees = self::network(network)?.trees().map_err(wrong)?;
    trees.into_iter().map(|tree| tree_of(py, tree)).collect()
}

fn tree_of(py: Python<'_>, tree: Tree) -> PyResult<Bound<'_, PyDict>> {
    let of = PyDict::new(py);
    let hops = tree.hops;
    // A table by columns, as Python's arrays like it.
    of.set_item("links", hops.iter().map(|hop| hop.link).collect::<Vec<_>>())?;
    of.set_item("parents", hops.iter().map(|hop| hop.parent).collect::<Vec<_>>())?;
    of.set_item("receivers", hops.iter().map(|hop| hop.receivers).collect::<Vec<_>>())?;

    of.set_item("last", tree.last)?;
    Ok(of)
}

fn utility(given: &Bound<'_, PyAny>) -> PyResult<Utility> {
    let config: UtilityConfig = depythonize(given).map_err(wrong)?;
    Utility::try_from(config).map_err(wrong)
}

/// Returns the utility of a rate.
#[pyfunction]
pub(crate) fn multirate_worth(utility: &Bound<'_, PyAny>, rate: f64) -> PyResult<f64> {
    Ok(self::utility(utility)?.value(rate))
}

/// Weight, xi and alpha.
type Formula = (f64, f64, f64);

/// Returns a utility's steepest slope and, unless it is a table, the `weight`, `xi` and `alpha` of
/// its slope `weight (x + xi)^-alpha`.
#[pyfunction]
pub(crate) fn multirate_utility(utility: &Bound<'_, PyAny>) -> PyResult<(f64, Option<Formula>)> {
    let utility = self::utility(utility)?;
    let formula = utility.formula().map(|slope| (slope.weight, slope.xi, slope.alpha));
    Ok((utility.steepest(), formula))
}

/// Runs a network under a policy. Releases the GIL.
#[pyfunction]
pub(crate) fn multirate_simulate<'py>(
    py: Python<'py>,
    network: &Bound<'py, PyDict>,
    setup: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyDict>> {
    let network = self::network(network)?;
    let setup = self::setup(setup)?;

    // The model polls for signals itself, since handlers of Python do not run meanwhile.
    let mut signals = Signals::new();
    let outcome = py.detach(|| run(&network, &setup, || signals.poll()));
    signals.into_result()?;

    // The exception of a handler comes before the run's own error.
    let outcome = outcome.map_err(|error| match error {
        WirelineError::Interrupted => PyKeyboardInterrupt::new_err(()),
        error => wrong(error),
    })?;

    outcome_of(py, outcome)
}

/// Reads the settings of a run. A setting that is `None` follows from the others.
fn setup(given: &Bound<'_, PyDict>) -> PyResult<Setup> {
    const WHOLE: &str = "a whole number, 0 or more";
    const NUMBER: &str = "a number";
    Ok(Setup {
        policy: setting(given, "policy", "mmt, mmu, mmu_q, mmu_w")?,
        v: setting(given, "V", NUMBER)?,
        d_max: setting(given, "d_max", "a whole number, 0 or more, or None")?,
        epsilon: setting(given, "epsilon", NUMBER)?,
        zeta: setting(given, "zeta", NUMBER)?,
        utilities: setting(given, "utilities", "those of each session's receivers")?,
        slots: setting(given, "slots", WHOLE)?,
        warm_up: setting(given, "warm_up", WHOLE)?,
        seed: setting(given, "seed", WHOLE)?,
        series: setting(given, "series", WHOLE)?,
    })
}

fn setting<T: DeserializeOwned>(
    given: &Bound<'_, PyDict>,
    name: &'static str,
    allowed: &str,
) -> PyResult<T> {
    let value = given.get_item(name)?.ok_or_else(|| PyKeyError::new_err(name))?;
    depythonize(&value).map_err(|_| wrong(format!("{name} = {value}: allowed is {allowed}")))
}

fn outcome_of(py: Python<'_>, outcome: Outcome) -> PyResult<Bound<'_, PyDict>> {
    let of = PyDict::new(py);
    // Parameters and bounds.
    let parameters = PyDict::new(py);
    for explained in outcome.parameters.explained() {
        parameters.set_item(explained.name, (explained.value, explained.why))?;
    }
    of.set_item("parameters", parameters)?;
    let p = &outcome.parameters;
    of.set_item("bounds", (p.q_bound(), p.d_bound(), p.z_bound()))?;

    // By session, by queue, and over time.
    let sessions = outcome.sessions.into_iter().map(|session| session_of(py, session));
    of.set_item("sessions", PyList::new(py, sessions.collect::<PyResult<Vec<_>>>()?)?)?;
    let queues = outcome.queues.into_iter().map(|queue| queue_of(py, queue));
    of.set_item("queues", PyList::new(py, queues.collect::<PyResult<Vec<_>>>()?)?)?;
    of.set_item("series", outcome.series.map(|series| series_of(py, series)).transpose()?)?;
    Ok(of)
}

fn session_of(py: Python<'_>, session: SessionOutcome) -> PyResult<Bound<'_, PyDict>> {
    let of = PyDict::new(py);
    of.set_item("rates", session.rates)?;
    of.set_item("entered", session.entered)?;
    of.set_item("waiting", extent(session.waiting))?;

    let receivers = session.receivers.into_iter().map(|receiver| receiver_of(py, receiver));
    of.set_item("receivers", receivers.collect::<PyResult<Vec<_>>>()?)?;
    Ok(of)
}

fn receiver_of(py: Python<'_>, receiver: ReceiverOutcome) -> PyResult<Bound<'_, PyDict>> {
    let of = PyDict::new(py);
    of.set_item("rates", receiver.rates)?;
    of.set_item("received", receiver.received)?;
    of.set_item("Z", receiver.z.map(extent))?;
    Ok(of)
}

fn queue_of(py: Python<'_>, queue: QueueOutcome) -> PyResult<Bound<'_, PyDict>> {
    let of = PyDict::new(py);
    of.set_item("link", queue.link)?;
    of.set_item("session", queue.session)?;
    of.set_item("receivers", queue.receivers)?;
    of.set_item("Q", extent(queue.q))?;
    of.set_item("D", extent(queue.d))?;
    of.set_item("dropped", queue.dropped)?;
    Ok(of)
}

/// Maximum, mean, end.
fn extent(extent: Extent) -> (f64, f64, f64) {
    (extent.max, extent.mean, extent.end)
}

fn series_of(py: Python<'_>, series: Series) -> PyResult<Bound<'_, PyDict>> {
    let of = PyDict::new(py);
    of.set_item("every", series.every)?;

    let samples = series.samples();
    let Series { q, d, z, received, entered, .. } = series;

    // A track is a table with a row for each sample.
    for (name, track) in
        [("Q", q), ("D", d), ("Z", z), ("received", received), ("entered", entered)]
    {
        let shape = [samples, track.width];
        of.set_item(name, PyArray1::from_vec(py, track.values).reshape(shape)?)?;
    }
    Ok(of)
}
