//! The hop: how the default engines decide what to send next.
//!
//! The cascade (files) and braid (packets) follow one rule: **a node sends while a next hop lacks
//! what it has, and every frame says what its sender has**. So each frame that a node hears of its
//! next hop corrects what it believes, and no other acknowledgment is needed. The engines differ in
//! what they send (generations, a window of packets), not in how they know that it is needed.
//!
//! For each next hop a node keeps a record, `Child` in both engines: what the next hop had by its
//! own last word, what was sent to it since, the share of that which arrives, and which answers are
//! missing. At each grant of the channel the node goes through these steps:
//!
//! 1. **Silence.** It sends nothing while the channel is left to others: to an answer that it may
//!    not hear ([`AnswerSlot`], [`silence`]), or to a next hop that sends on what it got
//!    ([`pacing`]).
//! 2. **Reports.** Control goes before data: its own wants to its previous hop ([`report`]), and
//!    reports that it passes on ([`passing`]).
//! 3. **Lack.** It estimates what each next hop lacks: what that lacked when it was last heard,
//!    less the packets sent since that should have arrived, which is their number times the share
//!    that arrives ([`delivery`]).
//! 4. **Data.** It sends a packet if a next hop lacks something, answers, and has room: not too
//!    much waits there for its own next hops.
//! 5. **Poll.** If after this packet no next hop should lack anything, the packet asks for a
//!    report. A poll whose answer is late ([`AnswerTime`]) is repeated, after pauses that double.
//!
//! | step | cascade | braid |
//! | --- | --- | --- |
//! | silence | `Answering`, `Flow::next_generation` | `Braid::next`, `Turns`, `Flow::next` |
//! | reports | `Cascade::fill_report` | `Braid::fill`, first lines |
//! | lack | `Child::lacks`: ranks of generations | `Child::lacks`: dimensions of a window |
//! | data | `Flow::worth`, `Child::takes_data` | `Flow::next`, `Child::can_take` |
//! | poll | `Flow::note_sent` | `Flow::fill` |
//!
//! For example: a next hop had 41 packets of 64 by its last word. Since then 20 were sent, of which
//! 0.8 arrive. It should lack 64 - 41 - 16 = 7, so packets go on. After nine more it should lack
//! nothing: the ninth polls. The answer says 62. So 21 of 29 arrived, the share is corrected, and
//! three more packets go, the last of which polls again.
//!
//! Any frame of a next hop is an answer. Its [`Standing`] decides what it gets:
//!
//! ```text
//!                 heard                      polled
//!        New ---------------> Answering <-----------------> Asked
//!         |  data or polls     data         heard            | data; a poll that is
//!         |                       ^                          | late is repeated
//!         |                 heard |                          |
//!         |                       |    some answers missing  v
//!         |                       +----------------------- Silent
//!         |                 heard |                          | short polls, or what is new
//!         |                       |    more are missing, or  v
//!         |                       |    nothing is gained
//!         |                       +----------------------- OnTrial
//!         |  never heard                                     | only polls, or a few packets
//!         |  for seconds                     for seconds     v at a time, after pauses that grow
//!         +-----------------------------------------------> Gone: forgotten, or another next hop
//!                                                           takes its place
//! ```
//!
//! A next hop does not tell at once which frames it got: [`SentFrames`] knows which ones a state of
//! it covers. If another neighbour looks better, the [`Choice`] waits until that lasts.
//!
//! A next hop of which nothing comes, although link state promises it, is [`Avoided`] for a while,
//! and packets go [`around`] it.
//!
//! How long an answer takes depends on the channel, so it is learned. What is missing is counted
//! by what should have come: a poll counts with the chance that it and its answer arrive, a packet
//! with the chance that it arrives. If four answers should have come and none did, chance explains
//! it in 1 of 50 cases over any link. The limits in which the engines differ are in their policies.
//!
//! A constant says what it trades. "Half 0.96, twice 1.01" is what ten instances gain with half and
//! with twice its value: the geometric mean of how much faster a file or a flow is. Where nothing
//! is said it was 0.98 to 1.02 both ways, which is chance. `docs/notes/2026-11-27-hop.md` has all
//! of them.

mod answers;
mod avoided;
mod choice;
pub mod delivery;
mod flight;
pub mod pacing;
mod packet_time;
pub mod passing;
pub mod report;
pub mod silence;
mod standing;

pub use answers::{AnswerPolicy, AnswerSlot, AnswerTime};
pub use avoided::{Avoided, around};
pub use choice::{Choice, ChoicePolicy, Ways};
pub use flight::{Covered, Handled, SentFrames};
pub use packet_time::PacketTime;
pub use standing::{Standing, StandingPolicy, State};
