//! Summaries of frames for traces, read without the state of any node.

use crate::control;
use ncmesh_engine::Summary;
use ncmesh_engine::registry::{Entry, Registry};
use ncmesh_wire::layout::Layout;
use ncmesh_wire::{NodeId, ServiceId};

/// Summarises a decrypted frame body of (service, kind) by `sender`. Returns `None` if the service
/// is not in `registry`, or if the body does not follow the format of its kind.
#[must_use]
pub fn summarise(
    registry: Registry,
    sender: NodeId,
    service: ServiceId,
    kind: u8,
    body: &[u8],
) -> Option<Summary> {
    match service {
        control::SERVICE => control::summary(kind, body),
        id => (registry.by_id(id)?.read)(sender, kind, body),
    }
}

/// A service of a node.
#[derive(Clone, Copy, Debug)]
pub struct Service {
    /// Id in its frames.
    pub id: ServiceId,
    /// Name for people.
    pub name: &'static str,
    /// Descriptions of its frames.
    pub layouts: &'static [Layout],
}

/// Returns every service of a node: its own, and those of its engines.
pub fn services(registry: Registry) -> impl Iterator<Item = Service> {
    let own = Service { id: control::SERVICE, name: "control", layouts: control::LAYOUTS };
    let of = |entry: &Entry| Service { id: entry.id, name: entry.name, layouts: entry.layouts };
    core::iter::once(own).chain(registry.entries().map(of))
}
