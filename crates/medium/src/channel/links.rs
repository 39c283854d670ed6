//! A channel where only the loss of each link is given.
//!
//! Each frame draws one 32-bit number for each neighbour that hears the sender; the frame is
//! delivered if the number is below the link's threshold. The draw does not depend on anything but
//! the seed, the sender and the number of its frame. Two protocols in the same scenario therefore
//! see the same losses.
//!
//! Frames have no physical power here. All signals are equally strong, so overlapping frames are
//! lost, or they get the power that explains the loss under Rayleigh fading
//! ([`LinkPower::Rayleigh`]).

use rand_chacha::ChaCha8Rng;
use rand_core::RngCore;

use super::gilbert_elliott::GilbertElliott;
use super::{Arrival, LinkOutcome};
use crate::config::{LinkPower, LinksConfig, Sense};
use crate::error::MediumError;
use crate::loss_matrix::{LossMatrix, LossyLink};
use crate::power::Power;
use crate::random::{Purpose, stream};
use crate::types::RadioId;

/// Number of values of a 32-bit draw.
const DRAW_RANGE: f64 = 4_294_967_296.0;

/// The power that a frame needs to be received with [`LinkPower::Rayleigh`], units. It is far above
/// the one unit of a signal that is only sensed, which thus does not disturb.
const NEEDED: f64 = 1_048_576.0;

/// Greatest power of a frame, as a multiple of the power it needs.
const STRONGEST: f64 = 1e4;

/// One radio in reach of a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Neighbour {
    radio: usize,
    /// The link delivers a frame if a 32-bit draw is below this value: 2^32 is certainty, 0 means
    /// that the radio senses the sender and hears no frame.
    threshold: u64,
}

/// The loss matrix with its random streams, and the neighbour lists made from it.
pub(crate) struct LinkChannel {
    loss: LossMatrix,
    sense: Sense,
    /// By sender, each sorted by radio.
    neighbours: Vec<Vec<Neighbour>>,
    data_draws: Vec<ChaCha8Rng>,
    control_draws: Vec<ChaCha8Rng>,
    bursts: Option<GilbertElliott>,
    power: LinkPower,
}

impl LinkChannel {
    /// Creates the channel of validated settings.
    pub(crate) fn new(config: LinksConfig, seed: u64) -> Self {
        let LinksConfig { loss, sense, bursts, power } = config;
        let radios = loss.radios();
        let draws = |purpose| (0..radios).map(|radio| stream(seed, purpose, radio)).collect();

        // Data and control frames have draws of their own: an RTS shifts no draw of data.
        Self {
            neighbours: all_neighbours(&loss, &sense),
            data_draws: draws(Purpose::Loss),
            control_draws: draws(Purpose::ControlLoss),
            bursts: bursts.map(|bursts| GilbertElliott::new(bursts, radios, seed)),
            loss,
            sense,
            power,
        }
    }

    /// Returns the number of radios.
    pub(super) fn radios(&self) -> usize {
        self.neighbours.len()
    }

    /// Returns the radios with a link from `sender`, sorted.
    pub(super) fn hearers(&self, sender: usize) -> Vec<usize> {
        self.loss.row(sender).iter().map(|link| link.0).collect()
    }

    /// Appends the arrivals of a frame of `sender`, sorted by radio.
    pub(super) fn launch(
        &mut self,
        now_ns: u64,
        sender: usize,
        control: bool,
        arrivals: &mut Vec<Arrival>,
    ) {
        let draws = if control { &mut self.control_draws } else { &mut self.data_draws };
        let draws = &mut draws[sender];

        for neighbour in &self.neighbours[sender] {
            // A radio without a link senses the frame and draws nothing.
            let radio = neighbour.radio as u32;
            if neighbour.threshold == 0 {
                let link = LinkOutcome::EnergyOnly;
                arrivals.push(Arrival { radio, link, power: Power::UNIT });
                continue;
            }

            // With bursts the threshold depends on the present state of the link.
            let mut threshold = neighbour.threshold;
            if let Some(bursts) = &mut self.bursts {
                let mean = self.loss.loss(RadioId(sender), RadioId(neighbour.radio));
                let loss = bursts.sample_loss(now_ns, sender, neighbour.radio, mean);
                threshold = delivery_threshold(loss);
            }

            // One draw decides about delivery and, with Rayleigh power, also gives the power.
            let draw = draws.next_u32();
            let delivered = u64::from(draw) < threshold;
            let (link, power) = match self.power {
                LinkPower::Equal if delivered => (LinkOutcome::Intact, Power::UNIT),
                LinkPower::Equal => (LinkOutcome::Erased, Power::UNIT),
                LinkPower::Rayleigh if delivered => {
                    (LinkOutcome::Intact, rayleigh_power(draw, threshold))
                }
                LinkPower::Rayleigh => (LinkOutcome::EnergyOnly, rayleigh_power(draw, threshold)),
            };
            arrivals.push(Arrival { radio, link, power });
        }
    }

