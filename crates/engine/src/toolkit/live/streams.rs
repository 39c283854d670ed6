//! The streams that a node knows, and the groups that it joined.

use super::announcement::{ANNOUNCEMENT, Announcement, Contents};
use super::part::{Live, Part};
use crate::context::Context;
use crate::counters::DropReason;
use crate::stream::{NewStream, StreamError, StreamPacketError, check_name, check_names};
use crate::time::{Duration, Instant};
use crate::toolkit::flood::Flood;
use crate::transmission::Filled;
use ncmesh_wire::{FlowId, NodeId, Record, Writer};
use rand_core::RngCore;
use std::collections::BTreeMap;

/// Most streams that a node knows, and most groups that it joins.
pub const MAX_STREAMS: usize = 32;
/// Time without an announcement after which a stream is forgotten.
const STREAM_TIMEOUT: Duration = Duration::from_secs(22);

/// The streams that a node knows. `J` is what a scheme keeps of a group that was joined.
#[derive(Debug)]
pub struct Streams<L: Live, J> {
    /// Streams by their ids.
    pub known: BTreeMap<FlowId, L>,
    /// Groups that this node has joined.
    pub joined: BTreeMap<String, J>,
    /// Announcements that are being flooded.
    flood: Flood<FlowId, u32>,
}

impl<L: Live, J> Default for Streams<L, J> {
    fn default() -> Self {
        Self { known: BTreeMap::new(), joined: BTreeMap::new(), flood: Flood::new() }
    }
}

impl<L: Live, J> Streams<L, J> {
    // ---- the application's side

    /// Returns the stream that this node sends to `group`.
    pub fn own(&self, group: &str) -> Option<FlowId> {
        self.to(group).find(|flow| self.known[flow].part().source.is_some())
    }

    /// Lists the streams to `group` that are known here.
    pub fn to(&self, group: &str) -> impl Iterator<Item = FlowId> {
        let streams = self.known.iter().filter(move |(_, live)| *live.part().group == *group);
        streams.map(|(flow, _)| *flow)
    }

    /// Begins a stream of this node.
    ///
    /// # Errors
    /// [`StreamError`] if there can be no such stream.
    pub fn open(
        &mut self,
        cx: &mut Context<'_>,
        stream: NewStream<'_>,
        terms: L::Terms,
        source: L::Source,
    ) -> Result<FlowId, StreamError>
    where
        Announcement<L::Terms>: for<'a> Record<'a>,
    {
        let NewStream { group, layers, .. } = stream;

        // One stream of this node for each group, so that a group names it in `close`.
        check_names(group, layers)?;
        if self.own(group).is_some() {
            return Err(StreamError::Busy(group.to_owned()));
        }
        if !self.make_room(cx.me) {
            return Err(StreamError::Full);
        }

        // The serial number is random, so that a source that restarts does not reuse it.
        let flow = FlowId { source: cx.me, serial: cx.rng.next_u32() };
        let sent = vec![0; layers.len()];
        let contents = Contents { group: group.to_owned(), layers: layers.to_vec(), sent };
        let announcement = Announcement { flow, version: 1, terms, contents };

        // Names that do not fit a frame could never be announced.
        let mut body = Vec::new();
        announcement.put(&mut Writer::new(&mut body));
        if body.len() > cx.mtu {
            return Err(StreamError::LongNames);
        }
        let mut live = L::new(Part::new(announcement, cx.now), cx.now);
        live.part_mut().source = Some(source);
        self.known.insert(flow, live);
        self.flood.publish(flow, 1, cx.now, cx.rng);
        Ok(flow)
    }

    /// Ends the stream that this node sends to `group`. Returns whether there was one.
    pub fn close(&mut self, cx: &mut Context<'_>, group: &str) -> bool {
        let Some(flow) = self.own(group) else { return false };

        // The stream stays, to announce the end until every neighbour has heard of it.
        if let Some(live) = self.known.get_mut(&flow) {
            live.part_mut().end();
            live.clear();
            let version = live.part().announcement.version.saturating_add(1);
            announce_after(live, version, cx.now);
            self.flood.publish(flow, live.part().announcement.version, cx.now, cx.rng);
        }

        true
    }

    /// Returns a stream that this node sends, for a packet of `layer` of this many bytes.
    ///
    /// # Errors
    /// [`StreamPacketError`] if it cannot be taken.
    pub fn sending(
        &mut self,
        flow: FlowId,
        layer: usize,
        bytes: usize,
        longest: impl Fn(usize) -> usize,
    ) -> Result<&mut L, StreamPacketError> {
        let live = self.known.get_mut(&flow).ok_or(StreamPacketError::Unknown)?;
        let longest = longest(live.part().layers.len());
        match bytes {
            0 => return Err(StreamPacketError::Empty),
            _ if bytes > longest => return Err(StreamPacketError::TooLong { bytes, longest }),
            _ => {}
        }

        // Only this node's own streams, and layers that they have.
        let is_sent = live.part().source.is_some() && layer < live.part().layers.len();
        if is_sent { Ok(live) } else { Err(StreamPacketError::Unknown) }
    }

