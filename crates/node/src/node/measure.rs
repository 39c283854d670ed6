//! Measurements of the node: its own for the API, and its answers to other nodes'.

use super::Node;
use super::tunnel::Tunnel;
use crate::api::answers::{BandwidthRequest, Measured};
use crate::api::types::{ApiError, ErrorCode};
use ncmesh_engine::registry::{AUTO, Choice};
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
/// The measurements of a node.
pub(super) type Measurements = measure::Measurements<EchoWaiter, RunWaiter>;

/// Seconds for which a bandwidth run may send.
const SECONDS: RangeInclusive<f64> = 0.1..=60.0;
/// Rates of a bandwidth run, bit/s.
const RATES: RangeInclusive<f64> = 1e3..=1e11;

/// A bandwidth run that goes on.
pub(crate) struct Running {
    settings: RunSettings,
    name: String,
    scheme: &'static str,
    /// Gets the result.
    pub(crate) result: oneshot::Receiver<Option<Bandwidth>>,
}

impl Node {
    /// Sends an echo request. Returns what gets the round trip, at `until` at the latest.
    pub(crate) fn echo(
        &mut self,
        to: NodeId,
        until: Instant,
    ) -> oneshot::Receiver<Option<Duration>> {
        let (waiter, answer) = oneshot::channel();
        self.measurements.echo(to, waiter, self.clock.now(), until);
        answer
    }

    /// Begins a bandwidth run.
    ///
    /// # Errors
    /// Those of a receiver of that name; [`ErrorCode::BadRequest`] if a value is not allowed;
    /// [`ErrorCode::Busy`] if a run is under way.
    pub(crate) fn begin_run(&mut self, request: &BandwidthRequest) -> Result<Running, ApiError> {
        let to = self.resolve_name(&request.node)?;
        let choice = self.packet_scheme();
        let longest = choice.and_then(|choice| self.stack.longest_packet(choice.scheme));
        let (Some(choice), Some(longest)) = (choice, longest) else {
            let problem = "this program was built without a tunnel scheme";
            return Err(ApiError::new(ErrorCode::BadRequest, problem));
        };
        let scheme = choice.entry.name;
        let BandwidthRequest { seconds, bytes, rate_bps, .. } = *request;
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
        if self.measurements.is_running() {
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
        self.measurements.begin_run(settings, waiter, self.clock.now());
        Ok(Running { settings, name: self.name_of(to), scheme, result })
    }

    /// Handles a packet of a measurement that came through the mesh.
    pub(super) fn handle_measurement(&mut self, from: NodeId, packet: &[u8]) {
        let handled = self.with_measurements(|measurements, mesh, now| {
            measurements.handle_packet(from, packet, mesh, now)
        });
        if let Err(why) = handled {
            self.stack.at(self.clock.now(), &mut self.storage).note_drop(why);
        }
    }

    /// Sends packets of measurements that are due, and tells those who wait what came of theirs.
    pub(super) fn drain_measurements(&mut self) {
        // This comes after every event of the stack, and measurements are rare.
        if self.measurements.is_idle() {
            return;
        }
        self.with_measurements(|measurements, mesh, now| measurements.drain(mesh, now));
        while let Some(outcome) = self.measurements.poll_outcome() {
            // Whoever asked may be gone.
            match outcome {
                Outcome::Echo(waiter, rtt) => drop(waiter.send(rtt)),
                Outcome::Bandwidth(waiter, result) => drop(waiter.send(result)),
            }
        }
    }

    /// Returns the scheme that packets leave by: the tunnel's, or the default one without a tunnel.
    fn packet_scheme(&self) -> Option<Choice> {
        let own = self.tunnel.as_ref().map(Tunnel::scheme);
        own.or_else(|| crate::config::choose(AUTO).ok())
    }

    fn with_measurements<R>(
        &mut self,
        call: impl FnOnce(&mut Measurements, &mut StackMesh<'_>, Instant) -> R,
    ) -> R {
        let scheme = self.packet_scheme().map(|choice| choice.scheme);
        let now = self.clock.now();
        let (stack, storage) = (&mut self.stack, &mut self.storage);
        call(&mut self.measurements, &mut StackMesh { stack, storage, scheme, now }, now)
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
