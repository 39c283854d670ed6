//! Measurement of all links by broadcast probes, before a run.
//!
//! The measurement drives a medium of its own, without nodes: radios broadcast probes, and the
//! share of probes received is the delivery of a link (Pacifier, IV-A).

use crate::scenario::Measure;
use ncmesh_engine::rng;
use ncmesh_medium::{
    Access, LossMatrix, MAX_FRAME_BYTES, Medium, MediumConfig, MediumError, Output, RadioId,
};
use ncmesh_wire::NodeId;
use rand_chacha::ChaCha8Rng;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Returns the share of broadcast probes lost on each directed link of the medium. Probes that
/// collide with each other count as lost. The interval between the probes of a radio is the period,
/// varied at random by up to 10 %, so that the probes of two radios do not collide every time.
///
/// # Errors
/// Any [`MediumError`] about a setting.
pub fn measure(config: &MediumConfig, how: Measure) -> Result<LossMatrix, MediumError> {
    let mut probing = Probing::new(config, how)?;
    probing.run();
    let mut loss = LossMatrix::new(config.radios());
    for ((from, to), received) in probing.received {
        let sent = f64::from(probing.sent[from.0]);
        loss.set(from, to, 1.0 - f64::from(received) / sent)?;
    }
    Ok(loss)
}

/// A measurement under way.
struct Probing {
    medium: Medium,
    how: Measure,
    /// Time at which each radio sends its next probe, ns.
    due: BTreeSet<(u64, RadioId)>,
    sent: Vec<u32>,
    received: BTreeMap<(RadioId, RadioId), u32>,
    jitter: ChaCha8Rng,
}

impl Probing {
    fn new(config: &MediumConfig, how: Measure) -> Result<Self, MediumError> {
        let mut jitter = rng::stream(config.seed, NodeId(0), "measure", "jitter");
        let period_ns = how.period.as_nanos() as f64;
        let first = |radio| ((rng::unit(&mut jitter) * period_ns) as u64, RadioId(radio));
        Ok(Self {
            due: (0..config.radios()).map(first).collect(),
            medium: Medium::new(config.clone())?,
            how: Measure { bytes: how.bytes.min(MAX_FRAME_BYTES), ..how },
            sent: vec![0; config.radios()],
            received: BTreeMap::new(),
            jitter,
        })
    }

    /// Sends probes until the time is over and the last one has arrived.
    fn run(&mut self) {
        let probe: Arc<[u8]> = vec![0; self.how.bytes].into();
        loop {
            // Handle the medium's timeouts and the due probes in the order of time. A timeout comes
            // before a probe that is due at the same instant.
            let end_ns = self.how.duration.as_nanos();
            let probe_ns = self.due.first().map(|(at_ns, _)| *at_ns);
            let probe_ns = probe_ns.filter(|at_ns| u128::from(*at_ns) < end_ns);
            match self.medium.poll_timeout() {
                Some(at_ns) if probe_ns.is_none_or(|probe_ns| at_ns <= probe_ns) => {
                    self.medium.handle_timeout(at_ns);
                }
                _ if probe_ns.is_none() => return,
                _ => self.request_next(),
            }

            while let Some(output) = self.medium.poll_output() {
                match output {
                    Output::Grant { radio, at_ns } => {
                        self.sent[radio.0] += 1;
                        let _ = self.medium.supply(at_ns, radio, Access::Broadcast, probe.clone());
                    }
                    Output::Deliver { to, from, .. } => {
                        *self.received.entry((from, to)).or_default() += 1;
                    }
                    Output::Report { .. } => {}
                }
            }
        }
    }

    /// Requests a transmission for the radio whose probe is due next, and schedules its next one.
    fn request_next(&mut self) {
        let Some((at_ns, radio)) = self.due.pop_first() else { return };
        let _ = self.medium.request(at_ns, radio);
        let factor = 0.9 + 0.2 * rng::unit(&mut self.jitter);
        let wait_ns = (self.how.period.as_nanos() as f64 * factor) as u64;
        self.due.insert((at_ns + wait_ns.max(1), radio));
    }
}
