//! Propagation: who senses whom, and whether a frame survives its way to a hearer.
//!
//! The MAC and the air ask two things only: [`Channel::neighbours`] of a sender when a frame begins, and
//! [`Channel::survives`] for each of them when it ends. Every propagation model answers these two.

mod loss;

pub use loss::LossMatrix;

use std::sync::Arc;

use rand_chacha::ChaCha8Rng;
use rand_core::RngCore;

use crate::config::Sense;
use crate::random::{Purpose, stream};
use crate::{MediumError, RadioId};

/// One radio in reach of a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Neighbour {
    /// Its index.
    pub(crate) radio: usize,
    /// A frame survives when a 32-bit draw is below this: 2^32 is certainty, 0 means sensed, never heard.
    threshold: u64,
}

impl Neighbour {
    /// Whether frames can reach this neighbour at all.
    pub(crate) fn hears(self) -> bool {
        self.threshold > 0
    }
}

/// The loss matrix with its random streams, and the neighbour lists drawn from it.
pub(crate) struct Channel {
    loss: LossMatrix,
    sense: Sense,
    /// By sender. Shared, since frames in flight keep the list they set out with.
    neighbours: Vec<Arc<[Neighbour]>>,
    data_draws: Vec<ChaCha8Rng>,
    ack_draws: Vec<ChaCha8Rng>,
}

impl Channel {
    /// A channel over validated `loss` and `sense`.
    pub(crate) fn new(loss: LossMatrix, sense: Sense, seed: u64) -> Self {
        let radios = loss.radios();
        let draws = |purpose| (0..radios).map(|radio| stream(seed, purpose, radio)).collect();
        let neighbours = all_neighbours(&loss, &sense);
        Self {
            neighbours,
            data_draws: draws(Purpose::Loss),
            ack_draws: draws(Purpose::AckLoss),
            loss,
            sense,
        }
    }

    /// The number of radios.
    pub(crate) fn radios(&self) -> usize {
        self.neighbours.len()
    }

    /// Everyone who senses `sender`, by index.
    pub(crate) fn neighbours(&self, sender: usize) -> Arc<[Neighbour]> {
        Arc::clone(&self.neighbours[sender])
    }

    /// Whether `sender`'s frame survives the way to `neighbour`, overlap aside. Asked once for each
    /// neighbour that hears and each frame, whatever else befell it: then the fate of a sender's n-th frame
    /// depends on nothing but the seed, and protocols can be compared on the same luck.
    pub(crate) fn survives(&mut self, sender: usize, neighbour: Neighbour, is_ack: bool) -> bool {
        let draws = if is_ack { &mut self.ack_draws } else { &mut self.data_draws };
        u64::from(draws[sender].next_u32()) < neighbour.threshold
    }

    /// Changes one link; frames already in flight keep their chances.
    pub(crate) fn set_loss(
        &mut self,
        from: RadioId,
        to: RadioId,
        loss: f64,
    ) -> Result<(), MediumError> {
        self.loss.set(from, to, loss)?;
        // Sensing is mutual by default, so both lists may change.
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
            self.renew(sender, listener, senses);
        }
        Ok(())
    }

    fn delivers(&self, from: usize, to: usize) -> bool {
        self.loss.loss(RadioId(from), RadioId(to)) < 1.0
    }

    fn renew(&mut self, sender: usize, listener: usize, senses: bool) {
        let mut list = self.neighbours[sender].to_vec();
        let at = list.partition_point(|neighbour| neighbour.radio < listener);
        if list.get(at).is_some_and(|neighbour| neighbour.radio == listener) {
            list.remove(at);
        }
        if senses {
            let threshold = threshold(self.loss.loss(RadioId(sender), RadioId(listener)));
            list.insert(at, Neighbour { radio: listener, threshold });
        }
        self.neighbours[sender] = list.into();
    }
}

fn threshold(loss: f64) -> u64 {
    ((1.0 - loss) * 4_294_967_296.0).round() as u64
}

fn all_neighbours(loss: &LossMatrix, sense: &Sense) -> Vec<Arc<[Neighbour]>> {
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
    for (from, to, _) in loss.links() {
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

fn neighbour_list(loss: &LossMatrix, sender: usize, mut listeners: Vec<usize>) -> Arc<[Neighbour]> {
    listeners.sort_unstable();
    listeners.dedup();
    let mut links = loss.row(sender).iter().peekable();
    let neighbour = |radio| {
        let link = links.next_if(|link| link.0 == radio);
        Neighbour { radio, threshold: link.map_or(0, |link| threshold(link.1)) }
    };
    listeners.into_iter().map(neighbour).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(channel: &Channel, sender: usize) -> Vec<(usize, bool)> {
        channel.neighbours(sender).iter().map(|n| (n.radio, n.hears())).collect()
    }

    #[test]
    fn a_one_way_link_is_sensed_both_ways_by_default() {
        let mut loss = LossMatrix::new(3);
        loss.set(RadioId(0), RadioId(1), 0.4).unwrap();
        let mut channel = Channel::new(loss.clone(), Sense::Audible, 1);
        assert_eq!(ids(&channel, 0), [(1, true)]);
        assert_eq!(ids(&channel, 1), [(0, false)]);
        assert_eq!(ids(&channel, 2), []);
        channel.set_loss(RadioId(0), RadioId(1), 1.0).unwrap();
        channel.set_loss(RadioId(2), RadioId(0), 0.0).unwrap();
        assert_eq!(ids(&channel, 0), [(2, false)]);
        assert_eq!(ids(&channel, 1), []);
        assert_eq!(ids(&channel, 2), [(0, true)]);

        let explicit = Sense::Listeners(vec![vec![RadioId(2)], vec![], vec![]]);
        let channel = Channel::new(loss.clone(), explicit, 1);
        assert_eq!(ids(&channel, 0), [(1, true), (2, false)]);
        assert_eq!(ids(&channel, 1), []);
        let channel = Channel::new(loss, Sense::Everyone, 1);
        assert_eq!(ids(&channel, 2), [(0, false), (1, false)]);
    }
}
