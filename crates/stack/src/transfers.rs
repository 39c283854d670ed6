//! Table from file transfers to the engines that carry them.

use ncmesh_engine::counters::{Counters, DropReason};
use ncmesh_engine::file::{Direction, TransferStatus};
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::{AnyEngine, Event};
use ncmesh_wire::FlowId;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Entries above which those of forgotten transfers are removed. Peers can announce any number of
/// transfers, but each engine keeps a bounded number of them.
const MAX_ENTRIES: usize = 4096;
/// Time after which a transfer of which nothing has arrived yields its id to one of another
/// service: it may have been announced by somebody else than its source.
const UNPROVEN: Duration = Duration::from_secs(20);

/// Events that an engine has just raised.
pub(crate) struct Raised<'a> {
    /// All events, those of the engine at the end.
    pub(crate) events: &'a mut VecDeque<Event>,
    /// Index of its first one.
    pub(crate) first: usize,
    pub(crate) counters: &'a mut Counters,
    pub(crate) now: Instant,
}

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

    /// Takes the events about files that the engine at `index` has raised. A transfer belongs to
    /// the engine that announced it first. What another one says of its id is counted and goes no
    /// further.
    pub(crate) fn take(&mut self, raised: Raised<'_>, index: usize, engines: &mut [AnyEngine]) {
        let Raised { events, first, counters, now } = raised;
        if first == events.len() {
            return;
        }

        // Events of other kinds pass unchanged, in their order.
        for event in events.split_off(first) {
            let Some(flow) = flow_of(&event) else {
                events.push_back(event);
                continue;
            };

            let owner = self.engine(flow).filter(|owner| *owner != index);
            let is_new = matches!(event, Event::Announced(_));

            // While the owner holds the transfer, no other engine may speak for its id.
            if owner.is_some_and(|owner| is_held(&engines[owner], flow, now)) {
                counters.drop(DropReason::Disputed);
                if is_new && let AnyEngine::File(engine) = &mut engines[index] {
                    engine.forget(flow);
                }
                continue;
            }

            // The owner has nothing to show for the id, so another engine may begin under it.
            if is_new {
                if let Some(AnyEngine::File(owner)) = owner.map(|owner| &mut engines[owner]) {
                    owner.forget(flow);
                }
                self.insert(flow, index, engines);
            }

            events.push_back(event);
        }
    }
}

/// Returns the transfer that an event of a file engine is about.
fn flow_of(event: &Event) -> Option<FlowId> {
    match event {
        Event::Announced(manifest) => Some(manifest.flow),
        Event::Assembled(flow)
        | Event::Withdrawn(flow)
        | Event::Unwritable(flow)
        | Event::Suspended(flow)
        | Event::ReceiverDone(flow, _)
        | Event::ReceiverObjected(flow, _)
        | Event::SendEnded(flow)
        | Event::SendConfirmed(flow)
        | Event::SendFailed(flow, _) => Some(*flow),
        Event::Impersonated | Event::Packet { .. } | Event::StreamPacket { .. } => None,
    }
}

/// Returns whether an engine carries `flow`, and has a reason to believe in it: it is this node's
/// own, or part of it has arrived, or it is so new that nothing can have.
fn is_held(engine: &AnyEngine, flow: FlowId, now: Instant) -> bool {
    let AnyEngine::File(engine) = engine else { return false };
    let transfer = engine.transfers().into_iter().find(|transfer| transfer.flow == flow);
    transfer.is_some_and(|transfer| {
        let is_proved = transfer.direction == Direction::Sending || transfer.bytes > 0;
        is_proved || now.since(transfer.started) < UNPROVEN
    })
}

/// Returns the state of every transfer of every engine.
pub(crate) fn all(engines: &[AnyEngine]) -> impl Iterator<Item = TransferStatus> + '_ {
    engines.iter().flat_map(|engine| match engine {
        AnyEngine::File(engine) => engine.transfers(),
        AnyEngine::Tunnel(_) | AnyEngine::Stream(_) => Vec::new(),
    })
}
