//! Runs of scenarios in virtual time.

use crate::signals::Signals;
use crate::{ScenarioError, UnreachableError};
use crate::{plain, planned};
use ncmesh_engine::registry::AUTO;
use ncmesh_engine::time::Duration;
use ncmesh_engines::BUILT_IN;
use ncmesh_sim::scenario::{Node, Scenario};
use ncmesh_sim::{Knowledge, RunError, Simulation, SimulationConfig, Step, check_traffic, measure};
use numpy::PyArray2;
use pyo3::exceptions::{PyKeyboardInterrupt, PyOSError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use pythonize::pythonize;
use std::fmt::Display;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// Timeout of runs without a limit: a thousand years of the mesh's clock, s.
const NEVER_S: f64 = 1e3 * 365.0 * 86_400.0;

/// Returns a `ScenarioError`.
fn wrong(what: impl Display) -> PyErr {
    ScenarioError::new_err(what.to_string())
}

/// Checked arguments of a run.
struct Request {
    scenario: Scenario,
    config: SimulationConfig,
    scheme: String,
}

impl Request {
    /// Checks the arguments of a run.
    fn new(
        scenario: &Bound<'_, PyAny>,
        seed: Option<&Bound<'_, PyAny>>,
        scheme: Option<&str>,
        mac: Option<&str>,
        set: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let scenario = read(scenario, seed, mac, set)?;
        let scheme = check_traffic(&scenario, scheme.unwrap_or(AUTO)).map_err(wrong)?;
        let config = SimulationConfig::from_scenario(&scenario).map_err(wrong)?;
        Ok(Self { scenario, config, scheme: scheme.to_string() })
    }
}

/// Reads a scenario from a file or a table and applies the changed settings.
fn read(
    scenario: &Bound<'_, PyAny>,
    seed: Option<&Bound<'_, PyAny>>,
    mac: Option<&str>,
    set: Option<&Bound<'_, PyDict>>,
) -> PyResult<Scenario> {
    // A path or a string names a file. Anything else must be a table.
    let mut scenario = match scenario.extract::<PathBuf>() {
        Ok(path) => Scenario::load(&path),
        Err(_) => Scenario::from_table(&plain::table(scenario, "").map_err(wrong)?, Path::new("")),
    }
    .map_err(wrong)?;

    // Arguments of their own come last, so that they prevail over `set`. All are overrides, and
    // pass the checks of a file.
    let settings = set.map(|set| plain::table(set, "set")).transpose().map_err(wrong)?;
    let settings = settings.unwrap_or_default();
    let mac = mac.map(|mac| ("medium.mac".to_owned(), toml::Value::from(mac)));
    let seed = seed.map(checked_seed).transpose()?;
    let seed = seed.map(|seed| ("seed".to_owned(), toml::Value::from(seed)));
    for (key, value) in settings.into_iter().chain(mac).chain(seed) {
        scenario.set(&format!("{key}={value}")).map_err(wrong)?;
    }
    Ok(scenario)
}

/// Returns the seed as an integer that TOML can express.
fn checked_seed(seed: &Bound<'_, PyAny>) -> PyResult<i64> {
    let number = seed.extract().ok().filter(|seed| *seed >= 0);
    number.ok_or_else(|| wrong(format!("seed {seed}: allowed is a whole number, 0 to 2^63 - 1")))
}

/// Returns the schemes of this build with the service of each, in the registry's order. The first
/// of a service is its default. `planned` is left out: it is nothing without a plan.
#[pyfunction]
pub(crate) fn schemes() -> Vec<(&'static str, &'static str)> {
    BUILT_IN.entries().map(|entry| (entry.name, entry.service().name())).collect()
}

/// Raises an exception if a run has wrong arguments, without simulating.
#[pyfunction]
#[pyo3(signature = (scenario, seed=None, *, scheme=None, mac=None, set=None))]
pub(crate) fn check(
    scenario: &Bound<'_, PyAny>,
    seed: Option<&Bound<'_, PyAny>>,
    scheme: Option<&str>,
    mac: Option<&str>,
    set: Option<&Bound<'_, PyDict>>,
) -> PyResult<()> {
    // Engines check their settings when a node is built.
    let scheme = planned::scheme(scheme, None).map_err(wrong)?;
    let request = Request::new(scenario, seed, scheme, mac, set)?;
    Simulation::new(request.config).map(drop).map_err(wrong)
}

/// Returns the loss matrix that nodes know at the start.
#[pyfunction]
#[pyo3(signature = (scenario, seed=None, *, mac=None, set=None))]
pub(crate) fn loss_matrix<'py>(
    py: Python<'py>,
    scenario: &Bound<'py, PyAny>,
    seed: Option<&Bound<'py, PyAny>>,
    mac: Option<&str>,
    set: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let scenario = read(scenario, seed, mac, set)?;
    let SimulationConfig { medium, knowledge, mtu, .. } =
        SimulationConfig::from_scenario(&scenario).map_err(wrong)?;

    // A measurement by probes simulates minutes, so other threads may run meanwhile.
    let known = py.detach(|| match knowledge {
        Knowledge::Measured(how) => measure(&medium, how),
        Knowledge::Own | Knowledge::Perfect => medium.expected_loss(mtu),
    });

    // A pair without a link loses everything.
    let nodes = scenario.nodes.len();
    let mut loss = vec![vec![1.0; nodes]; nodes];
    for link in known.map_err(wrong)?.links() {
        loss[link.from.0][link.to.0] = link.loss;
    }
    Ok(PyArray2::from_vec2(py, &loss)?)
}

