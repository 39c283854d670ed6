//! A roll-out of router images, as the node that leads it knows it.
//!
//! Words for stages and for how far a node is are those of the HTTP API.

use super::declare::{declared, state};
use super::value::{Member, Mismatch, NeedsKey, State, Value, is_same};
use super::{Field, Unit, typescript};
use serde::{Deserialize, Serialize};
use ts_rs::TS;

state! {
    /// State of a roll-out.
    RolloutState / RolloutTick { rollout: u32 } {
        /// Its stage: `pushing`, `pushed`, `scheduled`, `applying`, `done`, `stopped`,
        /// `rolling_back` or `rolled_back`.
        stage: String, "Stage", Plain;
        /// The thing that it waits for, or how it ended, in words.
        waits_for: String, "Waits for", Plain;
        /// Batch that is updated now, from 1. Unknown while none is.
        batch: Option<u64>, "Batch", Plain;
        /// Number of batches, once the release is applied.
        batches: u64, "Batches", Plain;
        /// Its nodes, by their ids.
        nodes: Vec<RolloutNodeState>, "Nodes", Plain;
    }
}

state! {
    /// State of a node in a roll-out.
    RolloutNodeState { node: u16 } / RolloutNodeTick { node: u16 } {
        /// Its model. Unknown before its first answer.
        model: Option<String>, "Model", Plain;
        /// Version that it runs. Unknown before its first answer.
        running: Option<String>, "Running", Plain;
        /// How far it is: `staging`, `staged`, `applying`, `trial`, `kept`, `rolling_back`,
        /// `rolled_back`, `refused`, `failed`, `aborted` or `has_no_fleet`. Unknown before its
        /// first answer.
        standing: Option<String>, "State", Plain;
        /// Why, in words; empty if there is no more to say.
        why: String, "Why", Plain;
        /// Batch in which it is updated, from 1. Unknown before there are batches.
        batch: Option<u64>, "Batch", Plain;
        /// Time of the run when it was heard last, s. Unknown if it was not heard since the daemon
        /// started.
        heard_s: Option<f64>, "Heard", Seconds;
    }
}