    /// Joins a group. [`start_receiving`](Self::start_receiving) follows for each stream to it.
    ///
    /// # Errors
    /// [`StreamError`] if the name is not allowed, or there are too many groups.
    pub fn join(&mut self, group: &str, joined: J) -> Result<(), StreamError> {
        check_name("group", group)?;
        // A group that is joined again only changes how it is received, so it needs no room.
        if self.joined.len() >= MAX_STREAMS && !self.joined.contains_key(group) {
            return Err(StreamError::Full);
        }
        self.joined.insert(group.to_owned(), joined);
        Ok(())
    }

    /// Leaves a group. Returns the streams that this node received, unless it had not joined.
    ///
    /// It stays in their trees as a relay, if it has children.
    pub fn leave(&mut self, group: &str) -> Option<Vec<FlowId>> {
        self.joined.remove(group)?;
        let mut received = Vec::new();

        // All streams to the group end here, as far as they were received.
        for flow in self.to(group).collect::<Vec<_>>() {
            if let Some(live) = self.known.get_mut(&flow)
                && live.part_mut().receiver.take().is_some()
            {
                live.note_departure();
                received.push(flow);
            }
        }

        Some(received)
    }

    /// Makes this node a receiver of a stream if it has joined its group. Returns whether it is one
    /// now that was none before, or begins again.
    pub fn start_receiving(
        &mut self,
        flow: FlowId,
        receiver: impl FnOnce(&J) -> L::Receiver,
    ) -> bool {
        let Some(live) = self.known.get_mut(&flow) else { return false };
        let part = live.part_mut();
        let Some(joined) = self.joined.get(&*part.group) else { return false };

        // A source does not receive its own stream.
        if part.source.is_some() || part.has_ended() {
            return false;
        }
        part.receiver = Some(receiver(joined));
        true
    }

    // ---- announcements

    /// Handles an announcement: a stream is new, has ended, or goes on. Returns whether it begins,
    /// so that this node may become a receiver of it.
    pub fn handle_announcement(
        &mut self,
        cx: &mut Context<'_>,
        sender: NodeId,
        heard: Announcement<L::Terms>,
    ) -> bool {
        let flow = heard.flow;
        let version = heard.version;

        // A neighbour repeats an announcement of this node, or lies about it.
        if flow.source == cx.me {
            self.flood.overheard(&flow, &version, sender);
            self.supersede(cx, &heard);
            return false;
        }

        let mut begins = false;
        match self.known.get_mut(&flow) {
            // The end of a stream that is not known here: there is nothing to end or to pass on.
            None if heard.contents.layers.is_empty() => return false,
            None => {
                if !self.make_room(flow.source) {
                    cx.counters.drop(DropReason::Full);
                    return false;
                }
                self.known.insert(flow, L::new(Part::new(heard, cx.now), cx.now));
                self.flood.publish(flow, version, cx.now, cx.rng);
                begins = true;
            }
            Some(live) if version > live.part().announcement.version => {
                // Group and layers of a stream never change, so a later announcement only updates
                // its counts or ends it. An end that was a lie is revoked by the source's next
                // announcement, with which the stream begins again.
                let ends = heard.contents.layers.is_empty();
                begins = live.part().has_ended() && !ends;
                if ends {
                    live.part_mut().end();
                    live.clear();
                } else if begins {
                    *live = L::new(Part::new(heard.clone(), cx.now), cx.now);
                }
                live.part_mut().handle_announcement(version, heard.contents.sent, cx.now);
                self.flood.publish(flow, version, cx.now, cx.rng);
            }

            // An old announcement. Its sender has it, which the flood takes note of below.
            Some(_) => {}
        }

        self.flood.overheard(&flow, &version, sender);
        begins
    }