/// Nodes by index: name and position. Links by index: from, to, loss, and the names of the channels
/// that they are on, if there are several.
type Mesh = (Vec<(String, Option<(f64, f64, f64)>)>, Vec<(usize, usize, f64, Vec<String>)>);

/// Returns the nodes of a scenario and its directed links.
#[pyfunction]
#[pyo3(signature = (scenario, seed=None))]
pub(crate) fn mesh(scenario: &Bound<'_, PyAny>, seed: Option<&Bound<'_, PyAny>>) -> PyResult<Mesh> {
    let scenario = read(scenario, seed, None, None)?;
    let channels = scenario.link_channels();
    let links = scenario.loss();
    let links = links.links().map(|link| {
        let ends = (link.from.0, link.to.0);
        (ends.0, ends.1, link.loss, channels.get(&ends).cloned().unwrap_or_default())
    });
    let links = links.collect();
    let position = |node: &Node| node.position.map(|at| (at.x, at.y, at.z));
    let nodes = scenario.nodes.iter().map(|node| (node.name.clone(), position(node))).collect();
    Ok((nodes, links))
}

/// Returns the JSON schema of what `simulate` returns, and of what `ncmesh lab --json` prints.
#[pyfunction]
pub(crate) fn result_schema(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    Ok(pythonize(py, &ncmesh_sim::outcome::schema())?)
}

/// Runs a scenario in virtual time, without the GIL. `progress` is called with the share that is
/// done, 0 to 1, now and then, and `plan` when the source of a file plans; what they raise ends the
/// run.
#[pyfunction]
#[pyo3(signature = (
    scenario, seed=None, *, scheme=None, mac=None, set=None, limit_s=None, progress=None, plan=None
))]
#[allow(clippy::too_many_arguments, reason = "named arguments of Python")]
pub(crate) fn simulate<'py>(
    py: Python<'py>,
    scenario: &Bound<'py, PyAny>,
    seed: Option<&Bound<'py, PyAny>>,
    scheme: Option<&str>,
    mac: Option<&str>,
    set: Option<&Bound<'py, PyDict>>,
    limit_s: Option<&Bound<'py, PyAny>>,
    progress: Option<Py<PyAny>>,
    plan: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let limit = limit_s.map(plain::seconds).transpose()?.unwrap_or(NEVER_S);
    if limit.is_nan() || limit <= 0.0 {
        return Err(wrong(format!("limit_s = {limit}: allowed is above 0")));
    }
    let limit = Duration::from_secs_f64(limit.min(NEVER_S));
    let planner = plan.as_ref().map(|plan| plan.bind(py));
    let scheme = planned::scheme(scheme, planner).map_err(wrong)?;
    let Request { scenario, config, scheme } = Request::new(scenario, seed, scheme, mac, set)?;

    // Without the GIL other threads of Python run, but so do not signal handlers: the run looks for
    // signals itself. The exception of a handler is raised in place of the run's own error.
    let mut signals = Signals::new(progress);
    let look = |step: &Step<'_>| {
        if planned::has_raised() { ControlFlow::Break(()) } else { signals.check(|| step.share()) }
    };
    let run = || ncmesh_sim::run(&scenario, config, &scheme, limit, vec![], look);
    let nodes = scenario.nodes.len();
    let outcome = py.detach(|| planned::with(plan, nodes, run))?;
    signals.raised()?;
    Ok(pythonize(py, &outcome.map_err(failed)?)?)
}

/// Returns the exception for an error of a run.
fn failed(error: RunError) -> PyErr {
    let message = error.to_string();
    match error {
        RunError::Schemes(_)
        | RunError::NoTraffic { .. }
        | RunError::Tcp(_)
        | RunError::TooLong { .. }
        | RunError::Simulation(_) => ScenarioError::new_err(message),
        RunError::Unreachable { .. } => UnreachableError::new_err(message),
        RunError::File(..) | RunError::Observer(_) => PyOSError::new_err(message),
        RunError::Interrupted => PyKeyboardInterrupt::new_err(()),
    }
}
