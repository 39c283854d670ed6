//! What the driver may ask of the service.

use super::FileMulticast;
use crate::multicast::frame::{Announce, Phase};
use crate::multicast::scheme::Scheme;
use crate::multicast::sink::{Sink, SinkPhase};
use crate::multicast::source::Source;
use ncmesh_engine::FileEngine;
use ncmesh_engine::file::{BatchSet, Geometry, Outgoing, SendError, TransferStatus};
use ncmesh_engine::file::{Refusal, is_safe_name};
use ncmesh_engine::{Context, Engine};
use ncmesh_wire::FlowId;

/// Header room kept for so many forwarders at least and at most, where packets are made to fit the radio.
const LISTED: (usize, usize) = (4, 24);

impl<S: Scheme> FileEngine for FileMulticast<S> {
    fn geometry_for(&self, cx: &Context<'_>, size: u64) -> Result<Geometry, SendError> {
        let generation = self.scheme.generation();
        let room = |listed| {
            let used = self.scheme.forwarding().overhead(listed, usize::from(generation));
            cx.mtu.checked_sub(used).filter(|room| *room >= 64).ok_or(SendError::MtuTooSmall)
        };
        // In a tree the receivers are listed too.
        let apart = if self.scheme.forwarding().is_hop_by_hop() { 1 } else { 2 };
        let listed = cx.topology.nodes().count().saturating_sub(apart);
        let fits = room(listed.clamp(LISTED.0, LISTED.1))?;
        let fits = u16::try_from(fits).unwrap_or(u16::MAX);
        let symbol = match self.scheme.symbol_size() {
            Some(wanted) if wanted > fits => {
                return Err(SendError::SymbolTooLarge { wanted, fits });
            }
            wanted => wanted.unwrap_or(fits),
        };
        let symbol = u64::from(symbol).min(size.max(64)) as u16;
        Ok(Geometry::new(size, generation, symbol)?)
    }

    fn send(&mut self, cx: &mut Context<'_>, outgoing: Outgoing) -> Result<(), SendError> {
        let flow = outgoing.manifest.flow;
        let room = Announce::room_for_receivers(&outgoing.manifest, cx.mtu);
        if outgoing.receivers.is_empty() && !outgoing.open {
            return Err(SendError::NoReceivers);
        }
        if outgoing.receivers.len() > room {
            return Err(SendError::TooManyReceivers(room));
        }
        if !is_safe_name(&outgoing.manifest.name) {
            return Err(SendError::BadName);
        }
        if self.sources.contains_key(&flow) {
            return Err(SendError::Exists);
        }
        let g = outgoing.manifest.geometry;
        let wanted = g.symbol_size();
        let used = self.scheme.forwarding().overhead(0, usize::from(g.generation()));
        if used + usize::from(wanted) > cx.mtu {
            let fits = cx.mtu.saturating_sub(used) as u16;
            return Err(SendError::SymbolTooLarge { wanted, fits });
        }
        self.drop_ended_sources();
        self.sources.insert(flow, Source::new(outgoing, cx.epoch, cx.mtu, cx.now));
        self.handle_timeout(cx);
        Ok(())
    }

    fn accept(&mut self, cx: &mut Context<'_>, flow: FlowId, have: BatchSet) {
        let Some(sink) = self.sinks.get_mut(&flow).filter(|s| s.phase == SinkPhase::Asking) else {
            return;
        };
        if have.len() != sink.manifest.geometry.batches() {
            return;
        }
        sink.accept(have);
        self.batch_done(cx, flow);
    }

    fn refuse(&mut self, cx: &mut Context<'_>, flow: FlowId, why: Refusal) {
        if let Some(sink) = self.sinks.get_mut(&flow) {
            sink.end(SinkPhase::Refused(why), cx.now);
            self.acknowledge(cx, flow);
        }
    }

    fn delivered(&mut self, cx: &mut Context<'_>, flow: FlowId) {
        if let Some(sink) = self.sinks.get_mut(&flow).filter(|s| s.is_open()) {
            sink.end(SinkPhase::Done, cx.now);
            self.acknowledge(cx, flow);
        }
    }

    fn cancel(&mut self, cx: &mut Context<'_>, flow: FlowId) -> bool {
        if let Some(source) = self.sources.get_mut(&flow) {
            let open = source.phase == Phase::Open;
            if open {
                source.withdraw(cx.now);
                self.announce_ended(cx);
            }
            return open;
        }
        let open = self.sinks.get(&flow).is_some_and(Sink::is_open);
        if open {
            self.refuse(cx, flow, Refusal::Cancelled);
        }
        open
    }

    fn transfers(&self) -> Vec<TransferStatus> {
        let sending = self.sources.values().map(Source::status);
        sending.chain(self.sinks.values().map(Sink::status)).collect()
    }
}

impl<S: Scheme> FileMulticast<S> {
    /// Makes room for another file to send. Those under way stay, however many.
    fn drop_ended_sources(&mut self) {
        while self.sources.len() >= self.limits.kept {
            let ended = self.sources.iter().filter(|(_, s)| s.end_told.is_some());
            let oldest = ended.min_by_key(|(_, s)| s.finished).map(|(flow, _)| *flow);
            let Some(flow) = oldest else { return };
            self.sources.remove(&flow);
        }
    }
}
