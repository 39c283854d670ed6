//! The application's side of the engine: streams that this node sends, groups that it joins.

use crate::engine::Delta;
use crate::frame::Head;
use crate::stream::Stream;
use ncmesh_engine::stream::{
    Deadline, NewStream, Sending, StreamError, StreamPacketError, StreamStatus, UtilityConfig,
};
use ncmesh_engine::toolkit::coder::{PREFIX, pack};
use ncmesh_engine::toolkit::live::minimum_bps;
use ncmesh_engine::{Context, StreamEngine};
use ncmesh_wire::FlowId;

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

    fn open(&mut self, cx: &mut Context<'_>, stream: NewStream<'_>) -> Result<FlowId, StreamError> {
        let deadline = stream.deadline.unwrap_or(Deadline { ms: self.config.deadline_ms });
        let flow = self.streams.open(cx, stream, deadline, Sending::default())?;
        self.update(cx);
        Ok(flow)
    }

    fn close(&mut self, cx: &mut Context<'_>, group: &str) -> bool {
        let was_open = self.streams.close(cx, group);
        self.update(cx);
        was_open
    }

    fn send(
        &mut self,
        cx: &mut Context<'_>,
        flow: FlowId,
        layer: usize,
        packet: &[u8],
    ) -> Result<(), StreamPacketError> {
        // A stream of many layers has longer frames, and shorter packets.
        let longest = |layers: usize| longest(cx.mtu, layers.max(USUAL_LAYERS));
        let stream = self.streams.sending(flow, layer, packet.len(), longest)?;
        let deadline = stream.part.announcement.deadline();
        let sending = stream.part.source.as_mut().ok_or(StreamPacketError::Unknown)?;

        // A burst that the window cannot hold is refused, and counted.
        if stream.lanes[layer].is_used_up() {
            sending.refused += 1;
            return Err(StreamPacketError::Burst);
        }

        sending.packets[layer] += 1;
        stream.change_lane(layer, cx.now, |lane| lane.push(pack(packet), cx.now + deadline));
        Ok(())
    }

    fn join(
        &mut self,
        cx: &mut Context<'_>,
        group: &str,
        utility: UtilityConfig,
    ) -> Result<(), StreamError> {
        self.streams.join(group, minimum_bps(&utility)?)?;

        // Streams that are known already begin at once, later ones when they are announced.
        let flows: Vec<FlowId> = self.streams.to(group).collect();
        flows.into_iter().for_each(|flow| self.start_receiving(cx, flow));
        self.update(cx);
        Ok(())
    }

    fn leave(&mut self, cx: &mut Context<'_>, group: &str) -> bool {
        let received = self.streams.leave(group);
        for flow in received.iter().flatten() {
            self.report_soon(cx, *flow);
        }
        self.update(cx);
        received.is_some()
    }

    fn groups(&self) -> Vec<String> {
        self.streams.joined.keys().cloned().collect()
    }

    fn streams(&self) -> Vec<StreamStatus> {
        let open = self.streams.known.values().filter(|stream| !stream.part.has_ended());
        open.map(Stream::status).collect()
    }
}
