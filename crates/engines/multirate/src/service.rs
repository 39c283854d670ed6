//! What an application asks of the engine.

use super::Utility;
use super::engine::{MAX_SESSIONS, Multirate};
use super::frame::{Announcement, Header};
use super::session::{Own, Session};
use ncmesh_engine::Context;
use ncmesh_engine::StreamEngine;
use ncmesh_engine::stream::{
    StreamError, StreamPacketError, StreamStatus, check_name, check_names,
};
use ncmesh_engine::stream::{UtilityConfig, UtilityError};
use ncmesh_wire::FlowId;
use rand_core::RngCore;

/// Of utilities that need it and say nothing, Mbit/s.
const XI: f64 = 1.0;
/// A slope may exceed theta by rounding.
const ROUNDING: f64 = 1.0 + 1e-9;

impl StreamEngine for Multirate {
    fn longest(&self, mtu: usize) -> usize {
        mtu.saturating_sub(Header::LEN)
    }

    fn open(
        &mut self,
        cx: &mut Context<'_>,
        group: &str,
        layers: &[String],
    ) -> Result<FlowId, StreamError> {
        check_names(group, layers)?;
        if self.own(group).is_some() {
            return Err(StreamError::Busy(group.to_owned()));
        }
        if self.sessions.len() >= MAX_SESSIONS {
            return Err(StreamError::Full);
        }
        let flow = FlowId { source: cx.me, serial: cx.rng.next_u32() };
        let (layers, sent) = (layers.to_vec(), vec![0; layers.len()]);
        let announcement = Announcement { flow, version: 1, group: group.to_owned(), layers, sent };
        if announcement.len() > cx.mtu {
            return Err(StreamError::LongNames);
        }
        let mut session = Session::new(announcement, cx.now);
        session.own = Some(Own::default());
        self.sessions.insert(flow, session);
        self.flood.publish(flow, 1, cx.now, cx.rng);
        self.settle(cx);
        Ok(flow)
    }

    fn close(&mut self, cx: &mut Context<'_>, group: &str) -> bool {
        let Some(flow) = self.own(group) else { return false };
        if let Some(session) = self.sessions.get_mut(&flow) {
            session.end();
            session.announce(session.announcement.version + 1, cx.now);
            self.flood.publish(flow, session.announcement.version, cx.now, cx.rng);
        }
        self.settle(cx);
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
        let session = self.sessions.get_mut(&flow).ok_or(StreamPacketError::Unknown)?;
        let own = session.own.as_mut().filter(|_| layer < session.layers.len());
        let own = own.ok_or(StreamPacketError::Unknown)?;
        if !own.offer(layer, packet) {
            return Err(StreamPacketError::Burst);
        }
        self.enter(cx, flow);
        Ok(())
    }

    fn join(
        &mut self,
        cx: &mut Context<'_>,
        group: &str,
        utility: UtilityConfig,
    ) -> Result<(), StreamError> {
        check_name("group", group)?;
        if self.wishes.len() >= MAX_SESSIONS && !self.wishes.contains_key(group) {
            return Err(StreamError::Full);
        }
        let utility = self.checked(utility)?;
        self.wishes.insert(group.to_owned(), utility);
        let flows: Vec<FlowId> = self.of_group(group).collect();
        flows.into_iter().for_each(|flow| self.take_up(cx, flow));
        self.settle(cx);
        Ok(())
    }

    fn leave(&mut self, cx: &mut Context<'_>, group: &str) -> bool {
        let joined = self.wishes.remove(group).is_some();
        for session in self.sessions.values_mut().filter(|session| *session.group == *group) {
            if session.taking.take().is_some() {
                session.part();
            }
        }
        if joined {
            self.report_soon(cx);
        }
        self.settle(cx);
        joined
    }

    fn groups(&self) -> Vec<String> {
        self.wishes.keys().cloned().collect()
    }

    fn streams(&self) -> Vec<StreamStatus> {
        let open = self.sessions.values().filter(|session| !session.has_ended());
        open.map(|session| session.status(|to| self.rate(to))).collect()
    }
}

impl Multirate {
    /// The stream that this node sends to `group`.
    fn own(&self, group: &str) -> Option<FlowId> {
        self.of_group(group).find(|flow| self.sessions[flow].own.is_some())
    }

    fn of_group(&self, group: &str) -> impl Iterator<Item = FlowId> {
        let of_group = self.sessions.iter().filter(move |(_, session)| *session.group == *group);
        of_group.map(|(flow, _)| *flow)
    }

    /// A utility as asked for, what is left out filled in. Curves are as steep at rate 0 as theta lets them be, so that
    /// pressure tells rates well apart; with a minimum rate half as steep, for its penalty is as large as theta leaves
    /// room for.
    fn checked(&self, mut config: UtilityConfig) -> Result<Utility, StreamError> {
        let theta = self.parameters.theta;
        if matches!(config.name.as_str(), "log" | "alpha_fair" | "max_min") {
            config.xi = config.xi.or(Some(XI));
            if config.weight.is_none() {
                config.weight = Some(1.0);
                let steepest = if config.minimum.is_some() { theta / 2.0 } else { theta };
                config.weight = Some(steepest / slope(&config)?);
            }
        }
        if config.minimum.is_some() && config.penalty.is_none() {
            config.penalty = Some((theta - slope(&config)?).max(0.0));
        }
        let utility = Utility::try_from(config)?;
        let slope = utility.steepest();
        if slope > theta * ROUNDING && self.config.policy.has_utilities() {
            return Err(StreamError::TooSteep { slope, theta });
        }
        Ok(utility)
    }
}

/// How steep a utility is at rate 0, its minimum left out.
fn slope(config: &UtilityConfig) -> Result<f64, UtilityError> {
    let free = UtilityConfig { minimum: None, penalty: None, ..config.clone() };
    Ok(Utility::try_from(free)?.steepest())
}
