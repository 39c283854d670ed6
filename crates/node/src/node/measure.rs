//! Measurements of the node: its own for the API, and its answers to other nodes'.

use crate::api::answers::{BandwidthRequest, Measured};
use crate::api::types::{ApiError, ErrorCode};
use ncmesh_engine::counters::DropReason;
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_host::gateway::StackMesh;
use ncmesh_host::measure::{self, Bandwidth, Outcome, RunSettings, SHORTEST};
use ncmesh_wire::NodeId;
use std::ops::RangeInclusive;
use tokio::sync::oneshot;

/// Tells a request for an echo the round trip, or that there was none.
type EchoWaiter = oneshot::Sender<Option<Duration>>;
/// Tells a request for a bandwidth run its result, or that the receiver does not answer.
type RunWaiter = oneshot::Sender<Option<Bandwidth>>;
/// Seconds for which a bandwidth run may send.
const SECONDS: RangeInclusive<f64> = 0.1..=60.0;
/// Rates of a bandwidth run, bit/s.
const RATES: RangeInclusive<f64> = 1e3..=1e11;

/// A node and its name.
pub(super) struct Named {
    pub id: NodeId,
    pub name: String,
}

/// A scheme, and the longest packet that it carries, bytes.
#[derive(Clone, Copy)]
pub(super) struct Carrying {
    pub scheme: &'static str,
    pub longest: usize,
}

/// A bandwidth run that goes on.
pub(crate) struct Running {
    settings: RunSettings,
    name: String,
    scheme: &'static str,
    /// Gets the result.
    pub(crate) result: oneshot::Receiver<Option<Bandwidth>>,
}

/// The measurements of a node.
pub(super) struct Measuring {
    runs: measure::Measurements<EchoWaiter, RunWaiter>,
}

impl Measuring {
    /// Returns a node without measurements, which names its own from this number on.
    pub(super) fn new(seed: u32) -> Self {
        Self { runs: measure::Measurements::new(seed) }
    }

    /// Sends an echo request. Returns what gets the round trip, at `until` at the latest.
    pub(super) fn echo(
        &mut self,
        to: NodeId,
        now: Instant,
        until: Instant,
    ) -> oneshot::Receiver<Option<Duration>> {
        let (waiter, answer) = oneshot::channel();
        self.runs.echo(to, waiter, now, until);
        answer
    }

    /// Begins a bandwidth run with a node, by a scheme that carries packets of up to `longest`
    /// bytes.
    ///
    /// # Errors
    /// [`ErrorCode::BadRequest`] if a value is not allowed; [`ErrorCode::Busy`] if a run is under
    /// way.
    pub(super) fn begin_run(
        &mut self,
        request: &BandwidthRequest,
        receiver: Named,
        by: Carrying,
        now: Instant,
    ) -> Result<Running, ApiError> {
        let Named { id: to, name } = receiver;
        let Carrying { scheme, longest } = by;

        let BandwidthRequest { seconds, bytes, rate_bps, .. } = *request;

        // Values are checked against what the scheme carries and the daemon can pace.
        let (least, most) = SECONDS.into_inner();
        let problem = if !SECONDS.contains(&seconds) {
            Some(format!("seconds = {seconds}: allowed is {least} to {most}"))
        } else if !(SHORTEST..=longest).contains(&bytes) {
            Some(format!("bytes = {bytes}: {scheme} carries packets of {SHORTEST} to {longest}"))
        } else {
            let rate = rate_bps.filter(|rate| !RATES.contains(rate));
            rate.map(|rate| format!("rate_bps = {rate}: allowed is 1 kbit/s to 100 Gbit/s"))
        };

        if let Some(problem) = problem {
            return Err(ApiError::new(ErrorCode::BadRequest, problem));
        }
        // One run at a time: two would measure each other.
        if self.runs.is_running() {
            let problem = "this node measures a bandwidth already; try again when that is over";
            return Err(ApiError::new(ErrorCode::Busy, problem));
        }

        let settings = RunSettings {
            to,
            bytes,
            duration: Duration::from_secs_f64(seconds),
            interval: rate_bps.map(|rate| Duration::from_secs_f64(bytes as f64 * 8.0 / rate)),
        };

        let (waiter, result) = oneshot::channel();
        self.runs.begin_run(settings, waiter, now);
        Ok(Running { settings, name, scheme, result })
    }

    /// Returns whether no measurement is under way.
    pub(super) fn is_idle(&self) -> bool {
        self.runs.is_idle()
    }

    /// Handles a packet of a measurement that came through the mesh.
    ///
    /// # Errors
    /// The reason to drop it.
    pub(super) fn handle_packet(
        &mut self,
        from: NodeId,
        packet: &[u8],
        mesh: &mut StackMesh<'_>,
        now: Instant,
    ) -> Result<(), DropReason> {
        self.runs.handle_packet(from, packet, mesh, now)
    }

    /// Sends packets of measurements that are due, and tells those who wait what came of theirs.
    pub(super) fn drain(&mut self, mesh: &mut StackMesh<'_>, now: Instant) {
        self.runs.drain(mesh, now);
        while let Some(outcome) = self.runs.poll_outcome() {
            // The request may have been given up.
            match outcome {
                Outcome::Echo(waiter, rtt) => drop(waiter.send(rtt)),
                Outcome::Bandwidth(waiter, result) => drop(waiter.send(result)),
            }
        }
    }

    /// Returns when the next packet of a measurement is due.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.runs.poll_timeout()
    }

    /// Forgets measurements of others that do not go on.
    pub(super) fn forget_idle(&mut self, now: Instant) {
        self.runs.forget_idle(now);
    }

    /// Returns the sizes of its tables: runs and echoes.
    #[cfg(test)]
    pub(super) fn sizes(&self) -> [usize; 2] {
        [self.runs.runs(), self.runs.echoes()]
    }
}

impl Running {
    /// Returns the answer of the API to the result.
    ///
    /// # Errors
    /// [`ErrorCode::UnreachableReceiver`] if the receiver did not answer.
    pub(crate) fn measured(self, result: Option<Bandwidth>) -> Result<Measured, ApiError> {
        let Self { settings, name, scheme, .. } = self;
        let Some(result) = result else {
            let problem = format!(
                "{name} does not answer: the path to it is gone (`ncmesh peers` shows who can be \
                 reached), or its ncmesh is older than this one"
            );
            return Err(ApiError::new(ErrorCode::UnreachableReceiver, problem));
        };

        Ok(Measured {
            id: settings.to.0,
            name,
            scheme: scheme.into(),
            seconds: result.elapsed.as_secs_f64(),
            bytes: settings.bytes,
            sent: result.sent,
            received: result.received,
            lost: result.lost(),
            goodput_bps: result.goodput_bps(),
        })
    }
}
