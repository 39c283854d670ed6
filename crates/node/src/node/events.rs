//! Events of the stack. [`ncmesh_host::files`] decides about files, which is done here on the disk;
//! packets go to the gateway, the measurements and the streams.

use super::measure::Measuring;
use super::{Moment, Node};
use crate::state::{Delivery, append_delivery};
use crate::store::delivery::deliver;
use crate::store::reception::{Prepared as Place, discard, prepare};
use crate::store::{Grown, place_whole};
use ncmesh_engine::Event;
use ncmesh_engine::file::{Manifest, ReceiverState, Refusal};
use ncmesh_engine::time::Instant;
use ncmesh_fleet::rollout;
use ncmesh_host::files::{Action, Attempt, Obstacle, Prepared};
use ncmesh_host::gateway::StackMesh;
use ncmesh_host::gateway::multicast::{GROUP_LAYER, is_group_name};
use ncmesh_host::measure::is_measurement;
use ncmesh_wire::{FlowId, NodeId};
use std::path::PathBuf;
use std::sync::Arc;

impl Node {
    /// Does what the stack asks for. Call it after every other call.
    pub fn handle_events(&mut self) {
        while let Some(event) = self.stack.poll_event() {
            self.log(&event);
            // A source that withdrew leaves a part, which is shown from now on.
            if matches!(event, Event::Withdrawn(_)) {
                self.inbox.look_soon(self.clock.now());
            }

            let known = match &event {
                Event::Announced(manifest) => self.known(manifest),
                _ => None,
            };
            match self.files.handle_event(event, self.clock.now(), |_| known) {
                // Packets of measurements and roll-outs end here; all others go to the tunnel.
                Some(Event::Packet { from, packet }) if is_measurement(&packet) => {
                    self.handle_measurement(from, &packet);
                }
                Some(Event::Packet { from, packet }) if rollout::Packet::is_one(&packet) => {
                    self.handle_fleet_packet(from, &packet);
                }
                Some(Event::Packet { from, packet }) => self.arrived(from, packet),
                // A stream of a multicast group belongs to the tunnel, not to the ports.
                Some(Event::StreamPacket { flow, group, layer, packet })
                    if is_group_name(&group) && &*layer == GROUP_LAYER =>
                {
                    self.with_tunnel(|tunnel, moment| {
                        tunnel.handle_group_packet(flow.source, &group, packet, moment);
                    });
                }
                Some(Event::StreamPacket { flow, group, layer, packet }) => {
                    self.streams.play(flow, &group, &layer, &packet, self.clock.now());
                }
                _ => {}
            }

            self.do_file_actions();
        }

        let streams = self.streams.scheme().ok();
        self.with_tunnel(|tunnel, moment| tunnel.drain(streams, moment));

        // This comes after every event of the stack, and measurements are rare.
        if !self.measuring.is_idle() {
            self.with_mesh(Measuring::drain);
        }

        let now = self.clock.now();
        self.savers.save(&self.stack, self.files.elsewhere(), &self.state, &self.handle, now);
    }

    /// Handles a packet of a measurement that came through the mesh.
    pub(super) fn handle_measurement(&mut self, from: NodeId, packet: &[u8]) {
        let handled =
            self.with_mesh(|measuring, mesh, now| measuring.handle_packet(from, packet, mesh, now));
        if let Err(why) = handled {
            self.stack.at(self.clock.now(), &mut self.storage).note_drop(why);
        }
    }

