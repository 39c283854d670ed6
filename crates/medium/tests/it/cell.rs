//! A single collision domain on the medium.

use std::sync::Arc;

use ncmesh_medium::{
    Access, LossMatrix, MacConfig, Medium, MediumConfig, Output, Phy, RadioId, RadioStatistics,
};

use crate::monte_carlo::Saturation;

/// Measures frames of 1500 bytes from saturated `stations` to one listener, all in reach of each
/// other: broadcast, or unicast with at most `attempts`.
pub(crate) fn measure(
    phy: Phy,
    rate_bps: u64,
    stations: usize,
    attempts: Option<u32>,
    seconds: u64,
) -> Saturation {
    let total = saturate(phy, rate_bps, stations, attempts, None, seconds);
    let whole = total.frames_sent - total.frames_collided;
    Saturation {
        collided: total.frames_collided as f64 / total.frames_sent as f64,
        mbps: whole as f64 * 12_000.0 / seconds as f64 / 1e6,
    }
}

/// Measures the same unicast frames with RTS and CTS. What collides is RTSs.
pub(crate) fn measure_rts(
    phy: Phy,
    rate_bps: u64,
    stations: usize,
    attempts: u32,
    seconds: u64,
) -> Saturation {
    let total = saturate(phy, rate_bps, stations, Some(attempts), Some(0), seconds);
    Saturation {
        collided: 1.0 - total.cts_sent as f64 / total.rts_sent as f64,
        mbps: total.frames_acked as f64 * 12_000.0 / seconds as f64 / 1e6,
    }
}

/// Runs saturated stations and returns their counters.
fn saturate(
    phy: Phy,
    rate_bps: u64,
    stations: usize,
    attempts: Option<u32>,
    rts_threshold_bytes: Option<usize>,
    seconds: u64,
) -> RadioStatistics {
    let near = vec![vec![0.0; stations + 1]; stations + 1];
    let mut config = MediumConfig::with_links(phy, LossMatrix::from_rows(&near).unwrap(), rate_bps);
    config.retry_limit = attempts.unwrap_or(1);
    config.mac = MacConfig::Dcf { rts_threshold_bytes, long_retry_limit: None };
    let access = attempts.map_or(Access::Broadcast, |_| Access::Unicast(RadioId(stations)));
    let mut medium = Medium::new(config).unwrap();
    for radio in 0..stations {
        medium.request(0, RadioId(radio)).unwrap();
    }
    let frame: Arc<[u8]> = vec![0; 1_500].into();
    while let Some(at_ns) = medium.poll_timeout().filter(|&at_ns| at_ns < seconds * 1_000_000_000) {
        medium.handle_timeout(at_ns);
        while let Some(output) = medium.poll_output() {
            if let Output::Grant { radio, at_ns } = output {
                medium.request(at_ns, radio).unwrap();
                medium.supply(at_ns, radio, access, frame.clone()).unwrap();
            }
        }
    }
    medium.statistics().total()
}
