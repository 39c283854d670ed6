//! Who forwards how much, from a matrix of losses. Node `i` of the matrix is node id `i + 1` of the engines.

use ncmesh_proto::pacifier::Tree;
use ncmesh_proto::route::{Metric, Topology};
use ncmesh_wire::NodeId;
use numpy::{AllowTypeChange, PyArrayLikeDyn, PyUntypedArrayMethods};
use pyo3::exceptions::{PyOverflowError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::collections::BTreeMap;

/// The most nodes that ids are there for.
const MOST_NODES: usize = 65_534;

fn wrong(message: impl Into<String>) -> PyErr {
    PyValueError::new_err(message.into())
}

/// The index of a node.
fn index(node: NodeId) -> usize {
    usize::from(node.0) - 1
}

/// Values by node index.
fn by_index<V>(values: BTreeMap<NodeId, V>) -> BTreeMap<usize, V> {
    values.into_iter().map(|(node, value)| (index(node), value)).collect()
}

/// The mesh of an n-by-n matrix of losses, `loss[i][j]` from i to j.
fn topology(loss: &PyArrayLikeDyn<'_, f64, AllowTypeChange>) -> PyResult<Topology> {
    let n = match *loss.shape() {
        [rows, columns] if rows == columns && (1..=MOST_NODES).contains(&rows) => rows,
        ref shape => {
            let message =
                format!("loss: shape {shape:?}; needed is n by n, n from 1 to {MOST_NODES}");
            return Err(wrong(message));
        }
    };
    let mut hears = vec![BTreeMap::new(); n];
    for ((from, to), loss) in loss.as_array().indexed_iter().map(|(i, p)| ((i[0], i[1]), *p)) {
        if from == to {
            continue;
        }
        if !(0.0..=1.0).contains(&loss) {
            return Err(wrong(format!("loss[{from}][{to}] = {loss}: allowed is 0 to 1")));
        }
        hears[to].insert(NodeId(from as u16 + 1), 1.0 - loss);
    }
    Ok(Topology::known(hears))
}

/// The node of an index.
fn node(of: &Bound<'_, PyAny>, what: &str, nodes: usize) -> PyResult<NodeId> {
    let given = match of.extract::<u16>() {
        Err(error) if !error.is_instance_of::<PyOverflowError>(of.py()) => return Err(error),
        given => given.ok().filter(|i| usize::from(*i) < nodes),
    };
    let message = || format!("{what} {of}: allowed is 0 to {}", nodes - 1);
    given.map(|i| NodeId(i + 1)).ok_or_else(|| wrong(message()))
}

/// The nodes of a sequence of indices: one at least, none twice, none the source.
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

/// Pacifier's tree and credits.
#[pyfunction]
pub(crate) fn pacifier_plan<'py>(
    py: Python<'py>,
    loss: PyArrayLikeDyn<'py, f64, AllowTypeChange>,
    source: &Bound<'py, PyAny>,
    receivers: &Bound<'py, PyAny>,
    knob: f64,
) -> PyResult<Bound<'py, PyDict>> {
    if !(0.0..=1.0).contains(&knob) {
        return Err(wrong(format!("knob = {knob}: allowed is 0 to 1")));
    }
    let topology = topology(&loss)?;
    let nodes = loss.shape()[0];
    let source = node(source, "source", nodes)?;
    let receivers = self::receivers(receivers, source, nodes)?;
    let tree = Tree::new(&topology, source, &receivers, knob, Metric::Broadcast);
    let parents = tree.parent.into_iter().map(|(child, parent)| (child, index(parent))).collect();
    let plan = PyDict::new(py);
    plan.set_item("forwarders", tree.forwarders.into_iter().map(index).collect::<Vec<_>>())?;
    plan.set_item("z", by_index(tree.z))?;
    plan.set_item("tx_credit", by_index(tree.tx_credit))?;
    plan.set_item("parent", by_index(parents))?;
    plan.set_item("unreachable", tree.unreachable.into_iter().map(index).collect::<Vec<_>>())?;
    Ok(plan)
}
