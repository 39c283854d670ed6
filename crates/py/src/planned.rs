//! The scheme `planned`: a function of Python says who forwards a file, and how much.
//!
//! Everything else is as in Pacifier. The function is asked in the middle of a run, on the thread
//! of the run, and belongs to that run alone ([`with`]).

use crate::plans::{index, node_id};
use ncmesh_engine::registry::{Constructor, Entry};
use ncmesh_engine::settings::Section;
use ncmesh_engine::topology::Topology;
use ncmesh_engine_file::pacifier::{Pacifier, PacifierConfig, Variant};
use ncmesh_engine_file::planned::{
    self, ChildWait, Forwarder, Forwarding, LAYOUTS, Plan, Routing, Scheme, Switching, frame,
};
use ncmesh_engines::OUTSIDE;
use ncmesh_wire::{NodeId, ServiceId};
use numpy::PyArray2;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

/// Name of the scheme.
pub(crate) const NAME: &str = "planned";
const ID: ServiceId = ServiceId(*OUTSIDE.start());
/// Credits that a packet can state, transmissions for each packet that is heard from upstream.
const CREDITS: RangeInclusive<f64> = 0.0..=255.0;
/// Most forwarders that a packet can list.
const MOST_FORWARDERS: usize = 255;

ncmesh_engine::settings! {
    /// `[protocol.planned]` in a scenario. The settings of Pacifier that no plan decides.
    #[derive(Clone, Debug, PartialEq)]
    struct PlannedConfig {
        /// Building blocks of Pacifier in use (Table I of its paper).
        variant: Variant = Variant::TreeRlRrb;
        /// Packets of a generation (k).
        generation: u8 = 32, within 1..=255, unit "packets";
        /// Payload of a packet.
        symbol_size: Option<u16> = None, absent "as large as fits", within 64..=65_535,
            unit "bytes";
        /// Time that the source waits to overhear a child, in packet times for each packet its
        /// children owe.
        timeout_factor: f64 = 8.0, within 0..=1000, unit "packet times";
    }
}

/// Row of the scheme in this module's registry.
pub(crate) const PLANNED: Entry = Entry {
    name: NAME,
    id: ID,
    summary: "a plan of your own, made by a function of Python",
    paper: "none",
    settings: PlannedConfig::settings,
    layouts: LAYOUTS,
    read: |_, kind, body| frame::summary(NAME, kind, body),
    build: Constructor::File(|settings| {
        let PlannedConfig { variant, generation, symbol_size, timeout_factor } =
            settings.parse()?;
        let rules = PacifierConfig {
            variant,
            generation,
            symbol_size,
            timeout_factor,
            ..PacifierConfig::default()
        };
        Ok(Box::new(planned::engine(ID, Planned(Pacifier::new(rules)), settings.file)))
    }),
};

/// Pacifier with another plan.
struct Planned(Pacifier);

impl Scheme for Planned {
    fn name(&self) -> &'static str {
        NAME
    }

    fn plan(&self, topology: &Topology, source: NodeId, receivers: &[NodeId]) -> Plan {
        // Once a plan has failed the run ends, and another one would hide the reason.
        let waiting = Plan { source_transmissions: 1.0, ..Plan::default() };
        if has_raised() {
            return waiting;
        }

        let asked = Python::attach(|py| {
            let planner = ASKED.with_borrow(|asked| {
                asked.as_ref().map(|asked| (asked.planner.clone_ref(py), asked.nodes))
            });
            let (planner, nodes) = planner.ok_or_else(|| {
                PyValueError::new_err("scheme \"planned\": it needs `plan`, a function")
            })?;

            // The function may do anything meanwhile, so nothing of the run is borrowed.
            let receivers: Vec<usize> = receivers.iter().copied().map(index).collect();
            let loss = PyArray2::from_vec2(py, &losses(topology, nodes))?;
            let answer = planner.bind(py).call1((loss, index(source), receivers))?;
            Answer::read(&answer, nodes)?.plan(source)
        });

        asked.unwrap_or_else(|error| {
            ASKED.with_borrow_mut(|asked| {
                if let Some(asked) = asked {
                    asked.raised = Err(error);
                }
            });
            waiting
        })
    }

    fn forwarding(&self) -> Forwarding {
        Forwarding::Ordered
    }

    fn switching(&self) -> Switching {
        self.0.switching()
    }

    fn child_wait(&self) -> Option<ChildWait> {
        self.0.child_wait()
    }

    fn generation(&self) -> u8 {
        self.0.generation()
    }

    fn symbol_size(&self) -> Option<u16> {
        self.0.symbol_size()
    }
}

// ---- the function of a run

/// The function that a run asks, and what became of it.
struct Asked {
    planner: Py<PyAny>,
    /// Number of nodes of the mesh.
    nodes: usize,
    raised: PyResult<()>,
}

thread_local! {
    static ASKED: RefCell<Option<Asked>> = const { RefCell::new(None) };
}

/// Checks that a run which is to follow a plan has one, and another has none. Returns the name of
/// the scheme.
///
/// # Errors
/// Says what does not fit.
pub(crate) fn scheme<'a>(
    named: Option<&'a str>,
    planner: Option<&Bound<'_, PyAny>>,
) -> Result<Option<&'a str>, String> {
    match (planner, named) {
        (None, Some(NAME)) => Err(format!("scheme {NAME:?}: it needs `plan`, a function")),
        (None, other) => Ok(other),
        (Some(planner), _) if !planner.is_callable() => {
            Err(format!("plan: allowed is a function, not {}", planner.get_type()))
        }
        (Some(_), None | Some(NAME)) => Ok(Some(NAME)),
        (Some(_), Some(other)) => {
            Err(format!("plan: the scheme {other:?} makes its own; leave `scheme` out"))
        }
    }
}

