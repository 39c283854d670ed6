//! The hop: how the default engines decide what to send next.
//!
//! The cascade (files) and braid (packets) follow one rule: **a node sends while a next hop lacks
//! what it has, and every frame says what its sender has**. So each frame that a node hears of its
//! next hop corrects what it believes, and no other acknowledgment is needed. The engines differ in
//! what they send (generations, a window of packets), not in how they know that it is needed.
//!
//! At each grant of the channel a node goes through these steps:
//!
//! 1. It keeps silent while the channel is left to others: to an answer that it may not hear
//!    ([`AnswerSlot`], [`silence`](super::silence)), to a next hop that sends on
//!    ([`pacing`](super::pacing)).
//! 2. It sends the reports that are due: of its own wants to its previous hop
//!    ([`report`](super::report)), and those of others ([`passing`](super::passing)).
//! 3. For each next hop it reckons what that one lacks: what it lacked by its own last word, less
//!    what was sent since, times the share that arrives ([`delivery`](super::delivery)).
//! 4. If a next hop lacks something, answers, and does not pile up packets, the node sends data.
//! 5. If no next hop should lack anything, the last packet *polls*: it asks for a report. A poll
//!    whose answer is late ([`AnswerTime`]) is repeated, after pauses that double.
//!
//! A next hop answers by any frame. Its standing decides what it gets:
//!
//! ```text
//!                 heard                      polled
//!        New ---------------> Answering <-----------------> Asked
//!         |  data or polls     data         heard            | data; a poll that is
//!         |                       ^                          | late is repeated
//!         |                 heard |                          |
//!         |                       |    answers are missing,  v
//!         |                       |    or it gains nothing
//!         |                    Silent <----------------------+
//!         |                       |     only polls, or a few packets at a time,
//!         |                       |     after pauses that grow
//!         |  never heard          v  for seconds
//!         +---------------------> Gone: forgotten, or another next hop takes its place
//! ```
//!
//! A next hop of which nothing comes, although link state promises it, is [`Avoided`] for a while,
//! and packets go [`around`] it.
//!
//! How long an answer takes depends on the channel, so it is learned. Answers are missing if more
//! should have come than chance explains: polls that were lost, times the chance that a poll and
//! its answer arrive. The constants in which the engines differ are in their policies.
//!
//! A constant says what it trades. "Half 0.96, twice 1.01" is what ten instances gain with half and
//! with twice its value: the geometric mean of how much faster a file or a flow is. Where nothing
//! is said it was 0.98 to 1.02 both ways, which is chance. `docs/notes/2026-11-27-hop.md` has all
//! of them.

mod answers;
mod avoided;
mod packet_time;

pub use answers::{AnswerPolicy, AnswerSlot, AnswerTime};
pub use avoided::{Avoided, around};
pub use packet_time::PacketTime;
