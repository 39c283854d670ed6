//! Commands of the driver.

use super::FileMulticast;
use crate::carrier::Carrier;
use crate::frame::Announcement;
use crate::sink::{FileSink, SinkPhase};
use crate::source::{FileSource, SourceState};
use ncmesh_engine::file::{GenerationSet, Geometry, Outgoing, SendError, TransferStatus};
use ncmesh_engine::file::{Refusal, is_safe_name};
use ncmesh_engine::{Context, Engine, FileEngine};
use ncmesh_wire::FlowId;

/// Least payload of a packet, bytes.
const SYMBOL_MIN: usize = 64;

impl<C: Carrier> FileEngine for FileMulticast<C> {
    fn geometry_for(&self, cx: &Context<'_>, size: u64) -> Result<Geometry, SendError> {
        // A packet fits the radio if its header does with as many nodes as the mesh may have it
        // list.
        let packets = self.carrier.packets();
        let listed = self.carrier.listed(cx.topology.len());
        let overhead = self.carrier.overhead(listed, packets.generation);
        let fits = cx.mtu.checked_sub(overhead).filter(|fits| *fits >= SYMBOL_MIN);
        let fits = u16::try_from(fits.ok_or(SendError::MtuTooSmall)?).unwrap_or(u16::MAX);

        let symbol_size = match packets.symbol_size {
            Some(wanted) if wanted > fits => {
                return Err(SendError::SymbolTooLarge { wanted, fits });
            }
            wanted => wanted.unwrap_or(fits),
        };

        // A file smaller than one packet is sent in a packet of its size.
        let symbol_size = u64::from(symbol_size).min(size.max(SYMBOL_MIN as u64)) as u16;
        Ok(Geometry::new(size, packets.generation, symbol_size)?)
    }

    fn send(&mut self, cx: &mut Context<'_>, outgoing: Outgoing) -> Result<(), SendError> {
        let flow = outgoing.manifest.flow;
        let max_receivers = Announcement::room_for_receivers(&outgoing.manifest, cx.mtu);
        if outgoing.receivers.is_empty() && !outgoing.open {
            return Err(SendError::NoReceivers);
        }
        if outgoing.receivers.len() > max_receivers {
            return Err(SendError::TooManyReceivers(max_receivers));
        }
        if !is_safe_name(&outgoing.manifest.name) {
            return Err(SendError::BadName);
        }
        if self.transfers.sources.contains_key(&flow) {
            return Err(SendError::Exists);
        }

        // The file may have been cut for another MTU, before a restart.
        let g = outgoing.manifest.geometry;
        let wanted = g.symbol_size();
        let overhead = self.carrier.overhead(0, g.generation());
        if overhead + usize::from(wanted) > cx.mtu {
            let fits = cx.mtu.saturating_sub(overhead) as u16;
            return Err(SendError::SymbolTooLarge { wanted, fits });
        }

        self.drop_closed_sources();
        let source = FileSource::new(outgoing, cx);
        self.carrier.open(cx, &source);
        self.transfers.sources.insert(flow, source);

        // Announces it at once.
        self.handle_timeout(cx);
        Ok(())
    }

    fn accept(&mut self, cx: &mut Context<'_>, flow: FlowId, have: GenerationSet) {
        let sink = self.transfers.sinks.get_mut(&flow).filter(|s| s.phase == SinkPhase::Offered);
        // The file may have been announced again meanwhile, and cut in another way.
        let Some(sink) = sink.filter(|s| have.len() == s.manifest.geometry.generations()) else {
            return;
        };
        sink.accept(have);
        self.carrier.receive(cx, &mut self.transfers, flow);
        self.transfers.acknowledge_progress(cx, flow);
    }

    fn refuse(&mut self, cx: &mut Context<'_>, flow: FlowId, why: Refusal) {
        if let Some(sink) = self.transfers.sinks.get_mut(&flow) {
            sink.end(SinkPhase::Refused(why), cx.now);
            self.carrier.stop_receiving(flow);
            self.transfers.acknowledge(cx, flow);
        }

        // The next announcement asks again.
        if why == Refusal::Busy {
            self.transfers.sinks.remove(&flow);
        }
    }

    fn delivered(&mut self, cx: &mut Context<'_>, flow: FlowId) {
        if let Some(sink) = self.transfers.sinks.get_mut(&flow).filter(|s| s.is_open()) {
            sink.end(SinkPhase::Complete, cx.now);
            self.transfers.acknowledge(cx, flow);
        }
    }

    fn forget(&mut self, flow: FlowId) {
        if self.transfers.sinks.remove(&flow).is_some() {
            self.carrier.stop_receiving(flow);
        }
    }

    fn cancel(&mut self, cx: &mut Context<'_>, flow: FlowId) -> bool {
        if let Some(source) = self.transfers.sources.get_mut(&flow) {
            let was_open = !source.is_over();
            if was_open {
                source.withdraw(cx.now);
                // The end is told at once: receivers would wait for packets that do not come.
                self.announce_closed(cx);
            }

            return was_open;
        }

        let was_open = self.transfers.sinks.get(&flow).is_some_and(FileSink::is_open);
        if was_open {
            self.refuse(cx, flow, Refusal::Cancelled);
        }
        was_open
    }

    fn transfers(&self) -> Vec<TransferStatus> {
        let sending = self.transfers.sources.iter().map(|(flow, source)| {
            let forwarders = self.carrier.forwarders(*flow);
            TransferStatus { forwarders, ..source.status() }
        });

        let receiving = self.transfers.sinks.iter().map(|(flow, sink)| {
            let begun = self.carrier.begun(*flow);
            TransferStatus { begun, ..sink.status() }
        });

        sending.chain(receiving).collect()
    }
}

impl<C: Carrier> FileMulticast<C> {
    /// Makes room for another file to send: drops the one that was closed first, once its end has
    /// been announced. Open ones stay, however many.
    fn drop_closed_sources(&mut self) {
        while self.transfers.sources.len() >= self.limits.kept {
            let is_announced = |source: &FileSource| {
                let is_told =
                    matches!(source.state, SourceState::Closed { announced_at: Some(_), .. });
                is_told && source.is_over()
            };

            let closed = self.transfers.sources.iter().filter(|(_, source)| is_announced(source));
            let oldest = closed.min_by_key(|(_, source)| source.state.closed_at());
            let Some(flow) = oldest.map(|(flow, _)| *flow) else { return };
            self.transfers.sources.remove(&flow);
            self.carrier.forget(flow);
        }
    }
}