/// Makes a run on this thread that asks `planner` in a mesh of `nodes` nodes.
///
/// # Errors
/// The exception that the function raised, or that its answer is worth.
pub(crate) fn with<T>(
    planner: Option<Py<PyAny>>,
    nodes: usize,
    run: impl FnOnce() -> T,
) -> PyResult<T> {
    // A function may simulate, too, with a plan of its own.
    let asked = planner.map(|planner| Asked { planner, nodes, raised: Ok(()) });
    let outer = ASKED.replace(asked);
    let outcome = run();
    let asked = ASKED.replace(outer);
    asked.map_or(Ok(()), |asked| asked.raised)?;
    Ok(outcome)
}

/// Returns whether the function of the run on this thread has failed, so that the run must end.
pub(crate) fn has_raised() -> bool {
    ASKED.with_borrow(|asked| asked.as_ref().is_some_and(|asked| asked.raised.is_err()))
}

/// Returns the losses that a node knows: from row to column, 1 where it knows no link.
fn losses(topology: &Topology, nodes: usize) -> Vec<Vec<f64>> {
    let mut losses = vec![vec![1.0; nodes]; nodes];
    for (from, row) in losses.iter_mut().enumerate() {
        for (to, delivery) in topology.links_from(node_id(from)) {
            row[index(to)] = 1.0 - delivery;
        }
    }
    losses
}

// ---- its answer

/// A plan as Python has it, nodes by index. `pacifier.plan` returns one.
struct Answer {
    forwarders: Vec<usize>,
    tx_credit: BTreeMap<usize, f64>,
    /// Transmissions of each node for each packet. That of the source alone counts.
    z: BTreeMap<usize, f64>,
    parent: BTreeMap<usize, usize>,
}

impl Answer {
    /// Reads the answer of a function in a mesh of that many nodes.
    fn read(of: &Bound<'_, PyAny>, nodes: usize) -> PyResult<Self> {
        let answer = Self {
            forwarders: required(of, "forwarders")?,
            tx_credit: required(of, "tx_credit")?,
            z: optional(of, "z")?,
            parent: optional(of, "parent")?,
        };
        let Self { forwarders, tx_credit, .. } = &answer;

        let mut seen = BTreeSet::new();
        for node in forwarders {
            if *node >= nodes {
                return Err(wrong(format!("forwarder {node}: allowed is 0 to {}", nodes - 1)));
            }
            if !seen.insert(node) {
                return Err(wrong(format!("forwarder {node} is listed twice")));
            }

            let credit = tx_credit
                .get(node)
                .ok_or_else(|| wrong(format!("forwarder {node} has no tx_credit")))?;
            if !CREDITS.contains(credit) {
                let [least, most] = [CREDITS.start(), CREDITS.end()];
                let allowed = format!("allowed is {least} to {most}");
                return Err(wrong(format!("tx_credit[{node}] = {credit}: {allowed}")));
            }
        }
        if forwarders.len() > MOST_FORWARDERS {
            let count = forwarders.len();
            return Err(wrong(format!("{count} forwarders: allowed are {MOST_FORWARDERS}")));
        }
        Ok(answer)
    }

    /// Returns the plan of a source that is made of it.
    fn plan(self, source: NodeId) -> PyResult<Plan> {
        let source = index(source);
        let of_source = self.z.get(&source).copied().unwrap_or(1.0);
        if self.forwarders.contains(&source) {
            return Err(wrong(format!("forwarder {source} is the source")));
        }
        if !of_source.is_finite() || of_source < 0.0 {
            return Err(wrong(format!("z[{source}] = {of_source}: allowed is 0 or more")));
        }

        // One without a credit never sends, so the source waits for none of those.
        let credit = |node: &usize| self.tx_credit[node];
        let is_child = |node: &&usize| self.parent.get(node) == Some(&source) && credit(node) > 0.0;
        let children: Vec<usize> = self.forwarders.iter().filter(is_child).copied().collect();
        let listed =
            self.forwarders.iter().map(|node| Forwarder::new(node_id(*node), credit(node)));
        Ok(Plan {
            routing: Routing::Ordered(listed.collect()),
            source_transmissions: of_source.max(1.0),
            children_credit: children.iter().map(credit).sum(),
            children: children.into_iter().map(node_id).collect(),
        })
    }
}

/// Returns the value of an answer at a key.
fn required<'py, T: FromPyObjectOwned<'py>>(of: &Bound<'py, PyAny>, key: &str) -> PyResult<T> {
    let missing = |error: PyErr| wrong(format!("{key}: {error}"));
    let value = of.get_item(key).map_err(missing)?;
    value.extract().map_err(|error: T::Error| missing(error.into()))
}

/// Returns the value of an answer at a key, the default where there is none.
fn optional<'py, T: FromPyObjectOwned<'py> + Default>(
    of: &Bound<'py, PyAny>,
    key: &str,
) -> PyResult<T> {
    if of.contains(key)? { required(of, key) } else { Ok(T::default()) }
}

/// Returns a `ValueError` for a plan.
fn wrong(message: String) -> PyErr {
    PyValueError::new_err(format!("plan: {message}"))
}
