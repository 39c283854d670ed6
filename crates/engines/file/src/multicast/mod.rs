//! Reliable multicast of files: what all schemes share.
//!
//! A file is cut into batches of packets. The source sends packets of one batch at a time, as they
//! are or as random combinations; forwarders pass them on; receivers decode a batch once they have
//! enough independent packets, verify it and acknowledge it to the source. The source returns to a
//! batch until every receiver has it. Pacifier (Koutsonikolas, Hu, Wang; IEEE/ACM ToN 2012) is the
//! model; its sections are named where they are followed.
//!
//! A [`Scheme`] decides who forwards how much ([`Plan`], [`Forwarding`]) and when the source leaves
//! a batch ([`Switching`]). Everything else is here:
//!
//! ```text
//!              announcements (flooded)
//!        +----------------------------------+
//!        |          data packets            v
//!   source ------> relay ------> relay ----> sink        files in `source/`, `relay/`, `sink/`
//!        ^           ^  \__________|  ^       |
//!        |           |    reports     |       |          hop-by-hop schemes only: `arq`
//!        +-----------+----------------+-------+
//!              acknowledgments, hop by hop               `ack_cache`
//! ```
//!
//! `engine` joins the three roles at a node; `frame` has the wire format.

mod ack_cache;
mod admission;
mod announcements;
mod arq;
mod by_rank;
mod engine;
pub mod frame;
mod packet_set;
mod ready;
mod relay;
mod routing;
mod scheme;
mod sink;
mod source;
mod status;

pub use engine::{FileMulticast, PacketConfig};
pub use frame::{LAYOUTS, LAYOUTS_BY_RANK};
pub use routing::{Cast, Forwarder, Forwarding, Hop, Routing, Upstream};
pub use scheme::{ChildWait, Plan, Scheme, Switching};
