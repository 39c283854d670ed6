//! Forwarding plans computed from a matrix of losses. Node `i` of the matrix has the node id `i +
//! 1`.

use ncmesh_engine::topology::{Links, Metric, Topology};
use ncmesh_engine_file::more::{Belts, Prune, largest_threshold};
use ncmesh_engine_file::pacifier::Tree;
use ncmesh_wire::NodeId;
use numpy::{AllowTypeChange, PyArrayLikeDyn, PyUntypedArrayMethods};
use pyo3::exceptions::{PyOverflowError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::collections::BTreeMap;

/// Largest number of nodes that have ids.
const MOST_NODES: usize = 65_534;

/// Returns a `ValueError`.
fn wrong(message: impl Into<String>) -> PyErr {
    PyValueError::new_err(message.into())
}

/// Returns the index of a node.
pub(crate) fn index(node: NodeId) -> usize {
    usize::from(node.0) - 1
}

/// Returns the node with an index, which is less than [`MOST_NODES`].
pub(crate) fn node_id(index: usize) -> NodeId {
    NodeId(index as u16 + 1)
}

/// Converts keys from node ids to indices.
fn by_index<V>(values: BTreeMap<NodeId, V>) -> BTreeMap<usize, V> {
    values.into_iter().map(|(node, value)| (index(node), value)).collect()
}

/// Returns the mesh of an n-by-n matrix of losses: `loss[i][j]` is from i to j.
fn topology(loss: &PyArrayLikeDyn<'_, f64, AllowTypeChange>) -> PyResult<Topology> {
    let n = match *loss.shape() {
        [rows, columns] if rows == columns && (1..=MOST_NODES).contains(&rows) => rows,
        ref shape => {
            let message =
                format!("loss: shape {shape:?}; needed is n by n, n from 1 to {MOST_NODES}");
            return Err(wrong(message));
        }
    };

    // Each node's link state says how well the node hears the others, so links are listed at their
    // far end. The diagonal has no meaning, and may hold anything.
    let mut hears = vec![Links::new(); n];
    for ((from, to), loss) in loss.as_array().indexed_iter().map(|(i, p)| ((i[0], i[1]), *p)) {
        if from == to {
            continue;
        }
        if !(0.0..=1.0).contains(&loss) {
            return Err(wrong(format!("loss[{from}][{to}] = {loss}: allowed is 0 to 1")));
        }
        hears[to].insert(node_id(from), 1.0 - loss);
    }

    Ok(Topology::known(hears))
}

/// Returns the node with an index. `what` says in errors which argument it is.
fn node(of: &Bound<'_, PyAny>, what: &str, nodes: usize) -> PyResult<NodeId> {
    // A negative or huge integer is out of range like any other. An argument that is no integer is
    // Python's own `TypeError`.
    let given = match of.extract::<u16>() {
        Err(error) if !error.is_instance_of::<PyOverflowError>(of.py()) => return Err(error),
        given => given.ok().filter(|i| usize::from(*i) < nodes),
    };

    let message = || format!("{what} {of}: allowed is 0 to {}", nodes - 1);
    given.map(|i| node_id(i.into())).ok_or_else(|| wrong(message()))
}

/// Returns the nodes of a sequence of indices: at least one, none twice, none the source.
fn receivers(of: &Bound<'_, PyAny>, source: NodeId, nodes: usize) -> PyResult<Vec<NodeId>> {
    let mut receivers = Vec::new();
    for item in of.try_iter()? {
        let receiver = node(&item?, "receiver", nodes)?;
        if receiver == source || receivers.contains(&receiver) {
            let at = index(receiver);
            return Err(wrong(format!("receiver {at}: must not be the source, nor named twice")));
        }

        receivers.push(receiver);
    }

    if receivers.is_empty() {
        return Err(wrong("receivers: name one at least"));
    }
    Ok(receivers)
}

/// Checked input of a plan.
struct Task {
    topology: Topology,
    source: NodeId,
    receivers: Vec<NodeId>,
}

impl Task {
    /// Checks the arguments of a plan.
    fn new(
        loss: &PyArrayLikeDyn<'_, f64, AllowTypeChange>,
        source: &Bound<'_, PyAny>,
        receivers: &Bound<'_, PyAny>,
    ) -> PyResult<Self> {
        // The matrix comes first: it says which indices exist.
        let topology = topology(loss)?;
        let nodes = loss.shape()[0];
        let source = node(source, "source", nodes)?;
        Ok(Self { topology, source, receivers: self::receivers(receivers, source, nodes)? })
    }
}

/// Checks that a value is a share.
fn check_share(name: &str, share: f64) -> PyResult<()> {
    if (0.0..=1.0).contains(&share) {
        return Ok(());
    }
    Err(wrong(format!("{name} = {share}: allowed is 0 to 1")))
}

/// Converts node ids to indices.
fn indices(nodes: Vec<NodeId>) -> Vec<usize> {
    nodes.into_iter().map(index).collect()
}

/// Returns the parts that every scheme's plan has.
fn plan_of<'py>(
    py: Python<'py>,
    forwarders: Vec<NodeId>,
    z: BTreeMap<NodeId, f64>,
    tx_credit: BTreeMap<NodeId, f64>,
    unreachable: Vec<NodeId>,
) -> PyResult<Bound<'py, PyDict>> {
    let plan = PyDict::new(py);
    plan.set_item("forwarders", indices(forwarders))?;
    plan.set_item("z", by_index(z))?;
    plan.set_item("tx_credit", by_index(tx_credit))?;
    plan.set_item("unreachable", indices(unreachable))?;
    Ok(plan)
}

