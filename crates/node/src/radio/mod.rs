//! Interface between the daemon and a radio: the pull handshake.
//!
//! The daemon [`request`](Radio::request)s the medium while it has something to send. When the
//! medium is free, the radio returns [`RadioEvent::Grant`]. The daemon answers at once with
//! [`transmit`](Radio::transmit), a frame made at that moment, or with [`decline`](Radio::decline).
//! The outcome follows as [`RadioEvent::Report`]. At most one frame therefore waits in a radio.

pub mod air;
mod broadcast_rate;
mod carrying;
mod hints;
mod interface;
mod link;
mod nl80211;
mod pacing;
mod peers;
pub mod port;
mod sockets;
pub mod survey;
mod watch;
mod ways;

use crate::config::{PortEntry, PortPlace, Rate};
use crate::error::NodeError;
pub use interface::Occupied;
use ncmesh_engine::TxReport;
use ncmesh_stack::{CarrierTime, Unicast};
use ncmesh_wire::RadioAddress;
use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::io;

/// Event of a radio.
#[derive(Clone, Debug, PartialEq)]
pub enum RadioEvent {
    /// The medium is free: transmit or decline.
    Grant,
    /// A frame was heard and is in the buffer.
    Received,
    /// The last frame was sent or given up.
    Report(TxReport),
    /// The value of [`describe`](Radio::describe) or [`hints`](Radio::hints) has changed.
    Changed,
}

/// Radio of a node. After any error it cannot be used any more.
pub trait Radio: Sized {
    /// Settings of such a radio.
    type Settings;
    /// Reason why it cannot be opened.
    type Error: Into<NodeError> + fmt::Display;

    /// Returns the settings of a port; `None` if they are of another kind of radio.
    fn settings(entry: &PortEntry) -> Option<&Self::Settings>;

    /// Opens a radio, whose settings stand at `place`.
    ///
    /// # Errors
    /// [`Self::Error`]: why it cannot be opened.
    fn open(
        settings: &Self::Settings,
        place: PortPlace,
    ) -> impl Future<Output = Result<Self, Self::Error>>;

    /// Returns whether an error is that of a setting, with whose name its message begins.
    fn is_setting(error: &Self::Error) -> bool {
        let _ = error;
        false
    }

    /// Returns a description for people, for instance `udp on wlan0, port 7117`.
    fn describe(&self) -> String;

    /// Returns what keeps the radio from sending, or slows it down, and what to do about it.
    fn hints(&self) -> Vec<String>;

    /// Returns whether frames pass it.
    fn is_up(&self) -> bool {
        true
    }

    /// Returns the frequency of its channel, MHz, if that is known.
    fn channel_mhz(&self) -> Option<u32> {
        None
    }

    /// Returns the neighbours that unicast serves much faster than broadcasts.
    fn unicast(&self) -> Unicast {
        Unicast::Nobody
    }

    /// Returns what its driver tells of the use of its channel.
    fn carrier(&self) -> Option<CarrierTime> {
        None
    }

    /// Returns the interface on which a radio of these settings would send, if there is one.
    fn locate(settings: &Self::Settings) -> Option<Occupied> {
        let _ = settings;
        None
    }

    /// Returns the interface on which it sends, if there is one.
    fn occupied(&self) -> Option<Occupied> {
        None
    }

    /// Returns the address that frames for this node alone are to be sent to, if it can be told.
    fn address(&self) -> Option<RadioAddress>;

    /// Sends at this rate at most from now on; as the driver takes frames if absent. A radio
    /// without a limit of its own ignores it.
    fn set_rate(&mut self, rate: Option<Rate>) {
        let _ = rate;
    }

    /// Looks at the neighbours if it is time to: `deliveries` returns the shares of this node's
    /// frames that arrive at them. A radio whose rate nobody chooses ignores it.
    fn look(&mut self, deliveries: impl FnOnce() -> BTreeMap<RadioAddress, f64>) {
        let _ = deliveries;
    }

    /// Requests the medium for one frame.
    ///
    /// Must not be repeated before the grant. The request for the next frame may come before the
    /// answer to the present grant, so that the medium does not become idle between them.
    fn request(&mut self) -> impl Future<Output = io::Result<()>>;

    /// Answers a grant with `frame`: broadcast if `to` is `None`, otherwise with the MAC's
    /// acknowledgment to the neighbour with that address.
    fn transmit(
        &mut self,
        frame: &[u8],
        to: Option<RadioAddress>,
    ) -> impl Future<Output = io::Result<()>>;

    /// Answers a grant without a frame.
    fn decline(&mut self) -> impl Future<Output = io::Result<()>>;

    /// Notes that the frame of `length` bytes that was received last is authentic, and whether its
    /// sender has proved that it is there. A radio whose frames reach all hearers ignores it.
    fn vouch(&mut self, length: usize, is_proven: bool) {
        let _ = (length, is_proven);
    }

    /// Takes a frame that has come already. It replaces the contents of `buffer`. Returns whether
    /// there was one.
    fn try_receive(&mut self, buffer: &mut Vec<u8>) -> bool {
        let _ = buffer;
        false
    }

    /// Waits for the next event. A received frame replaces the contents of `buffer`. Cancel-safe.
    fn event(&mut self, buffer: &mut Vec<u8>) -> impl Future<Output = io::Result<RadioEvent>>;
}