    /// Makes room for one more stream of `source`. Returns whether there is room.
    ///
    /// When all places are taken, the source that holds most of them gives one up to a source that
    /// would hold fewer. So a node that announces any number of streams takes the places that no
    /// other source needs, and no more.
    fn make_room(&mut self, source: NodeId) -> bool {
        if self.known.len() < MAX_STREAMS {
            return true;
        }

        let mut held: BTreeMap<NodeId, usize> = BTreeMap::new();
        for flow in self.known.keys() {
            *held.entry(flow.source).or_default() += 1;
        }
        let own = held.get(&source).copied().unwrap_or(0);

        // This node's own streams end by a command of its host only.
        let is_own = |live: &L| live.part().source.is_some();
        let others = self.known.iter().filter(|(_, live)| !is_own(live));
        let greedy = others.map(|(flow, _)| flow.source).max_by_key(|other| held[other]);
        let Some(greedy) = greedy.filter(|other| held[other] > own + 1) else { return false };

        // One that this node does not receive goes first, and of these one that it does not relay.
        let use_here = |live: &L| (live.part().receiver.is_some(), live.part().takes_part());
        let streams = self.known.iter();
        let streams = streams.filter(|(flow, live)| flow.source == greedy && !is_own(live));
        let least = streams.min_by_key(|(flow, live)| (use_here(live), flow.serial));
        let Some(flow) = least.map(|(flow, _)| *flow) else { return false };
        self.known.remove(&flow);
        self.flood.withdraw(&flow);
        true
    }

    /// Announces one of this node's own streams again if another node announced it with a later
    /// version. The new announcement replaces the false one everywhere.
    fn supersede(&mut self, cx: &mut Context<'_>, heard: &Announcement<L::Terms>) {
        let live = self.known.get_mut(&heard.flow);
        // Another node cannot take a stream over: the source's version always becomes the latest
        // one.
        let live = live.filter(|live| live.part().source.is_some());
        let Some(live) = live.filter(|l| heard.version > l.part().announcement.version) else {
            return;
        };
        announce_after(live, heard.version, cx.now);
        self.flood.publish(heard.flow, live.part().announcement.version, cx.now, cx.rng);
    }

    /// Repeats the announcements of this node's own streams.
    pub fn announce_again(&mut self, cx: &mut Context<'_>) {
        for (flow, live) in self.known.iter_mut().filter(|(_, l)| l.part().source.is_some()) {
            if cx.now.since(live.part().announced_at) >= live.announce_interval() {
                announce_after(live, live.part().announcement.version, cx.now);
                self.flood.publish(*flow, live.part().announcement.version, cx.now, cx.rng);
            }
        }
    }

    /// Removes streams whose source is silent. This node's own streams end only by
    /// [`close`](Self::close).
    pub fn remove_silent(&mut self, cx: &Context<'_>) {
        let flood = &mut self.flood;
        self.known.retain(|flow, live| {
            let is_own = live.part().source.is_some();
            let keep = is_own || cx.now.since(live.part().announced_at) < STREAM_TIMEOUT;
            if !keep {
                flood.withdraw(flow);
            }
            keep
        });

        // Announcements that all neighbours have need no repetition.
        self.flood.drop_acknowledged(|| cx.topology.links_from(cx.me).map(|(to, _)| to));
    }

    /// Returns the first time later than `after` at which an announcement or a stream is due.
    pub fn poll_timeout(&self, after: Instant) -> Option<Instant> {
        let due = self.known.values().map(|live| {
            let is_own = live.part().source.is_some();
            let interval = if is_own { live.announce_interval() } else { STREAM_TIMEOUT };
            live.part().announced_at + interval
        });
        let due = due.filter(|at| *at > after).min();
        [due, self.flood.poll_timeout(after)].into_iter().flatten().min()
    }

    /// Returns whether an announcement is due.
    pub fn is_due(&self, now: Instant) -> bool {
        self.flood.due(now).next().is_some()
    }

    /// Writes the announcement that is due first, if there is one.
    pub fn fill_announcement(&mut self, cx: &mut Context<'_>, out: &mut Vec<u8>) -> Option<Filled>
    where
        Announcement<L::Terms>: for<'a> Record<'a>,
    {
        let flow = *self.flood.due(cx.now).next()?;
        let start = out.len();
        if let Some(live) = self.known.get(&flow) {
            live.part().announcement.put(&mut Writer::new(out));
        }

        // The stream may have been forgotten, or its source may allow longer frames than this
        // node. Such an announcement is withdrawn, because it would stay due forever.
        let length = out.len() - start;
        if length == 0 || length > cx.mtu {
            out.truncate(start);
            self.flood.withdraw(&flow);
            return None;
        }

        self.flood.sent(&flow, cx.now, cx.rng);
        Some(Filled { kind: ANNOUNCEMENT, to: None })
    }
}

/// Prepares the source's next announcement, with the version after `version`.
fn announce_after<L: Live>(live: &mut L, version: u32, now: Instant) {
    let is_own = live.part().source.is_some();
    let sent = if is_own { Some(live.entered()) } else { None };
    let part = live.part_mut();

    // Saturates, because a neighbour may have claimed the largest version.
    part.announcement.version = version.saturating_add(1);
    part.announced_at = now;
    if let Some(mut sent) = sent {
        sent.truncate(part.layers.len());
        part.announcement.contents.sent = sent;
    }
}
