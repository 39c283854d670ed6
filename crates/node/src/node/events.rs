//! What the stack asks of the disk: places for announced files, verification, forgetting.

use super::{Node, Reception, Saving};
use crate::state::{Delivery, append_delivery};
use crate::store::delivery::deliver;
use crate::store::reception::{Prepared, discard, prepare};
use ncmesh_engine::Event;
use ncmesh_engine::file::{BatchSet, Manifest, Refusal, Stage, TransferStatus};
use ncmesh_wire::FlowId;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

impl Node {
    /// Does what the stack asks for; to be called after every other call.
    pub fn handle_events(&mut self) {
        while let Some(event) = self.stack.poll_event() {
            match event {
                Event::Announced(manifest) => self.announced(*manifest),
                Event::Assembled(flow) => self.assembled(flow),
                Event::Withdrawn(flow) => {
                    tracing::info!("{flow}: withdrawn by its source");
                    self.discard(flow);
                }
                // What could not be written was logged.
                Event::Unwritable(flow) => self.discard(flow),
                Event::Suspended(flow) => {
                    tracing::info!("{flow}: its source is silent, it makes room for another");
                    self.receptions.remove(&flow);
                    self.storage.close(flow);
                }
                Event::ReceiverDone(flow, node) => {
                    tracing::info!("{flow}: nothing more for {}", self.name_of(node));
                    self.outgoing_news.insert(flow);
                }
                Event::SendEnded(flow) => {
                    tracing::info!("{flow}: sent");
                    self.forget_outgoing(flow);
                }
                Event::SendFailed(flow, failure) => {
                    tracing::error!("{flow}: {failure}");
                    self.forget_outgoing(flow);
                }
                Event::Packet { from, packet } => self.arrived(from, packet),
                Event::StreamPacket { group, layer, packet, .. } => {
                    self.play(&group, &layer, &packet);
                }
            }
        }
        self.drain_tunnel();
        self.save_epoch();
        self.save_elsewhere();
    }

    /// To be called every few seconds: remembers the epochs of the peers heard, where there is news, and
    /// tries again what failed.
    pub fn tidy(&mut self) {
        if self.epoch_saving == Saving::Failed {
            self.epoch_saving = Saving::Idle;
        }
        self.save_outgoing();
        self.note_coding();
        let epochs: BTreeMap<_, _> = self.stack.epochs().collect();
        if epochs != self.peers_saved {
            self.peers_saved.clone_from(&epochs);
            let state = self.state.clone();
            self.handle.work(
                move || state.save_peer_epochs(&epochs),
                |_, saved| log_failure("peers", saved),
            );
        }
    }

    /// Remembers how receivers of files under way ended.
    fn save_outgoing(&mut self) {
        for flow in std::mem::take(&mut self.outgoing_news) {
            let ended = |t: &TransferStatus| t.flow == flow && t.stage != Stage::Open;
            let transfers = self.stack.transfers();
            let Some(file) = self.sources.get_mut(&flow) else { continue };
            if transfers.iter().any(ended) {
                continue;
            }
            let receivers = transfers.iter().filter(|t| t.flow == flow).flat_map(|t| &t.receivers);
            let done = receivers.filter(|r| r.state.is_final()).map(|r| (r.node, r.state));
            file.done = done.collect();
            let (journal, file) = (self.state.outgoing(), file.clone());
            self.handle
                .work(move || journal.update(&file), |_, saved| log_failure("outgoing", saved));
        }
    }

    /// Remembers that a file was cancelled here, so that it is not received after a restart either.
    pub(super) fn note_cancelled(&mut self, flow: FlowId) {
        let Some(reception) = self.receptions.get(&flow) else { return };
        let delivery = Delivery { hash: reception.manifest.hash, path: None };
        self.delivered.learn(flow, delivery.clone());
        let list = self.delivered.file();
        let work = move || list.and_then(|list| append_delivery(&list, flow, &delivery));
        self.handle.work(work, |_, noted| log_failure("delivered", noted));
    }

    /// Remembers the peers' epochs at the end, when waiting does no harm.
    pub fn save_peers(&self) {
        log_failure("peers", self.state.save_peer_epochs(&self.stack.epochs().collect()));
    }

    /// The stack raises its epoch where others remember a higher one than the state directory did.
    fn save_epoch(&mut self) {
        let epoch = self.stack.epoch();
        if epoch == self.epoch_saved || self.epoch_saving != Saving::Idle {
            return;
        }
        self.epoch_saving = Saving::Running;
        let state = self.state.clone();
        self.handle.work(
            move || state.save_epoch(epoch),
            move |node, saved| {
                node.epoch_saving = if saved.is_ok() { Saving::Idle } else { Saving::Failed };
                match saved {
                    Ok(()) => node.epoch_saved = epoch,
                    Err(e) => tracing::error!("nothing is sent: epoch cannot be saved: {e}"),
                }
            },
        );
    }

    /// Remembers where files are received that do not go to the configured inbox: a restart goes on there.
    fn save_elsewhere(&mut self) {
        if self.elsewhere_saving || self.elsewhere == self.elsewhere_saved {
            return;
        }
        self.elsewhere_saving = true;
        let (state, now) = (self.state.clone(), self.elsewhere.clone());
        self.handle.work(
            move || (state.save_inboxes(&now), now),
            |node, (saved, now)| {
                node.elsewhere_saving = false;
                node.elsewhere_saved = now;
                log_failure("inboxes", saved);
            },
        );
    }

