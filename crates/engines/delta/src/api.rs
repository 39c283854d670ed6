//! The application's side of the engine: streams that this node sends, groups that it joins.

use crate::engine::{Delta, MAX_STREAMS};
use crate::frame::{Announcement, Head};
use crate::stream::Stream;
use ncmesh_engine::stream::{
    Sending, StreamError, StreamPacketError, StreamStatus, UtilityConfig, UtilityError, check_name,
    check_names,
};
use ncmesh_engine::toolkit::coder::{PREFIX, pack};
use ncmesh_engine::{Context, StreamEngine};
use ncmesh_wire::FlowId;
use rand_core::RngCore;

/// Utilities that receivers may name. Streams of this engine go by layers and deadlines; of a
/// utility, the minimum rate alone counts.
const UTILITIES: [&str; 5] = ["linear", "log", "alpha_fair", "max_min", "table"];

/// Layers for which the longest packet is stated. Each further one takes some bytes of it.
const USUAL_LAYERS: usize = 2;

/// Returns the longest packet of a stream with `layers`, bytes.
fn longest(mtu: usize, layers: usize) -> usize {
    mtu.saturating_sub(Head::room(layers) + PREFIX)
}

impl StreamEngine for Delta {
    fn longest(&self, mtu: usize) -> usize {
        longest(mtu, USUAL_LAYERS)
    }

    fn open(
        &mut self,
        cx: &mut Context<'_>,
        group: &str,
        layers: &[String],
    ) -> Result<FlowId, StreamError> {
        // One stream of this node for each group, so that a group names it in `close`.
        check_names(group, layers)?;
        if self.own_stream(group).is_some() {
            return Err(StreamError::Busy(group.to_owned()));
        }
        if self.streams.len() >= MAX_STREAMS {
            return Err(StreamError::Full);
        }

        // The serial number is random, so that a source that restarts does not reuse it.
        let flow = FlowId { source: cx.me, serial: cx.rng.next_u32() };
        let announcement = Announcement {
            flow,
            version: 1,
            deadline_ms: self.config.deadline().as_millis() as u16,
            group: group.to_owned(),
            layers: layers.to_vec(),
            sent: vec![0; layers.len()],
        };
        if announcement.len() > cx.mtu {
            return Err(StreamError::LongNames);
        }
        let mut stream = Stream::new(announcement, cx.now);
        stream.source = Some(Sending::default());
        self.streams.insert(flow, stream);
        self.flood.publish(flow, 1, cx.now, cx.rng);
        self.update(cx);
        Ok(flow)
    }

    fn close(&mut self, cx: &mut Context<'_>, group: &str) -> bool {
        let Some(flow) = self.own_stream(group) else { return false };
        // The stream stays, to announce the end until every neighbour has heard of it.
        if let Some(stream) = self.streams.get_mut(&flow) {
            stream.end();
            stream.announce_after(stream.announcement.version + 1, cx.now);
            self.flood.publish(flow, stream.announcement.version, cx.now, cx.rng);
        }
        self.update(cx);
        true
    }

    fn send(
        &mut self,
        cx: &mut Context<'_>,
        flow: FlowId,
        layer: usize,
        packet: &[u8],
    ) -> Result<(), StreamPacketError> {
        let stream = self.streams.get_mut(&flow).ok_or(StreamPacketError::Unknown)?;
        let longest = longest(cx.mtu, stream.layers.len().max(USUAL_LAYERS));
        match packet.len() {
            0 => return Err(StreamPacketError::Empty),
            bytes if bytes > longest => return Err(StreamPacketError::TooLong { bytes, longest }),
            _ => {}
        }
        let deadline = stream.announcement.deadline();
        let has_layer = layer < stream.layers.len();
        let sending = stream.source.as_mut().filter(|_| has_layer);
        let sending = sending.ok_or(StreamPacketError::Unknown)?;
        let lane = &mut stream.lanes[layer];
        if lane.is_used_up() {
            sending.refused += 1;
            return Err(StreamPacketError::Burst);
        }
        sending.packets[layer] += 1;
        lane.push(pack(packet), cx.now + deadline);
        Ok(())
    }

    fn join(
        &mut self,
        cx: &mut Context<'_>,
        group: &str,
        utility: UtilityConfig,
    ) -> Result<(), StreamError> {
        check_name("group", group)?;
        if !UTILITIES.contains(&utility.name.as_str()) {
            return Err(UtilityError::Unknown(utility.name).into());
        }
        if self.joined.len() >= MAX_STREAMS && !self.joined.contains_key(group) {
            return Err(StreamError::Full);
        }
        let minimum = utility.minimum.unwrap_or(0.0);
        if !(minimum.is_finite() && minimum >= 0.0) {
            return Err(StreamError::Utility(UtilityError::Setting {
                name: utility.name,
                setting: "minimum",
                value: minimum,
                allowed: "0 or more",
            }));
        }
        self.joined.insert(group.to_owned(), 1e6 * minimum);

        // Streams that are known already begin at once, later ones when they are announced.
        let flows: Vec<FlowId> = self.streams_to(group).collect();
        flows.into_iter().for_each(|flow| self.start_receiving(cx, flow));
        self.update(cx);
        Ok(())
    }

    fn leave(&mut self, cx: &mut Context<'_>, group: &str) -> bool {
        // The node stays in the trees as a relay, if it has next hops.
        let joined = self.joined.remove(group).is_some();
        let flows: Vec<FlowId> = self.streams_to(group).collect();
        for flow in flows {
            let Some(stream) = self.streams.get_mut(&flow) else { continue };
            if stream.receiver.take().is_some() {
                stream.note_departure();
                self.report_soon(cx, flow);
            }
        }
        self.update(cx);
        joined
    }

    fn groups(&self) -> Vec<String> {
        self.joined.keys().cloned().collect()
    }

    fn streams(&self) -> Vec<StreamStatus> {
        let open = self.streams.values().filter(|stream| !stream.has_ended());
        open.map(Stream::status).collect()
    }
}

impl Delta {
    /// Returns the stream that this node sends to `group`.
    fn own_stream(&self, group: &str) -> Option<FlowId> {
        self.streams_to(group).find(|flow| self.streams[flow].source.is_some())
    }

    /// Lists the streams to `group` that are known here.
    fn streams_to(&self, group: &str) -> impl Iterator<Item = FlowId> {
        let streams = self.streams.iter().filter(move |(_, stream)| *stream.group == *group);
        streams.map(|(flow, _)| *flow)
    }
}
