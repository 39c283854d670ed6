//! The application's side of the engine: streams that it sends, groups that it joins.

use super::{MAX_SESSIONS, Multirate};
use crate::frame::{Announcement, DataHeader};
use crate::session::Session;
use crate::source::LocalSource;
use crate::utility::Utility;
use ncmesh_engine::stream::{
    StreamError, StreamPacketError, StreamStatus, UtilityConfig, UtilityError, check_name,
    check_names,
};
use ncmesh_engine::{Context, StreamEngine};
use ncmesh_wire::FlowId;
use rand_core::RngCore;

/// Xi of utilities that need one and set none, Mbit/s.
const DEFAULT_XI: f64 = 1.0;
/// Factor by which a slope may exceed theta, for rounding.
const ROUNDING: f64 = 1.0 + 1e-9;

impl StreamEngine for Multirate {
    fn longest(&self, mtu: usize) -> usize {
        mtu.saturating_sub(DataHeader::LEN)
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
        if self.sessions.len() >= MAX_SESSIONS {
            return Err(StreamError::Full);
        }

        // The serial number is random, so that a source that restarts does not reuse it.
        let flow = FlowId { source: cx.me, serial: cx.rng.next_u32() };
        let (layers, sent) = (layers.to_vec(), vec![0; layers.len()]);
        let announcement = Announcement { flow, version: 1, group: group.to_owned(), layers, sent };
        if announcement.len() > cx.mtu {
            return Err(StreamError::LongNames);
        }

        // The tree grows from the reports of receivers. Until the first one, packets that enter the
        // stream find no child.
        let mut session = Session::new(announcement, cx.now);
        session.source = Some(LocalSource::default());
        self.sessions.insert(flow, session);
        self.flood.publish(flow, 1, cx.now, cx.rng);
        self.update(cx);
        Ok(flow)
    }

    fn close(&mut self, cx: &mut Context<'_>, group: &str) -> bool {
        let Some(flow) = self.own_stream(group) else { return false };
        // The session stays, to announce the end until every neighbour has heard of it.
        if let Some(session) = self.sessions.get_mut(&flow) {
            session.end();
            session.announce_after(session.announcement.version + 1, cx.now);
            self.flood.publish(flow, session.announcement.version, cx.now, cx.rng);
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
        let longest = self.longest(cx.mtu);
        match packet.len() {
            0 => return Err(StreamPacketError::Empty),
            bytes if bytes > longest => return Err(StreamPacketError::TooLong { bytes, longest }),
            _ => {}
        }

        // The packet enters now if this slot still takes packets. Otherwise it waits.
        let session = self.sessions.get_mut(&flow).ok_or(StreamPacketError::Unknown)?;
        let source = session.source.as_mut().filter(|_| layer < session.layers.len());
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
        check_name("group", group)?;
        if self.joined.len() >= MAX_SESSIONS && !self.joined.contains_key(group) {
            return Err(StreamError::Full);
        }
        let utility = self.complete_utility(utility)?;
        self.joined.insert(group.to_owned(), utility);

        // Streams that are known already begin at once, later ones when they are announced.
        let flows: Vec<FlowId> = self.streams_to(group).collect();
        flows.into_iter().for_each(|flow| self.start_receiving(cx, flow));
        self.update(cx);
        Ok(())
    }

    fn leave(&mut self, cx: &mut Context<'_>, group: &str) -> bool {
        // The node may stay in the trees as a relay, if it has children.
        let joined = self.joined.remove(group).is_some();
        for session in self.sessions.values_mut().filter(|session| *session.group == *group) {
            if session.receiver.take().is_some() {
                session.note_departure();
            }
        }
        if joined {
            self.report_soon(cx);
        }
        self.update(cx);
        joined
    }

    fn groups(&self) -> Vec<String> {
        self.joined.keys().cloned().collect()
    }

    fn streams(&self) -> Vec<StreamStatus> {
        let open = self.sessions.values().filter(|session| !session.has_ended());
        open.map(|session| session.status(|to| self.rate(to))).collect()
    }
}

impl Multirate {
    /// Returns the stream that this node sends to `group`.
    fn own_stream(&self, group: &str) -> Option<FlowId> {
        self.streams_to(group).find(|flow| self.sessions[flow].source.is_some())
    }

    /// Lists the streams to `group` that are known here.
    fn streams_to(&self, group: &str) -> impl Iterator<Item = FlowId> {
        let sessions = self.sessions.iter().filter(move |(_, session)| *session.group == *group);
        sessions.map(|(flow, _)| *flow)
    }

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
