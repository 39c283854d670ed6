//! The application's side of the engine: streams that this node sends, groups that it joins.

use crate::engine::Live;
use crate::frame::Header;
use crate::session::Session;
use ncmesh_engine::stream::{
    Deadline, NewStream, Sending, StreamError, StreamPacketError, StreamStatus, UtilityConfig,
};
use ncmesh_engine::time::Duration;
use ncmesh_engine::toolkit::live::minimum_bps;
use ncmesh_engine::{Context, StreamEngine};
use ncmesh_wire::FlowId;

impl StreamEngine for Live {
    fn longest(&self, mtu: usize) -> usize {
        mtu.saturating_sub(Header::LEN)
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
        let longest = self.longest(cx.mtu);
        let session = self.streams.sending(flow, layer, packet.len(), |_| longest)?;
        let sending = session.part.source.as_mut().ok_or(StreamPacketError::Unknown)?;
        sending.packets[layer] += 1;

        // Numbers wrap, since a stream has no end.
        let number = session.layers[layer].next;
        session.layers[layer].next = number.wrapping_add(1);
        let header = Header::new(flow, layer, number, Duration::ZERO);
        self.pass_on(cx, &header, packet, Duration::ZERO);
        self.update(cx);
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
        let open = self.streams.known.values().filter(|session| !session.part.has_ended());
        open.map(Session::status).collect()
    }
}
