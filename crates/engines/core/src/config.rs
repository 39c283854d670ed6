//! Settings of CORE.

use crate::frame::{MAX_GENERATION_SIZE, MAX_WINDOW};
use crate::parameters::{PairingRule, Parameters};
use crate::redundancy::Redundancy;
use ncmesh_engine::time::Duration;
use ncmesh_engine::tunnel::RelayMode;
use serde::Deserialize;

/// `[core_nc]` in configuration files.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CoreConfig {
    /// What this node does as a relay (section 4).
    pub relay: RelayMode,
    /// Whether this node combines packets of flows that cross.
    pub coding: bool,
    /// Packets of a generation, 1 to 120.
    ///
    /// Larger generations need less redundancy and feedback, but take longer to fill and decode,
    /// and leave less of a frame for payload.
    pub generation: u8,
    /// Extra credit factor x of section 6.3: transmissions, relative to those that suffice on
    /// average; 1 to 4.
    pub extra: f64,
    /// Probability that no further packets have to be requested, 0.01 to 0.9999. If it is set, x is
    /// chosen by eq. 35, and `extra` is not used.
    pub decode_probability: Option<f64>,
    /// Generations of a flow under way at once, 1 to 8.
    pub window: u8,
    /// Whether a relay lets a source go on only when the flow that its own is combined with is done
    /// too (section 6.1).
    pub synchronise: bool,
    /// Packets that a source queues for each destination, 1 to 10,000. When the queue is full,
    /// further packets are refused.
    pub queue: usize,
    /// Time for which a generation takes in packets once it has begun, ms, 0 to 10,000.
    pub flush_ms: u32,
    /// Time for which a relay waits for a packet to combine with, ms, 0 to 1,000.
    pub hold_ms: u32,
    /// Time after which an unanswered poll is repeated, ms, 5 to 60,000. Each further pause is
    /// twice as long.
    pub request_ms: u32,
    /// Polls without progress after which the source gives a generation up, 1 to 100.
    pub requests: u32,
}

impl Default for CoreConfig {
    fn default() -> Self {
        Self {
            relay: RelayMode::Core,
            coding: true,
            generation: 64,
            extra: 1.06,
            decode_probability: None,
            window: 1,
            synchronise: true,
            queue: 128,
            flush_ms: 20,
            hold_ms: 8,
            request_ms: 50,
            requests: 8,
        }
    }
}

impl CoreConfig {
    /// Checks the values.
    ///
    /// # Errors
    /// One line that names the setting and says what is allowed.
    pub fn check(&self) -> Result<(), String> {
        if !(1.0..=4.0).contains(&self.extra) {
            return Err(format!("extra = {}: allowed is 1 to 4", self.extra));
        }
        if let Some(probability) = self.decode_probability
            && !(0.01..=0.9999).contains(&probability)
        {
            return Err(format!("decode_probability = {probability}: allowed is 0.01 to 0.9999"));
        }
        check_common(self.generation, self.window, self.queue, self.requests)?;
        check_times(self.flush_ms, self.hold_ms, self.request_ms)
    }

    /// Returns the engine's parameters.
    pub(crate) fn parameters(&self) -> Parameters {
        Parameters {
            relay: self.relay,
            codes_within_flows: true,
            combines_flows: self.coding,
            pairing: PairingRule::FewerTransmissions,
            redundancy: match self.decode_probability {
                Some(probability) => Redundancy::Probability(probability),
                None => Redundancy::Factor(self.extra),
            },
            max_missing: 0,
            generation_size: self.generation,
            window: self.window,
            synchronise: self.synchronise,
            queue: self.queue,
            flush_time: Duration::from_millis(u64::from(self.flush_ms)),
            hold_time: Duration::from_millis(u64::from(self.hold_ms)),
            poll_timeout: Duration::from_millis(u64::from(self.request_ms)),
            max_polls: self.requests,
        }
    }
}

/// Checks the sizes that CORE and its baseline both have.
///
/// # Errors
/// One line that names the setting and says what is allowed.
pub(crate) fn check_common(
    generation: u8,
    window: u8,
    queue: usize,
    requests: u32,
) -> Result<(), String> {
    if !(1..=MAX_GENERATION_SIZE).contains(&generation) {
        return Err(format!(
            "generation = {generation}: allowed is 1 to {MAX_GENERATION_SIZE} packets"
        ));
    }
    if !(1..=MAX_WINDOW).contains(&window) {
        return Err(format!("window = {window}: allowed is 1 to {MAX_WINDOW} generations"));
    }
    if !(1..=10_000).contains(&queue) {
        return Err(format!("queue = {queue}: allowed is 1 to 10000 packets"));
    }
    if !(1..=100).contains(&requests) {
        return Err(format!("requests = {requests}: allowed is 1 to 100"));
    }
    Ok(())
}

/// Checks the times that CORE and its baseline both have.
///
/// # Errors
/// One line that names the setting and says what is allowed.
pub(crate) fn check_times(flush_ms: u32, hold_ms: u32, request_ms: u32) -> Result<(), String> {
    let times = [
        ("flush_ms", flush_ms, 0..=10_000),
        ("hold_ms", hold_ms, 0..=1000),
        ("request_ms", request_ms, 5..=60_000),
    ];
    for (name, value, allowed) in times {
        if !allowed.contains(&value) {
            let (least, most) = (allowed.start(), allowed.end());
            return Err(format!("{name} = {value}: allowed is {least} to {most} ms"));
        }
    }
    Ok(())
}
