//! Table from file transfers to the engines that carry them.

use ncmesh_engine::file::TransferStatus;
use ncmesh_engine::{AnyEngine, Event};
use ncmesh_wire::FlowId;
use std::collections::{BTreeMap, BTreeSet};

/// Entries above which those of forgotten transfers are removed. Peers can announce any number of
/// transfers, but each engine keeps a bounded number of them.
const MAX_ENTRIES: usize = 4096;

/// Index of the engine that carries each transfer.
#[derive(Debug, Default)]
pub(crate) struct Transfers {
    engines: BTreeMap<FlowId, usize>,
}

impl Transfers {
    /// Returns the index of the engine that carries `flow`.
    pub(crate) fn engine(&self, flow: FlowId) -> Option<usize> {
        self.engines.get(&flow).copied()
    }

    /// Notes that the engine at `index` carries `flow`.
    pub(crate) fn insert(&mut self, flow: FlowId, index: usize, engines: &[AnyEngine]) {
        if self.engines.len() >= MAX_ENTRIES {
            let known = all(engines).map(|transfer| transfer.flow).collect::<BTreeSet<_>>();
            self.engines.retain(|flow, _| known.contains(flow));
        }
        self.engines.insert(flow, index);
    }

    /// Notes the transfers that the engine at `index` has just announced to the driver.
    pub(crate) fn note<'a>(
        &mut self,
        events: impl Iterator<Item = &'a Event>,
        index: usize,
        engines: &[AnyEngine],
    ) {
        for event in events {
            if let Event::Announced(manifest) = event {
                self.insert(manifest.flow, index, engines);
            }
        }
    }
}

/// Returns the state of every transfer of every engine.
pub(crate) fn all(engines: &[AnyEngine]) -> impl Iterator<Item = TransferStatus> + '_ {
    engines.iter().flat_map(|engine| match engine {
        AnyEngine::File(engine) => engine.transfers(),
        AnyEngine::Tunnel(_) | AnyEngine::Stream(_) => Vec::new(),
    })
}
