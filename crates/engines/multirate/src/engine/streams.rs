//! The application's side of the engine: streams that it sends, groups that it joins.

use super::Multirate;
use crate::frame::DataHeader;
use crate::source::LocalSource;
use crate::utility::Utility;
use ncmesh_engine::stream::{
    NewStream, StreamError, StreamPacketError, StreamStatus, UtilityConfig, UtilityError,
};
use ncmesh_engine::{Context, StreamEngine};
use ncmesh_wire::FlowId;

/// Xi of utilities that need one and set none, Mbit/s.
const DEFAULT_XI: f64 = 1.0;
/// Factor by which a slope may exceed theta, for rounding.
const ROUNDING: f64 = 1.0 + 1e-9;

impl StreamEngine for Multirate {
    fn longest(&self, mtu: usize) -> usize {
        mtu.saturating_sub(DataHeader::LEN)
    }

    fn open(&mut self, cx: &mut Context<'_>, stream: NewStream<'_>) -> Result<FlowId, StreamError> {
        if stream.deadline.is_some() {
            return Err(StreamError::NoDeadlines);
        }

        // The tree grows from the reports of receivers. Until the first one, packets that enter the
        // stream find no child.
        let flow = self.sessions.open(cx, stream, (), LocalSource::default())?;
        self.update(cx);
        Ok(flow)
    }

    fn close(&mut self, cx: &mut Context<'_>, group: &str) -> bool {
        let was_open = self.sessions.close(cx, group);
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
        let session = self.sessions.sending(flow, layer, packet.len(), |_| longest)?;

        // The packet enters now if this slot still takes packets. Otherwise it waits.
        let source = session.part.source.as_mut();
        if !source.ok_or(StreamPacketError::Unknown)?.push(layer, packet) {
            return Err(StreamPacketError::Burst);
        }
        self.admit_packets(cx, flow);
        Ok(())
    }

    fn join(
        &mut self,
        cx: &mut Context<'_>,
        group: &str,
        utility: UtilityConfig,
    ) -> Result<(), StreamError> {
        let utility = self.complete_utility(utility)?;
        self.sessions.join(group, utility)?;

        // Streams that are known already begin at once, later ones when they are announced.
        let flows: Vec<FlowId> = self.sessions.to(group).collect();
        flows.into_iter().for_each(|flow| self.start_receiving(cx, flow));
        self.update(cx);
        Ok(())
    }

    fn leave(&mut self, cx: &mut Context<'_>, group: &str) -> bool {
        let joined = self.sessions.leave(group).is_some();
        if joined {
            self.report_soon(cx);
        }
        self.update(cx);
        joined
    }

    fn groups(&self) -> Vec<String> {
        self.sessions.joined.keys().cloned().collect()
    }

    fn streams(&self) -> Vec<StreamStatus> {
        let open = self.sessions.known.values().filter(|session| !session.part.has_ended());
        open.map(|session| session.status(|to| self.rate(to))).collect()
    }
}

impl Multirate {
    /// Returns a utility with defaults for the settings that were left out. Curves are as steep at
    /// rate 0 as theta allows, so that different rates have clearly different pressures. With a
    /// minimum rate they are half as steep, and the penalty takes the rest.
    ///
    /// # Errors
    /// [`StreamError`] if a setting is out of range, or the slope exceeds theta.
    fn complete_utility(&self, mut config: UtilityConfig) -> Result<Utility, StreamError> {
        // The slope is proportional to the weight, so the slope with weight 1 gives the weight that
        // reaches the steepest slope.
        let theta = self.parameters.theta;
        if matches!(config.name.as_str(), "log" | "alpha_fair" | "max_min") {
            config.xi = config.xi.or(Some(DEFAULT_XI));
            if config.weight.is_none() {
                config.weight = Some(1.0);
                let steepest = if config.minimum.is_some() { theta / 2.0 } else { theta };
                config.weight = Some(steepest / slope(&config)?);
            }
        }

        // The penalty is as large as theta leaves room for: below the minimum the slopes of curve
        // and penalty add up (30).
        if config.minimum.is_some() && config.penalty.is_none() {
            config.penalty = Some((theta - slope(&config)?).max(0.0));
        }

        // A steeper slope than theta would break the bounds on queues (Lemma 2). Policies without
        // utilities have no theta.
        let utility = Utility::try_from(config)?;
        let slope = utility.steepest();
        if slope > theta * ROUNDING && self.config.policy.has_utilities() {
            return Err(StreamError::TooSteep { slope, theta });
        }
        Ok(utility)
    }
}

/// Returns the slope of a utility at rate 0 without its minimum.
fn slope(config: &UtilityConfig) -> Result<f64, UtilityError> {
    let free = UtilityConfig { minimum: None, penalty: None, ..config.clone() };
    Ok(Utility::try_from(free)?.steepest())
}
