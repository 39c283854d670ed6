//! One transmission from offer to report, and one frame as it is heard.
//!
//! A node transmits in three steps. An engine *offers* to send ([`Offer`]); when the channel is
//! granted it *fills* a frame ([`Filled`]); afterwards the MAC *reports* what became of it
//! ([`TxReport`]). Nothing coded waits in a queue in between.

use crate::time::Duration;
pub use ncmesh_wire::Malformed;
use ncmesh_wire::{NodeId, ServiceId, StartId};

/// Kind of the data frames of every engine. Results count transmissions by it.
pub const DATA: u8 = 1;

/// A frame that was heard, authenticated and not a replay.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// The neighbour that transmitted it.
    pub sender: NodeId,
    /// The neighbour's start. Another one numbers its frames anew.
    pub start: StartId,
    /// The engine that wrote it.
    pub service: ServiceId,
    /// Kind of frame, numbered by the engine.
    pub kind: u8,
    /// The engine's fields.
    pub body: &'a [u8],
}

/// Statement of a node that a frame brings, and that other nodes pass on unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Statement<'a> {
    /// The node that makes it.
    pub origin: NodeId,
    /// The end of the frame's body: all but what changes on the way.
    pub contents: &'a [u8],
}

/// Urgency of an offer. Control goes before data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Small frames that everything else waits for: acknowledgments, probes, link state.
    Control,
    /// Data. Engines share the channel by airtime.
    Data,
}

/// Request of an engine to transmit now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// Urgency.
    pub class: Class,
    /// Priority in a weighted scheduler such as the slotted medium's: W(n) for data of MC2, 1 for
    /// other data, the maximum for control.
    pub weight: u32,
    /// Whether, and how, the data give way to all other data near this node.
    pub background: Option<Background>,
    /// Whether a broadcast is for neighbours on the granted port alone. Others go out on every
    /// port.
    pub is_local: bool,
}

/// Data in the background: they wait while other data are near.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Background {
    percent: u8,
}

impl Background {
    /// Data that take all the airtime which others leave.
    pub const UNBOUNDED: Self = Self { percent: 100 };

    /// Returns data in the background that take at most this share of the time, 1 to 100 percent,
    /// also where nothing else is near.
    #[must_use]
    pub fn of(percent: u8) -> Option<Self> {
        (1..=100).contains(&percent).then_some(Self { percent })
    }

    /// Returns the greatest share of the time that they take, percent.
    #[must_use]
    pub fn percent(self) -> u8 {
        self.percent
    }
}

impl Offer {
    /// Returns an offer of an engine that does not weigh its data.
    #[must_use]
    pub fn of(class: Class) -> Self {
        let weight = if class == Class::Control { u32::MAX } else { 1 };
        Self { class, weight, background: None, is_local: false }
    }

    /// Returns the offer of a frame for neighbours on the granted port alone.
    #[must_use]
    pub fn local(self) -> Self {
        Self { is_local: true, ..self }
    }
}

/// A frame body that an engine has just written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filled {
    /// Kind of frame, numbered by the engine.
    pub kind: u8,
    /// `None` for broadcast, else the neighbour it goes to as unicast with the MAC's
    /// acknowledgment.
    pub to: Option<NodeId>,
}

/// Outcome of a transmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TxResult {
    /// Sent; nobody acknowledges it.
    Sent,
    /// Acknowledged by the neighbour's MAC.
    Acked,
    /// Given up by the MAC.
    Failed,
}

/// The MAC's report on a transmission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TxReport {
    /// Outcome.
    pub result: TxResult,
    /// Time for which it used the channel.
    pub airtime: Duration,
    /// Nodes that received it, if the MAC knows. Wi-Fi's does not.
    pub heard_by: Option<Vec<NodeId>>,
}