    fn with_mesh<R>(
        &mut self,
        call: impl FnOnce(&mut Measuring, &mut StackMesh<'_>, Instant) -> R,
    ) -> R {
        let scheme = self.packet_scheme().map(|choice| choice.scheme);
        let mut moment = Moment::now(&self.clock, &mut self.stack, &mut self.storage);
        let now = moment.now;
        call(&mut self.measuring, &mut moment.mesh(scheme), now)
    }

    /// Takes a packet that came through the mesh for the host.
    fn arrived(&mut self, from: NodeId, packet: Vec<u8>) {
        if self.tunnel.is_none() {
            let from = self.name_of(from);
            tracing::debug!("{} bytes from {from} dropped: no [tunnel] here", packet.len());
        }
        self.with_tunnel(|tunnel, moment| tunnel.arrived(from, packet, moment));
    }

    fn log(&self, event: &Event) {
        match event {
            Event::Announced(manifest) => {
                let name = &manifest.name;
                let size = manifest.geometry.size();
                tracing::info!("{}: {name:?}, {size} bytes, announced", manifest.flow);
            }
            Event::Withdrawn(flow) => tracing::info!("{flow}: withdrawn, what is there is kept"),
            Event::Suspended(flow) => {
                tracing::info!("{flow}: its source is silent, it makes room for another");
            }
            Event::ReceiverDone(flow, node) => {
                let name = self.name_of(*node);
                // A receiver that refuses is done as well, but the sender should hear why.
                match self.receiver_state(*flow, *node) {
                    Some(ReceiverState::Refused(why)) => {
                        tracing::warn!("{flow}: {name} does not take it: {}", why.reason());
                    }
                    _ => tracing::info!("{flow}: nothing more for {name}"),
                }
            }
            Event::ReceiverObjected(flow, node) => {
                let name = self.name_of(*node);
                tracing::warn!("{flow}: {name} was said to be done, and denies it");
            }
            Event::SendEnded(flow) => tracing::info!("{flow}: all receivers are said to be done"),
            Event::SendConfirmed(flow) => {
                // The outcome is told once, with how many of the receivers have the file.
                let transfers = self.stack.transfers();
                let receivers =
                    transfers.iter().filter(|t| t.flow == *flow).flat_map(|t| &t.receivers);
                let states: Vec<ReceiverState> = receivers.map(|r| r.state).collect();
                let complete = states.iter().filter(|s| **s == ReceiverState::Complete).count();
                let all = states.len();

                if complete == all {
                    tracing::info!("{flow}: sent");
                } else {
                    tracing::warn!("{flow}: sent to {complete} of {all} receivers");
                }
            }
            Event::SendFailed(flow, failure) => tracing::error!("{flow}: {failure}"),
            // Storage logs what it could not write, and what is assembled is logged when verified.
            Event::Unwritable(_)
            | Event::Assembled(_)
            | Event::Impersonated
            | Event::Packet { .. }
            | Event::StreamPacket { .. } => {}
        }
    }

    /// Returns the state of a receiver of a file that this node sends.
    fn receiver_state(&self, flow: FlowId, node: NodeId) -> Option<ReceiverState> {
        let transfers = self.stack.transfers();
        let sent = transfers.iter().find(|t| t.flow == flow)?;
        sent.receivers.iter().find(|r| r.node == node).map(|r| r.state)
    }

    /// Does what was decided about files. What may block is done on other threads.
    pub(super) fn do_file_actions(&mut self) {
        while let Some(action) = self.files.poll_action() {
            let now = self.clock.now();
            match action {
                Action::Prepare { attempt, place, manifest } => {
                    self.prepare(attempt, place, *manifest);
                }
                Action::Verify { attempt, place, manifest } => {
                    self.verify(attempt, place, *manifest);
                }
                Action::Accept(flow, have) => {
                    self.stack.at(now, &mut self.storage).accept(flow, &have);
                }
                Action::Refuse(flow, why) => {
                    // Each refusal has a line, except one that lasts for moments.
                    match why {
                        Refusal::BadName => {
                            tracing::warn!("{flow}: refused, its name is not possible here");
                        }
                        Refusal::NoInbox => tracing::warn!("{flow}: refused, there is no inbox"),
                        Refusal::NotAllowed if self.fleet.is_unwanted(flow) => {
                            tracing::warn!("{flow}: refused, no roll-out here waits for it");
                        }
                        Refusal::NotAllowed => {
                            let source = self.name_of(flow.source);
                            tracing::warn!("{flow}: refused, {source} is not in allow_from");
                        }

                        // It is asked again.
                        Refusal::Busy => {}
                        why => tracing::warn!("{flow}: refused, {}", why.reason()),
                    }

                    self.stack.at(now, &mut self.storage).refuse(flow, why);
                    self.note_fleet_refused(flow, why);
                }
                Action::Delivered(flow) => self.stack.at(now, &mut self.storage).delivered(flow),
                Action::Close(flow) => self.storage.close(flow),
                // Removing a large file may block for seconds.
                Action::Discard(flow, inbox) => {
                    self.storage.close(flow);
                    self.chores.persist("inbox", &self.handle, move || discard(&inbox, flow));
                }
                Action::NoteCancelled(manifest) => {
                    self.inbox.note_cancelled(&manifest, &self.chores, &self.handle);
                }
                Action::ForgetSent(flow) => self.forget_sent(flow),
            }
        }
    }

    /// Makes or finds the place of an announced file.
    fn prepare(&mut self, attempt: Attempt, inbox: PathBuf, manifest: Manifest) {
        let flow = manifest.flow;
        let mut limits = self.inbox.limits.space;
        // The images of roll-outs have a limit of their own.
        if self.fleet.is_place(&inbox) {
            limits.max_bytes = None;
        }
        let naming = self.inbox.limits.naming;

        // Reserving space and checking what an earlier start left reads the whole part.
        let work = move || prepare(&inbox, &manifest, &limits, naming);
        self.handle.work(work, move |node, place| {
            let (incoming, answer) = match place {
                Ok(Place::Receiving(incoming, have)) => {
                    if !have.is_empty() {
                        let count = have.count();
                        let all = have.len();
                        tracing::info!("{flow}: resumed with {count} of {all} generations");
                    }

                    (Some(incoming), Ok(Prepared::Receiving(have)))
                }
                Ok(Place::Delivered) => (None, Ok(Prepared::Delivered)),
                Err(why) => (None, Err(why)),
            };

            let now = node.clock.now();

            // The file may have been withdrawn meanwhile; then nothing is opened.
            if node.files.handle_prepared(flow, attempt, answer, now)
                && let Some(incoming) = incoming
            {
                node.storage.receive(flow, incoming);
            }
            node.do_file_actions();
        });
    }

    /// Places the files of trees that are whole.
    pub(super) fn place_trees(&mut self) {
        let limits = self.inbox.limits.space;
        for mut grown in self.storage.take_grown() {
            let flow = grown.manifest.flow;
            let work = move || {
                let Grown { inbox, manifest, have, placed } = &mut grown;
                let result = place_whole(inbox, manifest, have, placed, &limits);
                (grown, result)
            };

            self.handle.work(work, move |node, (grown, result)| {
                // Tried again with the next generation; at the end it counts.
                if let Err(e) = result {
                    tracing::warn!("{flow}: its files cannot be placed yet: {e}");
                }
                node.storage.put_placed(flow, grown.placed);
            });
        }
    }

    /// Verifies a whole file, gives it its name and notes it in the list of files delivered.
    fn verify(&mut self, attempt: Attempt, inbox: PathBuf, manifest: Manifest) {
        let flow = manifest.flow;
        self.storage.close(flow);

        let limits = self.inbox.limits.space;
        // The list is written after the file has its name, and before the source hears of it. A
        // crash in between verifies the file again, which finds it delivered.
        let list = self.inbox.delivered.file();
        let work = move || {
            let path = deliver(&inbox, &manifest, &limits)?;
            let delivery = Delivery { hash: manifest.hash, path: Some(path) };
            let noted = append_delivery(&list, flow, &delivery);
            Ok((delivery, noted, manifest))
        };

        self.handle.work(work, move |node, verified: Result<_, Obstacle>| {
            let (delivered, answer) = match verified {
                Ok(delivered) => (Some(delivered), Ok(())),
                Err(why) => (None, Err(why)),
            };

            let now = node.clock.now();
            if node.files.handle_verified(flow, attempt, answer, now)
                && let Some((delivery, noted, manifest)) = delivered
            {
                let list = node.inbox.delivered.file();
                let line = delivery.clone();
                node.chores.check_persisted(
                    "delivered",
                    &noted,
                    Arc::new(move || append_delivery(&list, flow, &line)),
                    now,
                );
                let path = delivery.path.clone().unwrap_or_default();
                tracing::info!("{flow}: received {}", path.display());
                node.inbox.delivered.learn(flow, delivery);
                if Self::is_fleet_file(&manifest) {
                    node.take_fleet_file(&manifest, &path);
                } else {
                    let sender = node.name_of(flow.source);
                    node.hooks.begin(&manifest, path, sender, &node.handle);
                }
            }

            node.do_file_actions();
        });
    }

    /// Closes a file that was sent, and takes it out of the journal of files to be resumed.
    fn forget_sent(&mut self, flow: FlowId) {
        self.storage.close(flow);
        let journal = self.state.outgoing();
        match self.sending.get(flow).map(|file| file.path.clone()) {
            Some(path) => self.forget_contents(flow, path),
            None => {
                self.chores.persist("outgoing", &self.handle, move || journal.remove(flow));
            }
        }

        self.send_waiting();
    }

    /// Takes a file out of the journal of files to be resumed, and removes contents that a client
    /// handed over.
    pub(super) fn forget_contents(&mut self, flow: FlowId, path: PathBuf) {
        let journal = self.state.outgoing();
        let spool = self.state.spool();
        self.chores.persist("outgoing", &self.handle, move || {
            journal.remove(flow)?;
            spool.remove(&path)
        });
    }
}
