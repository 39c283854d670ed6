//! What a simulation tells while it runs, and who listens.

use crate::host::Observation;
use ncmesh_engine::time::Instant;
use ncmesh_medium::{Power, TxResult};
use ncmesh_wire::NodeId;
use std::cell::RefCell;
use std::io;
use std::rc::Rc;

/// Something that happened in a simulation.
#[derive(Clone, Copy, Debug)]
pub struct Event<'a> {
    /// When.
    pub at: Instant,
    /// At which node.
    pub node: usize,
    /// What.
    pub what: What<'a>,
}

/// What happened.
#[derive(Clone, Copy, Debug)]
pub enum What<'a> {
    /// The node was granted a transmission: its first bit is on the air now. Repetitions by the MAC are not
    /// told one by one; [`Reported`](Self::Reported) counts them.
    Sent {
        /// `None`: broadcast. Otherwise unicast to this node.
        to: Option<NodeId>,
        /// The frame as it is on the air, sealed or not.
        frame: &'a [u8],
    },
    /// The last bit of a frame arrived at the node.
    Heard {
        /// Who transmitted it.
        from: usize,
        /// The frame as it was on the air.
        frame: &'a [u8],
        /// The power it arrived with, where radios have positions.
        power: Option<Power>,
    },
    /// The MAC's report on the frame the node sent last.
    Reported {
        /// What became of it.
        result: TxResult,
        /// How many times it was sent.
        attempts: u32,
        /// Its time on the air in all attempts, ns.
        airtime_ns: u64,
    },
    /// Something befell a transfer.
    Happened(&'a Observation),
}

/// Who is told of every event of a [`Simulation`](crate::Simulation), in the order of time.
pub trait Observer {
    /// Something happened.
    ///
    /// # Errors
    /// One ends the simulation: nothing more happens in it.
    fn observe(&mut self, event: &Event<'_>) -> io::Result<()>;

    /// Nothing more will happen.
    ///
    /// # Errors
    /// What was observed could not be kept.
    fn finish(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// One that its maker keeps a hand on, to look at what it saw.
impl<O: Observer> Observer for Rc<RefCell<O>> {
    fn observe(&mut self, event: &Event<'_>) -> io::Result<()> {
        self.borrow_mut().observe(event)
    }

    fn finish(&mut self) -> io::Result<()> {
        self.borrow_mut().finish()
    }
}
