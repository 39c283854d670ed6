//! Broadcast traffic over radios with positions, for tests and measurements: hosts with a queue each.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use ncmesh_medium::{
    Access, Fading, Medium, MediumConfig, Output, PathLoss, Phy, RadioConfig, RadioId,
    ReceptionModel,
};
use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore, SeedableRng};

/// A frame received with this power or more is strong, dBm: the mean at 250 m.
const STRONG_DBM: f64 = -64.37;

/// What happened.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    /// Frames sent.
    pub(crate) sent: u64,
    /// Frames received, by all.
    pub(crate) received: u64,
    /// Of these the strong ones.
    pub(crate) strong: u64,
}

/// Lines of `x,y` in metres.
pub(crate) fn positions(text: &str) -> Result<Vec<[f64; 3]>, std::num::ParseFloatError> {
    let line = |line: &str| {
        let (x, y) = line.split_once(',').unwrap_or((line, "0"));
        Ok([x.trim().parse()?, y.trim().parse()?, 0.0])
    };
    text.lines().map(line).collect()
}

/// The network of the comparison with ns-3: what is sensed can be received, bit by bit.
pub(crate) fn mesh(positions: Vec<[f64; 3]>, seed: u64) -> MediumConfig {
    let two_ray = PathLoss::TwoRay { frequency_hz: 2.4e9, antenna_height_m: 1.5 };
    let radios = RadioConfig::with_ranges(positions, two_ray, Fading::Rayleigh, 460.0, 460.0);
    let mut config = MediumConfig::with_radios(Phy::DOT11B, radios, 2_000_000);
    config.reception.model = ReceptionModel::BitErrors;
    config.seed = seed;
    config
}

/// Broadcasts frames of 1500 bytes for `seconds`: Poisson arrivals at `rate` per second and radio, queued
/// without limit, or always one more if `rate` is 0.
pub(crate) fn broadcast(medium: &mut Medium, seconds: f64, rate: f64, seed: u64) -> Tally {
    let until_ns = (seconds * 1e9) as u64;
    let mut arrivals = Arrivals::new(medium.radios(), rate, seed);
    let frame: Arc<[u8]> = vec![0; 1500].into();
    let mut queued = vec![0_u64; medium.radios()];
    let mut tally = Tally::default();
    for radio in 0..medium.radios() {
        if rate == 0.0 {
            queued[radio] = u64::MAX;
            let _ = medium.request(0, RadioId(radio));
        }
    }
    loop {
        let medium_ns = medium.poll_timeout().unwrap_or(u64::MAX);
        let now_ns = medium_ns.min(arrivals.next_ns());
        if now_ns > until_ns {
            return tally;
        }
        if arrivals.next_ns() <= medium_ns {
            let radio = arrivals.take();
            queued[radio] += 1;
            let _ = medium.request(now_ns, RadioId(radio));
        } else {
            medium.handle_timeout(now_ns);
        }
        while let Some(output) = medium.poll_output() {
            match output {
                Output::Grant { radio, at_ns } => {
                    queued[radio.0] -= 1;
                    tally.sent += 1;
                    let _ = medium.supply(at_ns, radio, Access::Broadcast, Arc::clone(&frame));
                    if queued[radio.0] > 0 {
                        let _ = medium.request(at_ns, radio);
                    }
                }
                Output::Deliver { power, .. } => {
                    tally.received += 1;
                    tally.strong += u64::from(power.is_some_and(|p| p >= strong()));
                }
                Output::Report { .. } => {}
            }
        }
    }
}

fn strong() -> ncmesh_medium::Power {
    ncmesh_medium::Power::from_dbm(STRONG_DBM)
}

/// Poisson arrivals of all radios.
struct Arrivals {
    rate: f64,
    due: BinaryHeap<Reverse<(u64, usize)>>,
    rng: ChaCha8Rng,
}

impl Arrivals {
    fn new(radios: usize, rate: f64, seed: u64) -> Self {
        let rng = ChaCha8Rng::seed_from_u64(seed);
        let mut arrivals = Self { rate, due: BinaryHeap::new(), rng };
        if rate > 0.0 {
            (0..radios).for_each(|radio| arrivals.plan(0, radio));
        }
        arrivals
    }

    fn plan(&mut self, now_ns: u64, radio: usize) {
        let uniform = (f64::from(self.rng.next_u32()) + 0.5) / 4_294_967_296.0;
        let wait_ns = (-uniform.ln() / self.rate * 1e9) as u64;
        self.due.push(Reverse((now_ns + wait_ns, radio)));
    }

    fn next_ns(&self) -> u64 {
        self.due.peek().map_or(u64::MAX, |Reverse((at_ns, _))| *at_ns)
    }

    fn take(&mut self) -> usize {
        let Some(Reverse((at_ns, radio))) = self.due.pop() else { return 0 };
        self.plan(at_ns, radio);
        radio
    }
}