/// Returns Pacifier's tree and credits.
#[pyfunction]
pub(crate) fn pacifier_plan<'py>(
    py: Python<'py>,
    loss: PyArrayLikeDyn<'py, f64, AllowTypeChange>,
    source: &Bound<'py, PyAny>,
    receivers: &Bound<'py, PyAny>,
    knob: f64,
) -> PyResult<Bound<'py, PyDict>> {
    check_share("knob", knob)?;
    let Task { topology, source, receivers } = Task::new(&loss, source, receivers)?;

    // Data packets are broadcast without acknowledgments, so only the forward delivery counts.
    let tree = Tree::new(&topology, source, &receivers, knob, Metric::Broadcast);
    let parents = tree.parent.into_iter().map(|(child, parent)| (child, index(parent))).collect();
    let plan = plan_of(py, tree.forwarders, tree.z, tree.tx_credit, tree.unreachable)?;
    plan.set_item("parent", by_index(parents))?;
    Ok(plan)
}

/// Returns MORE's belts and credits.
#[pyfunction]
pub(crate) fn more_plan<'py>(
    py: Python<'py>,
    loss: PyArrayLikeDyn<'py, f64, AllowTypeChange>,
    source: &Bound<'py, PyAny>,
    receivers: &Bound<'py, PyAny>,
    prune: f64,
) -> PyResult<Bound<'py, PyDict>> {
    check_share("prune", prune)?;
    let Task { topology, source, receivers } = Task::new(&loss, source, receivers)?;

    // A belt is what pruning leaves. It may cut off receivers, which the caller has to know.
    let belts = Belts::new(&topology, source, &receivers, Prune::Below(prune), Metric::Broadcast);
    let plan = plan_of(py, belts.forwarders, belts.z, belts.tx_credit, belts.unreachable)?;
    plan.set_item("disconnected", indices(belts.disconnected))?;
    Ok(plan)
}

/// Returns the largest pruning threshold of MORE that disconnects no receiver.
#[pyfunction]
pub(crate) fn more_largest_threshold(
    loss: PyArrayLikeDyn<'_, f64, AllowTypeChange>,
    source: &Bound<'_, PyAny>,
    receivers: &Bound<'_, PyAny>,
) -> PyResult<f64> {
    let Task { topology, source, receivers } = Task::new(&loss, source, receivers)?;
    Ok(largest_threshold(&topology, source, &receivers, Metric::Broadcast))
}
