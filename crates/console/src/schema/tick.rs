//! Changes in a tick: counters by how much they grew, everything else by its new value.
//!
//! A source tells its whole state as keys. [`Key::tick_since`] is what changed between two of them,
//! and [`Key::apply`] is its inverse, for readers and tests.

use super::tables::place;
use super::value::{Mismatch, NeedsKey, State};
use super::{FlowTick, Key, LinkTicks, Moves, NodeTicks, RolloutTick, StreamTick, TransferTick};
use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// Changes since the key or tick before. What is absent did not change.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct Tick {
    /// Time of the run, s.
    pub time_s: f64,
    /// Nodes that changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub nodes: Option<NodeTicks>,
    /// Links that changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub links: Option<LinkTicks>,
    /// Transfers that changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[ts(as = "Option<Vec<TransferTick>>", optional)]
    pub transfers: Vec<TransferTick>,
    /// Flows that changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[ts(as = "Option<Vec<FlowTick>>", optional)]
    pub flows: Vec<FlowTick>,
    /// Streams that changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[ts(as = "Option<Vec<StreamTick>>", optional)]
    pub streams: Vec<StreamTick>,
    /// Roll-outs that changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[ts(as = "Option<Vec<RolloutTick>>", optional)]
    pub rollouts: Vec<RolloutTick>,
    /// Nodes that moved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub moves: Option<Moves>,
}

impl Key {
    /// Returns what changed since `before`.
    ///
    /// # Errors
    /// A tick cannot tell it: a list has grown, a counter has fallen, or has become known or
    /// unknown.
    pub fn tick_since(&self, before: &Self) -> Result<Tick, NeedsKey> {
        Ok(Tick {
            time_s: self.time_s,
            nodes: self.nodes.ticks_since(&before.nodes)?,
            links: self.links.ticks_since(&before.links)?,
            transfers: changes(&self.transfers, &before.transfers)?,
            flows: changes(&self.flows, &before.flows)?,
            streams: changes(&self.streams, &before.streams)?,
            rollouts: changes(&self.rollouts, &before.rollouts)?,
            // Whether places are known at all is for a key to tell: a tick has only steps.
            moves: match (&self.places, &before.places) {
                (Some(now), Some(before)) => now.moves_since(before)?,
                (None, None) => None,
                _ => return Err(NeedsKey),
            },
        })
    }

    /// Adds a tick, so that this becomes the state at its time.
    ///
    /// # Errors
    /// [`Mismatch`]; the key is then of no use any more.
    pub fn apply(&mut self, tick: &Tick) -> Result<(), Mismatch> {
        self.time_s = tick.time_s;
        if let Some(nodes) = &tick.nodes {
            self.nodes.apply(nodes)?;
        }
        if let Some(links) = &tick.links {
            self.links.apply(links)?;
        }

        // Lists grow by keys alone: a tick that names an entry beyond their end is refused.
        apply_all(&mut self.transfers, &tick.transfers)?;
        apply_all(&mut self.flows, &tick.flows)?;
        apply_all(&mut self.streams, &tick.streams)?;
        apply_all(&mut self.rollouts, &tick.rollouts)?;
        if let Some(moves) = &tick.moves {
            self.places.as_mut().ok_or(Mismatch)?.apply(moves)?;
        }
        Ok(())
    }
}

/// Returns the changes of a list's entries, without those that did not change.
fn changes<S: State<Id = u32>>(now: &[S], before: &[S]) -> Result<Vec<S::Tick>, NeedsKey> {
    if now.len() != before.len() {
        return Err(NeedsKey);
    }

    let mut changes = Vec::new();
    for ((now, before), place) in now.iter().zip(before).zip(0..) {
        changes.extend(now.tick_since(before, place)?);
    }

    Ok(changes)
}

/// Adds the changes of a list's entries.
fn apply_all<S: State<Id = u32>>(list: &mut [S], changes: &[S::Tick]) -> Result<(), Mismatch> {
    changes.iter().try_for_each(|change| place(list, S::id_of(change))?.apply_tick(change))
}