    fn announced(&mut self, manifest: Manifest) {
        let flow = manifest.flow;
        match self.delivered.find(&manifest).map(|known| known.path.is_some()) {
            Some(true) => return self.accept_whole(&manifest),
            Some(false) => return self.refuse(flow, Refusal::Cancelled),
            None => {}
        }
        let begun = self.elsewhere.get(&flow).or(self.inbox.as_ref());
        let Some(inbox) = begun.cloned() else {
            tracing::warn!("{flow}: {:?} refused: no inbox", manifest.name);
            return self.refuse(flow, Refusal::NoInbox);
        };
        tracing::info!(
            "{flow}: {:?}, {} bytes, announced",
            manifest.name,
            manifest.geometry.size()
        );
        if self.configured_inbox.as_ref() != Some(&inbox) {
            self.elsewhere.insert(flow, inbox.clone());
        }
        self.receptions
            .insert(flow, Reception { inbox: inbox.clone(), manifest: manifest.clone() });
        let work = move || (prepare(&inbox, &manifest), inbox);
        self.handle.work(work, move |node, (prepared, inbox)| {
            if node.receptions.contains_key(&flow) {
                node.prepared(flow, prepared);
            } else {
                // Withdrawn or cancelled meanwhile.
                node.handle.work(move || discard(&inbox, flow), |_, ()| ());
            }
        });
    }

    fn prepared(&mut self, flow: FlowId, prepared: Result<Prepared, Refusal>) {
        match prepared {
            Ok(Prepared::Receiving(incoming, have)) => {
                if !have.is_empty() {
                    tracing::info!(
                        "{flow}: resumed with {} of {} batches",
                        have.count(),
                        have.len()
                    );
                }
                self.storage.receive(flow, incoming);
                self.stack.at(self.clock.now(), &mut self.storage).accept(flow, &have);
            }
            Ok(Prepared::Delivered) => {
                if let Some(reception) = self.receptions.get(&flow).cloned() {
                    self.accept_whole(&reception.manifest);
                }
            }
            Err(why) => {
                self.receptions.remove(&flow);
                self.refuse(flow, why);
            }
        }
    }

    /// The file is there already: the stack asks for its verification, which finds it under its name.
    fn accept_whole(&mut self, manifest: &Manifest) {
        let all = BatchSet::all(manifest.geometry.batches());
        self.stack.at(self.clock.now(), &mut self.storage).accept(manifest.flow, &all);
    }

    fn assembled(&mut self, flow: FlowId) {
        let Some(Reception { inbox, manifest }) = self.receptions.get(&flow).cloned() else {
            // Received before this start.
            return self.stack.at(self.clock.now(), &mut self.storage).delivered(flow);
        };
        self.storage.close(flow);
        let list = self.delivered.file();
        let work = move || {
            let path = deliver(&inbox, &manifest)?;
            let delivery = Delivery { hash: manifest.hash, path: Some(path) };
            log_failure("delivered", list.and_then(|list| append_delivery(&list, flow, &delivery)));
            Ok(delivery)
        };
        self.handle.work(work, move |node, finished| {
            if node.receptions.contains_key(&flow) {
                node.finished(flow, finished);
            }
        });
    }

    fn finished(&mut self, flow: FlowId, finished: Result<Delivery, Refusal>) {
        match finished {
            Ok(delivery) => {
                self.discard(flow);
                let path = delivery.path.as_deref().map(Path::display);
                tracing::info!(
                    "{flow}: received {}",
                    path.map_or(String::new(), |p| p.to_string())
                );
                self.delivered.learn(flow, delivery);
                self.stack.at(self.clock.now(), &mut self.storage).delivered(flow);
            }
            Err(why) => {
                // What is whole but finds no place stays for another start; what is corrupt does not.
                if why == Refusal::Corrupt {
                    self.discard(flow);
                }
                self.refuse(flow, why);
            }
        }
    }

    fn refuse(&mut self, flow: FlowId, why: Refusal) {
        self.stack.at(self.clock.now(), &mut self.storage).refuse(flow, why);
    }

    /// Forgets a reception, and what lies in the inbox of it.
    pub(super) fn discard(&mut self, flow: FlowId) {
        self.elsewhere.remove(&flow);
        if let Some(Reception { inbox, .. }) = self.receptions.remove(&flow) {
            self.storage.close(flow);
            self.handle.work(move || discard(&inbox, flow), |_, ()| ());
        }
    }

    /// A transfer ended: it is not to be resumed.
    pub(super) fn forget_outgoing(&mut self, flow: FlowId) {
        if self.sources.contains_key(&flow) {
            self.storage.close(flow);
            self.outgoing_news.remove(&flow);
            let journal = self.state.outgoing();
            self.handle
                .work(move || journal.remove(flow), |_, removed| log_failure("outgoing", removed));
        }
    }
}

fn log_failure(what: &str, result: io::Result<()>) {
    if let Err(e) = result {
        tracing::warn!("{what} cannot be saved: {e}");
    }
}
