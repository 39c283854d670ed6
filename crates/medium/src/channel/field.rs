//! A channel of radios with positions: path loss, shadowing, fading.

use std::collections::BTreeMap;

use rand_chacha::ChaCha8Rng;
use rand_core::RngCore as _;
use rand_distr::{Distribution, StandardNormal};

use super::exponential::Exponential;
use super::fading::Fader;
use super::{Arrival, Fate};
use crate::config::RadioConfig;
use crate::power::{Power, units_of_dbm};
use crate::random::{Purpose, stream};

/// A radio is left out of a sender's neighbours where its power exceeds the floor less often than this.
pub const LEFT_OUT: f64 = 1e-6;

/// Shadowing is looked for up to this many standard deviations above the mean.
const SHADOWING_SIGMAS: f64 = 4.0;

/// One radio that a sender's power may reach.
#[derive(Clone, Copy)]
struct Neighbour {
    radio: u32,
    /// The greatest draw of Rayleigh fading at which the power reaches the floor.
    last_draw: u32,
    /// Mean power, units.
    mean: f64,
}

/// Radios in the plane or in space, and what each receives of each.
pub(crate) struct Field {
    fader: Fader,
    /// Weaker signals are left out, units.
    floor: f64,
    /// A frame must be this strong to be received, units.
    audible: f64,
    /// The channel is busy from here on, units.
    sensed: f64,
    /// By sender, each sorted by radio.
    neighbours: Vec<Vec<Neighbour>>,
    data_draws: Vec<ChaCha8Rng>,
    control_draws: Vec<ChaCha8Rng>,
    /// Room for the draws of one frame.
    words: Vec<u8>,
    /// Room for those that reach the floor: place among the neighbours, draw.
    kept: Vec<(u32, u32)>,
}

impl Field {
    /// A channel over a validated `config`.
    pub(crate) fn new(config: &RadioConfig, seed: u64) -> Self {
        let radios = config.positions.len();
        let draws = |purpose| (0..radios).map(|radio| stream(seed, purpose, radio)).collect();
        let floor = if config.interference_floor_dbm == f64::NEG_INFINITY {
            0.0
        } else {
            units_of_dbm(config.interference_floor_dbm)
        };
        let neighbour = |(radio, mean): (u32, f64)| Neighbour {
            radio,
            last_draw: Exponential::last_draw(floor / mean),
            mean,
        };
        let lists = mean_powers(config, seed);
        Self {
            fader: Fader::new(config.fading),
            floor,
            audible: units_of_dbm(config.rx_threshold_dbm),
            sensed: units_of_dbm(config.cs_threshold_dbm),
            neighbours: lists
                .into_iter()
                .map(|list| list.into_iter().map(neighbour).collect())
                .collect(),
            data_draws: draws(Purpose::Fading),
            control_draws: draws(Purpose::ControlFading),
            words: Vec::new(),
            kept: Vec::new(),
        }
    }

    /// The number of radios.
    pub(super) fn radios(&self) -> usize {
        self.neighbours.len()
    }

    /// Where `sender`'s mean power is sensed, sorted.
    pub(super) fn hearers(&self, sender: usize) -> Vec<usize> {
        let near = self.neighbours[sender].iter().filter(|near| near.mean >= self.sensed);
        near.map(|near| near.radio as usize).collect()
    }

    /// Appends whom a frame of `sender` reaches. As many draws are made whatever else befalls the frame.
    pub(super) fn launch(&mut self, sender: usize, control: bool, arrivals: &mut Vec<Arrival>) {
        let draws = if control { &mut self.control_draws } else { &mut self.data_draws };
        let rng = &mut draws[sender];
        let neighbours = &self.neighbours[sender];
        if let Fader::Rayleigh(exponential) = &self.fader {
            // All draws at once, then those that reach the floor, then their logarithms: each step without
            // a branch to guess.
            self.words.resize(4 * neighbours.len(), 0);
            rng.fill_bytes(&mut self.words);
            self.kept.resize(neighbours.len(), (0, 0));
            let mut count = 0;
            for (i, (neighbour, word)) in
                neighbours.iter().zip(self.words.as_chunks().0).enumerate()
            {
                let draw = u32::from_le_bytes(*word);
                self.kept[count] = (i as u32, draw);
                count += usize::from(draw <= neighbour.last_draw);
            }
            arrivals.extend(self.kept[..count].iter().map(|&(i, draw)| {
                let neighbour = &neighbours[i as usize];
                neighbour.arrival(exponential.of(draw), self.audible)
            }));
        } else {
            for neighbour in neighbours {
                let factor = self.fader.draw(rng);
                if neighbour.mean * factor >= self.floor {
                    arrivals.push(neighbour.arrival(factor, self.audible));
                }
            }
        }
    }
}

