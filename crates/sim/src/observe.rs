//! Events of a running simulation, and the trait of their observers.
//!
//! A [`Simulation`](crate::Simulation) passes every [`Event`] to its observers, in the order of
//! time. Traces, captures and tests are observers; they cannot influence the run, except that an
//! error of one ends it.

use crate::host::{Host, Observation};
use ncmesh_engine::time::Instant;
use ncmesh_medium::{Medium, Power, TxResult};
use ncmesh_wire::NodeId;
use std::cell::RefCell;
use std::io;
use std::rc::Rc;

/// An event of a simulation.
#[derive(Clone, Copy, Debug)]
pub struct Event<'a> {
    /// Time of the event.
    pub at: Instant,
    /// Node at which it happened.
    pub node: usize,
    /// Kind of the event and its details.
    pub what: What<'a>,
}

/// Kinds of events.
#[derive(Clone, Copy, Debug)]
pub enum What<'a> {
    /// The node was granted a transmission, and its first bit is on the air. Retransmissions by the
    /// MAC are not events of their own; [`Reported`](Self::Reported) counts them.
    Sent {
        /// Channel that it is on: 0 for that of `[medium]`, then the further ones in their order.
        channel: usize,
        /// Destination of a unicast frame; `None` for a broadcast frame.
        to: Option<NodeId>,
        /// The frame as it is on the air, sealed or not.
        frame: &'a [u8],
    },
    /// The last bit of a frame arrived at the node.
    Heard {
        /// Channel that it came on.
        channel: usize,
        /// Node that transmitted it.
        from: usize,
        /// The frame as it was on the air.
        frame: &'a [u8],
        /// Received power, if radios have positions.
        power: Option<Power>,
    },
    /// The MAC reported on the frame that the node sent last on a channel.
    Reported {
        /// The channel.
        channel: usize,
        /// Result of the transmission.
        result: TxResult,
        /// Number of times that the frame was sent.
        attempts: u32,
        /// Time on the air of all attempts, ns.
        airtime_ns: u64,
    },
    /// The node's host observed something about a transfer.
    Happened(&'a Observation),
    /// The node's host passes an IP packet to its gateway.
    Offered(&'a [u8]),
    /// The node's gateway handed an IP packet to its host.
    Arrived(&'a [u8]),
}

/// State of a simulation at an instant: everything that happened before it has been handled, and
/// nothing that happens at it.
#[derive(Clone, Copy)]
pub struct Snapshot<'a> {
    /// The instant.
    pub at: Instant,
    /// All nodes.
    pub hosts: &'a [Host],
    /// The medium of each channel, with counters of each link.
    pub media: &'a [Medium],
}

/// Receiver of every event of a [`Simulation`](crate::Simulation), in the order of time.
pub trait Observer {
    /// Handles an event.
    ///
    /// # Errors
    /// An error ends the simulation: it handles no further events.
    fn observe(&mut self, event: &Event<'_>) -> io::Result<()>;

    /// Returns when the observer next wants to look at the whole simulation; `None` if never.
    fn next_look(&self) -> Option<Instant> {
        None
    }

    /// Looks at the whole simulation, at an instant that [`next_look`](Self::next_look) named. At
    /// the end of the simulation comes one more look, before [`finish`](Self::finish).
    ///
    /// # Errors
    /// An error ends the simulation: it handles no further events.
    fn look(&mut self, _snapshot: Snapshot<'_>) -> io::Result<()> {
        Ok(())
    }

    /// Finishes the observation: there are no further events.
    ///
    /// # Errors
    /// The observer could not write what it observed.
    fn finish(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Shared observer: the caller keeps a reference, to read its results after the run.
impl<O: Observer> Observer for Rc<RefCell<O>> {
    fn observe(&mut self, event: &Event<'_>) -> io::Result<()> {
        self.borrow_mut().observe(event)
    }

    fn next_look(&self) -> Option<Instant> {
        self.borrow().next_look()
    }

    fn look(&mut self, snapshot: Snapshot<'_>) -> io::Result<()> {
        self.borrow_mut().look(snapshot)
    }

    fn finish(&mut self) -> io::Result<()> {
        self.borrow_mut().finish()
    }
}
