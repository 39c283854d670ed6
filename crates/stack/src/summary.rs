//! Summaries of frames for traces, read without the state of any node.

use crate::control;
use ncmesh_engine::Summary;
use ncmesh_engine::registry::Registry;
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

/// Returns every service of a node by its id: name and descriptions of its frames.
pub fn services(
    registry: Registry,
) -> impl Iterator<Item = (ServiceId, &'static str, &'static [Layout])> {
    let own = [(control::SERVICE, "control", control::LAYOUTS)];
    own.into_iter().chain(registry.entries().map(|entry| (entry.id, entry.name, entry.layouts)))
}