impl Neighbour {
    fn arrival(&self, factor: f64, audible: f64) -> Arrival {
        let units = self.mean * factor;
        let fate = if units >= audible { Fate::Whole } else { Fate::Sensed };
        Arrival { radio: self.radio, fate, power: Power::from_units(units) }
    }
}

/// For each sender the radios in reach, sorted, with their mean power in units: those whose power exceeds
/// the interference floor with a probability of at least [`LEFT_OUT`].
pub(super) fn mean_powers(config: &RadioConfig, seed: u64) -> Vec<Vec<(u32, f64)>> {
    let fade = config.fading.exceeded_with(LEFT_OUT);
    let weakest_dbm = config.interference_floor_dbm - 10.0 * libm::log10(fade);
    let spread_db = SHADOWING_SIGMAS * config.shadowing_db;
    let reach_m = config.path_loss.reach_m(config.tx_power_dbm + spread_db - weakest_dbm);
    let cells = Cells::new(&config.positions, reach_m);
    let mut lists = vec![Vec::new(); config.positions.len()];
    for a in 0..config.positions.len() {
        let mut shadows = stream(seed, Purpose::Shadowing, a);
        let mut near = cells.near(a);
        near.retain(|&b| b > a);
        near.sort_unstable();
        for b in near {
            let shadow_db: f64 = if config.shadowing_db > 0.0 {
                let normal: f64 = StandardNormal.sample(&mut shadows);
                config.shadowing_db * normal.clamp(-SHADOWING_SIGMAS, SHADOWING_SIGMAS)
            } else {
                0.0
            };
            let distance_m = distance(config.positions[a], config.positions[b]);
            let dbm = config.tx_power_dbm - config.path_loss.db(distance_m) + shadow_db;
            if dbm >= weakest_dbm {
                let mean = units_of_dbm(dbm);
                lists[a].push((b as u32, mean));
                lists[b].push((a as u32, mean));
            }
        }
    }
    lists.iter_mut().for_each(|list| list.sort_unstable_by_key(|entry| entry.0));
    lists
}

/// Metres between two points.
fn distance(a: [f64; 3], b: [f64; 3]) -> f64 {
    libm::sqrt((0..3).map(|axis| (a[axis] - b[axis]) * (a[axis] - b[axis])).sum())
}

/// Radios by square of the plane, so that only near ones need be looked at.
struct Cells {
    side_m: f64,
    places: Vec<(i64, i64)>,
    cells: BTreeMap<(i64, i64), Vec<usize>>,
}

impl Cells {
    fn new(positions: &[[f64; 3]], side_m: f64) -> Self {
        let place = |position: &[f64; 3]| {
            let along = |axis: usize| libm::floor(position[axis] / side_m) as i64;
            if side_m.is_finite() { (along(0), along(1)) } else { (0, 0) }
        };
        let places: Vec<_> = positions.iter().map(place).collect();
        let mut cells: BTreeMap<_, Vec<usize>> = BTreeMap::new();
        for (radio, place) in places.iter().enumerate() {
            cells.entry(*place).or_default().push(radio);
        }
        Self { side_m, places, cells }
    }

    /// All radios within one side of `radio`, and more.
    fn near(&self, radio: usize) -> Vec<usize> {
        debug_assert!(self.side_m > 0.0);
        let (x, y) = self.places[radio];
        let around = (x - 1..=x + 1).flat_map(|x| (y - 1..=y + 1).map(move |y| (x, y)));
        around.filter_map(|place| self.cells.get(&place)).flatten().copied().collect()
    }
}
