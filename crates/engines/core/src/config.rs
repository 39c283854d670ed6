//! Settings of CORE.

use super::frame::{MAX_ROOM, MAX_WINDOW};
use super::redundancy::Redundancy;
use super::rules::{Rules, Xor};
use ncmesh_engine::tunnel::RelayMode;
use serde::Deserialize;

/// `[core_nc]` in configuration files.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CoreConfig {
    /// What this node does as a relay (section 4).
    pub relay: RelayMode,
    /// Whether it combines packets of flows that cross.
    pub coding: bool,
    /// Packets of a generation, 1 to 120.
    pub generation: u8,
    /// x of section 6.3: how many packets are sent more than should be necessary, 1 to 4.
    pub extra: f64,
    /// How probable it is that no more has to be requested, 0.01 to 0.9999: x is chosen for that by eq. 35, and `extra` is not used.
    pub decode_probability: Option<f64>,
    /// Generations of a flow under way at once, 1 to 8.
    pub window: u8,
    /// A relay tells the source of a flow to go on when the flow it is combined with has come as far.
    pub synchronise: bool,
    /// Packets a source queues for each destination, 1 to 10,000; when it is full, more are refused.
    pub queue: usize,
    /// A generation begun takes in packets for so long, ms, 0 to 10,000.
    pub flush_ms: u32,
    /// A relay waits for a packet to combine with for so long, ms, 0 to 1,000.
    pub hold_ms: u32,
    /// Who hears nothing of a generation for so long asks, ms, 5 to 60,000.
    pub request_ms: u32,
    /// After asking so often in vain the source gives a generation up, 1 to 100.
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
    /// One line that names the setting and what is allowed.
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

    pub(super) fn rules(&self) -> Rules {
        Rules {
            relay: self.relay,
            coded: true,
            combines: self.coding,
            xor: Xor::WherePaying,
            redundancy: match self.decode_probability {
                Some(probability) => Redundancy::Enough(probability),
                None => Redundancy::Extra(self.extra),
            },
            wanted: 0,
            room: self.generation,
            window: self.window,
            synchronise: self.synchronise,
            queue: self.queue,
            flush_ms: self.flush_ms,
            hold_ms: self.hold_ms,
            request_ms: self.request_ms,
            requests: self.requests,
        }
    }
}

/// Checks what this engine and its baseline are both told.
///
/// # Errors
/// One line that names the setting and what is allowed.
pub(crate) fn check_common(
    generation: u8,
    window: u8,
    queue: usize,
    requests: u32,
) -> Result<(), String> {
    if !(1..=MAX_ROOM).contains(&generation) {
        return Err(format!("generation = {generation}: allowed is 1 to {MAX_ROOM} packets"));
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

/// The same of times.
///
/// # Errors
/// One line that names the setting and what is allowed.
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
