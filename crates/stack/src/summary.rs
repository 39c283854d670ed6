//! Summaries of frames for traces, read without the state of any node.

use crate::{link, route};
use ncmesh_engine::Summary;
use ncmesh_engine::registry::Registry;
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
        link::SERVICE => link::summary(kind, body),
        route::SERVICE => route::summary(kind, body),
        id => (registry.by_id(id)?.read)(sender, kind, body),
    }
}
