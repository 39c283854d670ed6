//! A live stream at one node: announcements, membership and records that all schemes share.
//!
//! ```text
//!   source: open -> announced each 5 s -> close -> the end announced -> forgotten
//!   others: announced -> (joined: receives) -> the end, or 22 s of silence -> forgotten
//!   tree:   outside --a receiver here or a child--> in the tree --the last one leaves--> leaving
//! ```
//!
//! A scheme keeps one [`Live`] for each stream, with a [`Part`] in it, and all of them in
//! [`Streams`]. Frames besides announcements, and how packets travel, are its own.
//!
//! | module | contents |
//! | --- | --- |
//! | `announcement` | what a source floods of its stream |
//! | `part` | a node's part in a stream: as source, receiver, parent of others |
//! | `streams` | the streams that a node knows, and the groups that it joined |
//! | `receiver` | what a receiver got, and what it lacks |
//! | `timeliness` | when it got it: delays, order, seconds of which the base is whole |

mod announcement;
mod part;
mod receiver;
mod streams;
mod timeliness;

pub use announcement::{ANNOUNCE_INTERVAL, ANNOUNCEMENT, Announcement, Contents, Timed, Untimed};
pub use part::{Branch, LEAVE_NOTICES, Live, MAX_CHILDREN, Member, Part, Place};
pub use receiver::{Listener, Receiver, Shortfall, minimum_bps};
pub use streams::{MAX_STREAMS, Streams};
pub use timeliness::Arrival;
