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
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Returns the share of broadcast probes lost on each directed link of the medium. Probes that
/// collide with each other count as lost. The interval between the probes of a radio is the period,
/// varied at random by up to 10 %, so that the probes of two radios do not collide every time.
///
/// # Errors
/// Any [`MediumError`] about a setting.
pub fn measure(config: &MediumConfig, how: Measure) -> Result<LossMatrix, MediumError> {
    let mut medium = Medium::new(config.clone())?;
    let probe: Arc<[u8]> = vec![0; how.bytes.min(MAX_FRAME_BYTES)].into();
    let period_ns = how.period.as_nanos() as f64;
    let end_ns = how.duration.as_nanos();
    let mut sent = vec![0_u32; config.radios()];
    let mut received: BTreeMap<(RadioId, RadioId), u32> = BTreeMap::new();

    // When each radio sends its next probe, ns. Radios start at different times within the first
    // period, or all probes would collide.
    let mut jitter = rng::stream(config.seed, NodeId(0), "measure", "jitter");
    let first = |radio| ((rng::unit(&mut jitter) * period_ns) as u64, RadioId(radio));
    let mut due: BTreeSet<(u64, RadioId)> = (0..config.radios()).map(first).collect();

    loop {
        // The next event is a timeout of the medium or a due probe, the timeout first if both are
        // at the same instant. No probe is sent after the end of the measurement, but the medium
        // goes on until the last one has arrived.
        let next = due.first().copied().filter(|(at_ns, _)| u128::from(*at_ns) < end_ns);
        match (medium.poll_timeout(), next) {
            (Some(timeout_ns), next) if next.is_none_or(|(at_ns, _)| timeout_ns <= at_ns) => {
                medium.handle_timeout(timeout_ns);
            }
            (_, Some((at_ns, radio))) => {
                due.pop_first();
                let _ = medium.request(at_ns, radio);
                let wait_ns = (period_ns * (0.9 + 0.2 * rng::unit(&mut jitter))) as u64;
                due.insert((at_ns + wait_ns.max(1), radio));
            }
            (_, None) => break,
        }

        // A radio sends its probe when it is granted the channel. Receptions are counted by link.
        while let Some(output) = medium.poll_output() {
            match output {
                Output::Grant { radio, at_ns } => {
                    sent[radio.0] += 1;
                    let _ = medium.supply(at_ns, radio, Access::Broadcast, probe.clone());
                }
                Output::Deliver { to, from, .. } => {
                    *received.entry((from, to)).or_default() += 1;
                }
                Output::Report { .. } => {}
            }
        }
    }

    // A link over which nothing arrived is not in the table, and keeps its loss of 1.
    let mut loss = LossMatrix::new(config.radios());
    for ((from, to), received) in received {
        loss.set(from, to, 1.0 - f64::from(received) / f64::from(sent[from.0]))?;
    }

    Ok(loss)
}
