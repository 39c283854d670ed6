//! Medium access: when a radio may send, and what becomes of the frame.
//!
//! A MAC is told of requests and answers and of time, begins and ends transmissions on the air, and queues
//! [`Output`]s. It gets both, and the time, as a `Turn`.

pub(crate) mod dcf;

use std::collections::VecDeque;
use std::sync::Arc;

use crate::air::Air;
use crate::{Output, RadioId};

/// The longest frame taken, bytes: the MSDU limit of IEEE 802.11-2016, 9.2.4.7.1.
pub const MAX_FRAME_BYTES: usize = 2_304;

/// To whom a frame is sent at the MAC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// To all in reach, once, without acknowledgment.
    Broadcast,
    /// To one radio, acknowledged and repeated.
    Unicast(RadioId),
}

/// What became of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TxResult {
    /// Broadcast: sent, nothing more is known.
    Sent,
    /// Unicast: acknowledged.
    Acked,
    /// Unicast: not acknowledged in any attempt. It may have arrived even so.
    Failed,
}

/// One instant, and what a MAC may act on in it.
pub(crate) struct Turn<'a> {
    /// The instant, ns.
    pub(crate) now_ns: u64,
    /// Frames in flight and carrier sense.
    pub(crate) air: &'a mut Air,
    /// Where to put what the drivers must learn.
    pub(crate) outputs: &'a mut VecDeque<Output>,
}

impl Turn<'_> {
    /// Delivers `frame` of `sender` to the radios `heard`.
    pub(crate) fn deliver(&mut self, sender: usize, frame: &Arc<[u8]>, heard: &[usize]) {
        for &to in heard {
            self.air.statistics.radios[to].deliveries += 1;
            let (to, from, frame) = (RadioId(to), RadioId(sender), Arc::clone(frame));
            self.outputs.push_back(Output::Deliver { to, from, frame, at_ns: self.now_ns });
        }
    }
}
