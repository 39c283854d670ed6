//! Commands of the driver.

use super::{FileMulticast, Way};
use crate::multicast::frame::{Announcement, RankedHeader};
use crate::multicast::sink::{FileSink, SinkPhase};
use crate::multicast::source::{FileSource, SourceState};
use ncmesh_engine::file::{BatchSet, Geometry, Outgoing, SendError, TransferStatus};
use ncmesh_engine::file::{Refusal, is_safe_name};
use ncmesh_engine::{Context, Engine, FileEngine};
use ncmesh_wire::{FlowId, NodeId};

/// Fewest and most nodes that a header has room for, if packets are made to fit the radio.
const LISTED_MIN: usize = 4;
const LISTED_MAX: usize = 24;
/// Least payload of a packet, bytes.
const SYMBOL_MIN: usize = 64;

impl FileEngine for FileMulticast {
    fn geometry_for(&self, cx: &Context<'_>, size: u64) -> Result<Geometry, SendError> {
        let batch_size = self.packets.batch_size;

        // A packet fits the radio if its header does with as many nodes as the mesh may have it
        // list: all but the source and one receiver; in a tree, which lists its leaves too, all but
        // the source.
        let is_tree = self.way.scheme().is_some_and(|s| s.forwarding().is_hop_by_hop());
        let listed = cx.topology.len().saturating_sub(if is_tree { 1 } else { 2 });
        let listed = listed.clamp(LISTED_MIN, LISTED_MAX);
        let overhead = self.overhead(listed, batch_size);
        let fits = cx.mtu.checked_sub(overhead).filter(|fits| *fits >= SYMBOL_MIN);
        let fits = u16::try_from(fits.ok_or(SendError::MtuTooSmall)?).unwrap_or(u16::MAX);

        let symbol_size = match self.packets.symbol_size {
            Some(wanted) if wanted > fits => {
                return Err(SendError::SymbolTooLarge { wanted, fits });
            }
            wanted => wanted.unwrap_or(fits),
        };
        // A file smaller than one packet is sent in a packet of its size.
        let symbol_size = u64::from(symbol_size).min(size.max(SYMBOL_MIN as u64)) as u16;
        Ok(Geometry::new(size, batch_size, symbol_size)?)
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
        if self.sources.contains_key(&flow) {
            return Err(SendError::Exists);
        }

        // The file may have been cut for another MTU, before a restart.
        let g = outgoing.manifest.geometry;
        let wanted = g.symbol_size();
        let overhead = self.overhead(0, g.generation());
        if overhead + usize::from(wanted) > cx.mtu {
            let fits = cx.mtu.saturating_sub(overhead) as u16;
            return Err(SendError::SymbolTooLarge { wanted, fits });
        }

        self.drop_closed_sources();
        if let Way::ByRank(by_rank) = &mut self.way {
            by_rank.open(cx, &outgoing.manifest);
            let done = |node: &&NodeId| !outgoing.done.contains_key(*node);
            by_rank.expect(cx, &outgoing.manifest, outgoing.receivers.iter().filter(done).copied());
        }
        self.sources.insert(flow, FileSource::new(outgoing, cx));
        // Announces it at once.
        self.handle_timeout(cx);
        Ok(())
    }

    fn accept(&mut self, cx: &mut Context<'_>, flow: FlowId, have: BatchSet) {
        let sink = self.sinks.get_mut(&flow).filter(|s| s.phase == SinkPhase::Offered);
        let Some(sink) = sink.filter(|s| have.len() == s.manifest.geometry.batches()) else {
            return;
        };
        sink.accept(have);
        if let Way::ByRank(by_rank) = &mut self.way {
            by_rank.receive(cx, &sink.manifest, &sink.have);
            // It may have relayed some of the file before.
            for generation in by_rank.whole_but_lacking(flow) {
                self.check_whole(cx, flow, generation);
            }
        }
        self.acknowledge_progress(cx, flow);
    }

    fn refuse(&mut self, cx: &mut Context<'_>, flow: FlowId, why: Refusal) {
        if let Some(sink) = self.sinks.get_mut(&flow) {
            sink.end(SinkPhase::Refused(why), cx.now);
            self.stop_receiving(flow);
            self.acknowledge(cx, flow);
        }
        // The next announcement asks again.
        if why == Refusal::Busy {
            self.sinks.remove(&flow);
        }
    }

    fn delivered(&mut self, cx: &mut Context<'_>, flow: FlowId) {
        if let Some(sink) = self.sinks.get_mut(&flow).filter(|s| s.is_open()) {
            sink.end(SinkPhase::Complete, cx.now);
            self.acknowledge(cx, flow);
        }
    }

    fn forget(&mut self, flow: FlowId) {
        if self.sinks.remove(&flow).is_some() {
            self.stop_receiving(flow);
        }
    }

    fn cancel(&mut self, cx: &mut Context<'_>, flow: FlowId) -> bool {
        if let Some(source) = self.sources.get_mut(&flow) {
            let was_open = !source.is_over();
            if was_open {
                source.withdraw(cx.now);
                self.announce_closed(cx);
            }
            return was_open;
        }
        let was_open = self.sinks.get(&flow).is_some_and(FileSink::is_open);
        if was_open {
            self.refuse(cx, flow, Refusal::Cancelled);
        }
        was_open
    }

    fn transfers(&self) -> Vec<TransferStatus> {
        let sending = self.sources.values().map(FileSource::status);
        let receiving = self.sinks.iter().map(|(flow, sink)| {
            // By rank, packets are held for sending as well, not by the receiver.
            let begun = match &self.way {
                Way::ByRank(by_rank) => by_rank.begun(*flow),
                Way::Planned(_) => sink.begun(),
            };
            TransferStatus { begun, ..sink.status() }
        });
        sending.chain(receiving).collect()
    }
}

impl FileMulticast {
    /// Returns the most bytes of a data packet besides its payload, if it lists `listed` nodes and
    /// its batch has `packets`.
    fn overhead(&self, listed: usize, packets: u8) -> usize {
        match self.way.scheme() {
            Some(scheme) => scheme.forwarding().overhead(listed, packets.into()),
            None => RankedHeader::MOST + usize::from(packets),
        }
    }

    /// Makes room for another file to send: drops the one that was closed first, once its end has
    /// been announced. Open ones stay, however many.
    fn drop_closed_sources(&mut self) {
        while self.sources.len() >= self.limits.kept {
            let is_announced = |source: &FileSource| {
                let is_told =
                    matches!(source.state, SourceState::Closed { announced_at: Some(_), .. });
                is_told && source.is_over()
            };
            let closed = self.sources.iter().filter(|(_, source)| is_announced(source));
            let oldest = closed.min_by_key(|(_, source)| source.state.closed_at());
            let Some(flow) = oldest.map(|(flow, _)| *flow) else { return };
            self.sources.remove(&flow);
        }
    }
}