    /// Changes one link. Frames in flight are not affected.
    pub(super) fn set_loss(
        &mut self,
        from: RadioId,
        to: RadioId,
        loss: f64,
    ) -> Result<(), MediumError> {
        self.loss.set(from, to, loss)?;

        // Sensing is mutual by default, so the lists of both radios may change.
        for (sender, listener) in [(from.0, to.0), (to.0, from.0)] {
            let senses = match &self.sense {
                Sense::Audible => {
                    self.delivers(sender, listener) || self.delivers(listener, sender)
                }
                Sense::Everyone => true,
                Sense::Listeners(lists) => {
                    lists[sender].contains(&RadioId(listener)) || self.delivers(sender, listener)
                }
            };
            self.update_neighbour(sender, listener, senses);
        }

        Ok(())
    }

    /// Returns whether there is a link.
    fn delivers(&self, from: usize, to: usize) -> bool {
        self.loss.loss(RadioId(from), RadioId(to)) < 1.0
    }

    /// Replaces `listener` in the neighbour list of `sender`, or removes it unless it `senses` the
    /// sender.
    fn update_neighbour(&mut self, sender: usize, listener: usize, senses: bool) {
        let threshold = delivery_threshold(self.loss.loss(RadioId(sender), RadioId(listener)));
        let list = &mut self.neighbours[sender];
        let at = list.partition_point(|neighbour| neighbour.radio < listener);
        if list.get(at).is_some_and(|neighbour| neighbour.radio == listener) {
            list.remove(at);
        }
        if senses {
            list.insert(at, Neighbour { radio: listener, threshold });
        }
    }
}

/// Returns the value below which a 32-bit draw means delivery.
fn delivery_threshold(loss: f64) -> u64 {
    ((1.0 - loss) * DRAW_RANGE).round() as u64
}

/// Returns the power of a frame on a link that delivers draws below `threshold`.
///
/// Under Rayleigh fading the power is exponentially distributed, -ln(u) times its mean for a
/// uniform u. The same draw that is below the threshold gives a power above the needed one, so the
/// power explains the loss.
fn rayleigh_power(draw: u32, threshold: u64) -> Power {
    let needed = -libm::log(threshold as f64 / DRAW_RANGE);
    let drawn = -libm::log((f64::from(draw) + 0.5) / DRAW_RANGE);
    Power::from_units((NEEDED * (drawn / needed).min(STRONGEST)).max(1.0))
}

/// Returns the neighbours of all senders: the radios that sense them or have a link from them.
fn all_neighbours(loss: &LossMatrix, sense: &Sense) -> Vec<Vec<Neighbour>> {
    // Radios that sense each sender without a link from it, as far as the settings say so.
    let radios = loss.radios();
    let mut listeners: Vec<Vec<usize>> = match sense {
        Sense::Audible => vec![Vec::new(); radios],
        Sense::Everyone => {
            (0..radios).map(|me| (0..radios).filter(|&other| other != me).collect()).collect()
        }
        Sense::Listeners(lists) => {
            lists.iter().map(|list| list.iter().map(|radio| radio.0).collect()).collect()
        }
    };

    // A radio with a link from a sender senses it in any case.
    for LossyLink { from, to, .. } in loss.links() {
        listeners[from.0].push(to.0);
        if matches!(sense, Sense::Audible) {
            listeners[to.0].push(from.0);
        }
    }

    listeners
        .into_iter()
        .enumerate()
        .map(|(sender, list)| neighbour_list(loss, sender, list))
        .collect()
}

/// Returns `listeners`, sorted and without duplicates, with the thresholds of their links.
fn neighbour_list(loss: &LossMatrix, sender: usize, mut listeners: Vec<usize>) -> Vec<Neighbour> {
    listeners.sort_unstable();
    listeners.dedup();

    // Both lists are sorted by radio, so one pass over both finds the links.
    let mut links = loss.row(sender).iter().peekable();
    let neighbour = |radio| {
        let link = links.next_if(|link| link.0 == radio);
        Neighbour { radio, threshold: link.map_or(0, |link| delivery_threshold(link.1)) }
    };
    listeners.into_iter().map(neighbour).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(channel: &LinkChannel, sender: usize) -> Vec<(usize, bool)> {
        channel.neighbours[sender].iter().map(|n| (n.radio, n.threshold > 0)).collect()
    }

    #[test]
    fn a_one_way_link_is_sensed_both_ways_by_default() {
        let mut loss = LossMatrix::new(3);
        loss.set(RadioId(0), RadioId(1), 0.4).unwrap();
        let links = |sense| LinksConfig {
            loss: loss.clone(),
            sense,
            bursts: None,
            power: LinkPower::Equal,
        };
        let mut channel = LinkChannel::new(links(Sense::Audible), 1);
        assert_eq!(ids(&channel, 0), [(1, true)]);
        assert_eq!(ids(&channel, 1), [(0, false)]);
        assert_eq!(ids(&channel, 2), []);
        channel.set_loss(RadioId(0), RadioId(1), 1.0).unwrap();
        channel.set_loss(RadioId(2), RadioId(0), 0.0).unwrap();
        assert_eq!(ids(&channel, 0), [(2, false)]);
        assert_eq!(ids(&channel, 1), []);
        assert_eq!(ids(&channel, 2), [(0, true)]);

        let explicit = Sense::Listeners(vec![vec![RadioId(2)], vec![], vec![]]);
        let channel = LinkChannel::new(links(explicit), 1);
        assert_eq!(ids(&channel, 0), [(1, true), (2, false)]);
        assert_eq!(ids(&channel, 1), []);
        let channel = LinkChannel::new(links(Sense::Everyone), 1);
        assert_eq!(ids(&channel, 2), [(0, false), (1, false)]);
    }
}
