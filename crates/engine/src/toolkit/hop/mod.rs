//! The hop: how the default engines decide what to send next.
//!
//! The cascade (files) and braid (packets) follow one rule: **a node sends while a next hop lacks
//! what it has, and every frame says what its sender has**. So each frame that a node hears of a
//! next hop corrects what it believes of it. The engines differ in who chooses whom and in what
//! they send, not in how they know that it is needed:
//!
//! - In the cascade each node chooses one *parent*, from which it takes a file. A node serves all
//!   *children* that chose it. It sends packets of *generations*.
//! - In braid a node chooses one next hop for each flow. It sends packets of a window, or
//!   combinations of them.
//!
//! Below, a child is a "next hop", too. The "previous hop" is the parent, or in braid the node
//! whose frames name this one. For each next hop a node keeps a record, `Child` in both engines:
//! what the next hop had by its own last word, what was sent to it since, the share of that which
//! arrives, and which answers are missing.
//!
//! When a node is granted the channel, it goes through these steps, until there is a frame to send
//! or it is found that none is to be sent:
//!
//! 1. **Reports.** It tells its previous hop what it has, if that is due ([`report`]): it was
//!    asked, data do not come, they bring nothing, or there is room again. Then it passes on
//!    reports of others ([`passing`]).
//! 2. **Silence.** That is all while the channel is left to others: to an answer that it may
//!    not hear ([`AnswerSlot`], [`silence`]), or to the node after its next hop, which sends on
//!    what that has just sent ([`pacing`]).
//! 3. **Lack.** It estimates what each next hop lacks: the lack by its last word, less the packets
//!    sent since times the share that arrives ([`delivery`]).
//! 4. **Data.** It sends a packet if a next hop lacks something, its standing allows it, and it has
//!    room: few packets wait there to be sent on.
//! 5. **Poll.** The packet that should complete what the next hops lack asks them for a report, by
//!    a flag. If a next hop that lacks something, or has no room, is not heard in time
//!    ([`AnswerTime`]), the next frame for it asks, too, and one is sent though its standing or its
//!    room allow no data. While no word comes, the pauses between questions grow.
//!
//! | | cascade | braid |
//! | --- | --- | --- |
//! | whose turn it is | the transfer that was served longest ago, those in the background last | the flow that was served longest ago; real-time traffic goes first, at most three times in a row while others wait, then last |
//! | it lacks something | more than 0.05 packets of a generation; what other nodes sent to it counts as well | a packet of the window that is missing by its last word. For a combination: more than 0.6 packets of those sent |
//! | it has room | it is a receiver, or fewer than 4 generations wait there for its own children | it is the destination, or fewer than 8 packets should wait there |
//! | what is sent | of the lowest generation that a child lacks: by the source each packet once as it is, else combinations. A generation that this node holds in part is sent only while every child that wants it lacks at least 8 of its packets. If no child forwards, packets that only children with poor links lack come last | real-time traffic, lost or new; else a packet that was lost for certain; else a new one, while fewer than 16 are uncertain, over a cable up to 32; else a combination of those that may be lost, but not over a cable; else a question. A packet of another flow may join it |
//! | it is asked | with the packet after which no child should lack anything of that generation, if this node holds it whole; at the end of a trial for want of answers | with a packet after which at most 0.6 should be missing. While more packets come from the previous hop, one question is enough for several. The destination is heard only in its reports, so it is asked while packets wait for it, too. A packet that the MAC acknowledges need not ask |
//! | it asks upstream | a parent from which no data come: after 0.3 s, then at pauses that grow to 5 s | with its reports alone |
//! | it gives up | nothing of a file | a packet after 2 s, real-time traffic after its deadline; the destination does not wait for a missing one for longer than 0.5 s |
//! | steps 1 and 2 | `Cascade::fill_report`; `Cascade::next_packet`, `Flow::next_generation` | `Braid::fill`; `Braid::next`, `Flow::next` |
//! | steps 3 to 5 | `Child::lacks`; `Flow::worth`, `Child::takes_data`; `Flow::note_sent`, `Child::is_poll_lost` | `Child::lacks`; `Flow::next`, `Child::can_take`; `Flow::fill`, `Child::is_overdue` |
//!
//! For example, in the cascade: a child had 41 packets of 64 by its last word. Since then 20 were
//! sent, and a share of 0.8 arrives. It should lack 64 - 41 - 16 = 7, so packets go on. After nine
//! more it should lack nothing: the ninth polls. The answer says 62. So 21 of 29 arrived, the share
//! is corrected, and three more packets go, the last of which polls again.
//!
//! # Standing
//!
//! A frame of a next hop about this flow, if it is newer than the last one, is an answer, whatever
//! it was sent for. So is a report that another node passed on, and in braid the acknowledgment of
//! the MAC. The [`Standing`] of a next hop decides what it gets. Where the conditions of several
//! hold, that which is furthest down counts:
//!
//! ```text
//!    +------------- asked ----------------+
//!    |       heard              asked     v
//!   New ------------> Answering ------> Asked
//!    |                    ^     <------   |
//!    |                    |      heard    | answers are missing
//!    |                    |               v
//!    |                    |<-- heard -- Silent    as Asked; a question is empty if nothing
//!    |                    |               |       else is to be sent
//!    | no word of         | heard, or     | more answers are missing
//!    | many packets       | it gained     v
//!    +--------------------|----------> OnTrial    few packets at a time, after pauses that
//!    |                    |               |       grow, or questions alone
//!    |                    +---------------|
//!    | never heard                        | not heard for long
//!    +-------------------------------> Gone       the cascade forgets it; in braid its link
//!                                                 counts for little, so that another way is taken
//!                                                 if there is one, else it is asked on
//! ```
//!
//! Two counts lead from `Answering` and `Asked` to the trial, too: packets of which it has not
//! spoken, and packets that brought it nothing by its own word. A trial for packets that brought
//! nothing ends only once one brings something. What differs is in the policy of each engine:
//!
//! | [`StandingPolicy`] | cascade | braid |
//! | --- | --- | --- |
//! | silent, on trial: missing answers | 2, 2: never just silent | 1.5, 4 |
//! | on trial: packets without word, in vain | 64, 128 | 32, 64 |
//! | least chance of a packet | 0.25: a child that says it hears nothing must not hold the channel | 0: this node leaves one that hears too little |
//! | on trial, it gets | 32 packets between pauses if it was ever heard. A late poll is repeated in any case, and carries a packet | a question when one is overdue. If answers are missing it is empty, else it carries what may be lost |
//! | gone | not heard for 20 s; if it was never heard, for 2 s divided by the share of its frames that arrive here | on trial, and not heard for 2 s |
//!
//! Counts are of what should have come: a question counts with the chance that it and its answer
//! arrive, a packet with the chance that it arrives. If four answers should have come and none did,
//! that is chance in 1 of 50 cases over any link; if two should have come, in 1 of 7.
//!
//! # Other parts
//!
//! - [`SentFrames`]: each frame names the last one of the previous hop that its sender had handled.
//!   So a node knows which of its frames a state covers, and which were lost for certain.
//! - [`TripTime`]: how long it takes from a frame until the word of it is here. By this braid tells
//!   a cable from a radio.
//! - [`Choice`]: another next hop or parent looks better. It takes the place of the present one
//!   once it has looked so for a while.
//! - [`Avoided`]: link state promises a neighbour, and nothing comes of it. For a while another is
//!   chosen, and in braid packets go [`around`] it.
//! - [`AnswerTime`], [`PacketTime`]: how long an answer and a packet take is learned, for it
//!   depends on the channel.
//!
//! # Constants
//!
//! Each constant says what it trades. "Half 0.96, twice 1.01" are results with half and with twice
//! its value, over those with the value: the geometric mean over ten instances of the rate of a
//! file or a flow. Where nothing is said it was 0.98 to 1.02 both ways, which is chance.
//! `docs/notes/2026-11-27-hop.md` has all of them. More about each engine is in
//! `docs/internals/cascade.md` and `docs/internals/braid.md`.

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
mod trip;

pub use answers::{AnswerPolicy, AnswerSlot, AnswerTime};
pub use avoided::{Avoided, around};
pub use choice::{Choice, ChoicePolicy, Ways};
pub use flight::{Covered, Handled, SentFrames};
pub use packet_time::PacketTime;
pub use standing::{Standing, StandingPolicy, State};
pub use trip::TripTime;
