//! Reliable multicast of files: what all file schemes share.
//!
//! A file is cut into generations of packets, each of which proves by a hash tree that it belongs
//! to the file. Its source floods an announcement. Receivers accept or refuse it, take generations
//! in any order, and acknowledge to the source what they have until they have the whole. A transfer
//! goes on after an interruption with what is there already, and its end is never inferred from
//! silence.
//!
//! A [`Carrier`] brings data packets from the source to the receivers: that is a file scheme.
//! [`FileMulticast`] is the engine that joins it with everything else:
//!
//! ```text
//!              announcements, flooded: `announcements`
//!        +------------------------------------------------+
//!        |     data packets and reports: the carrier      v
//!   source ----------------> other nodes ------------> sink
//!        ^                                                |
//!        +------------------------------------------------+
//!              acknowledgments, hop by hop: `acks`
//! ```
//!
//! | module | contents |
//! | --- | --- |
//! | [`carrier`] | what a file scheme does |
//! | [`engine`] | the engine at one node |
//! | [`transfers`] | the transfers of one node: the table that engine and carrier work on |
//! | [`source`], [`sink`] | a file that this node sends, and one that it receives |
//! | [`checks`] | how nodes that took false packets get checks of the source |
//! | [`frame`] | frames that all file schemes have |
//! | `pace` | bounds on the airtime of files in the background, and on what sources send |

pub mod acks;
mod admission;
pub mod announcements;
pub mod carrier;
pub mod checks;
pub mod engine;
pub mod frame;
mod pace;
pub mod sink;
pub mod source;
mod status;
pub mod transfers;

pub use carrier::{Carrier, PacketConfig};
pub use engine::FileMulticast;
pub use sink::FileSink;
pub use source::FileSource;
pub use transfers::Transfers;
