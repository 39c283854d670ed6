//! One port of a node: its share of the airtime, and the frames that it sends.

use crate::egress::Egress;
use crate::share::{Share, ShareConfig};
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::{Background, Port};
use ncmesh_wire::NodeId;
use std::collections::VecDeque;

/// Time after which a frame that waits for its port, or for its radio, is given up: the port takes
/// none.
pub(crate) const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// A slot, and the port for which it filled a frame. The slot learns there what became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    pub slot: usize,
    pub port: Port,
}

/// The frame that is at the radio.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OnAir {
    pub origin: Origin,
    pub kind: u8,
    /// Its length, bytes.
    pub len: usize,
    pub background: Option<Background>,
    pub since: Instant,
}

/// A frame that was filled when another port was granted, not sealed yet.
#[derive(Clone, Debug)]
pub(crate) struct Waiting {
    pub origin: Origin,
    pub kind: u8,
    pub to: Option<NodeId>,
    pub background: Option<Background>,
    pub body: Vec<u8>,
    pub since: Instant,
}

/// One port of a node.
#[derive(Debug)]
pub(crate) struct PortState {
    pub egress: Egress,
    pub share: Share,
    pub on_air: Option<OnAir>,
    /// Each is of an engine that fills no other meanwhile, so they are few.
    pub waiting: VecDeque<Waiting>,
    pub is_up: bool,
    /// Whether a frame was given up here since it was granted last.
    pub is_stuck: bool,
}

impl PortState {
    /// Returns a port that has sent nothing.
    pub(crate) fn new(slots: usize, share: ShareConfig) -> Self {
        Self {
            egress: Egress::new(slots),
            share: Share::new(share),
            on_air: None,
            waiting: VecDeque::new(),
            is_up: true,
            is_stuck: false,
        }
    }

    /// Returns whether frames of others may wait for it. On one that takes none, each would keep
    /// its engine waiting.
    pub(crate) fn takes_frames(&self) -> bool {
        self.is_up && !self.is_stuck
    }

    /// Takes a frame that has waited for too long, if there is one.
    pub(crate) fn take_old(&mut self, now: Instant) -> Option<Waiting> {
        self.waiting.front().filter(|frame| now.since(frame.since) >= LONGEST_WAIT)?;
        self.is_stuck = true;
        self.waiting.pop_front()
    }

    /// Takes the frame at the radio if it has been there for too long.
    pub(crate) fn take_stuck(&mut self, now: Instant) -> Option<OnAir> {
        let stuck = self.on_air.take_if(|frame| now.since(frame.since) >= LONGEST_WAIT)?;
        self.is_stuck = true;
        Some(stuck)
    }

    /// Returns the origins of frames that it has not sent yet.
    pub(crate) fn unsent(&self) -> impl Iterator<Item = Origin> + '_ {
        let on_air = self.on_air.iter().map(|frame| frame.origin);
        self.waiting.iter().map(|frame| frame.origin).chain(on_air)
    }
}
