//! Roll-out of a release: staged everywhere, then applied batch by batch.
//!
//! An operator's [`Rollout`] gives out one [`Order`] at a time, signed, and repeats it. Each
//! [`Member`] answers an order by a [`Report`]. Nothing else passes between them, so a lost message
//! costs a repetition and no more. A [`Packet`] carries either.
//!
//! A member that hears no operator may be passed on the last order of another one. It counts for
//! staging and for ending a roll-out. It installs nothing: only the operator knows whether it still
//! holds.
//!
//! ```text
//! Rollout   Pushing ──► Pushed ──► Applying batch 1, 2, ... ──► Done
//!                                     │ a member fails, or does not come back in time
//!                                     ▼
//!                                  Stopped ──► RollingBack ──► RolledBack
//!
//! Member    Wanting ► Fetching ► Checking ► Staged ► Rechecking ► Applying ► Trial ► Kept
//!              └─────────┴──────────┴─► Refused         └────► Failed  │
//!                                                                      └► RollingBack ► RolledBack
//! ```
//!
//! A member installs only what enough keys have signed and what it has read in full: it checks the
//! image when it is there, and again directly before it installs it. In its trial it waits for an
//! order that names it: an order that arrives proves that the node still reaches the mesh. Without
//! one it goes back to its old image.
//!
//! Both sides are state machines without sockets, files or clock. Times are durations since an
//! origin that the driver chose. A saved state holds the time that is left, so it survives restarts
//! and clocks that jump.

mod coordinator;
mod member;
mod order;
mod packet;
mod plan;

pub use coordinator::{ApplyError, REPEAT_AFTER, Rollout, Row, Settings, Stage, Stop};
pub use member::{
    Action, Dropped, Exit, Facts, HOOK_WITHIN, MAX_RETRIES, Member, OPERATOR_SILENT, Phase,
    RESTART_WITHIN, RETRY_AFTER, SavedMember,
};
pub use order::{Node, Number, Order, Report, SignedOrder, Standing, Step, Why};
pub use packet::{Lacks, NoPacket, Packet, PassedOrder};
pub use plan::{Batch, Link, batches};
