//! Files of roll-outs that other nodes lack: the node that leads a roll-out and the nodes that hold
//! its image send them in the same way.

use ncmesh_engine::file::{self, Direction, ReceiverState, TransferStatus};
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::topology::Metric;
use ncmesh_stack::Stack;
use ncmesh_wire::NodeId;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Time in which wishes are gathered, so that nodes get a file by one transfer.
const GATHER: Duration = Duration::from_secs(1);
/// Time after which a file is sent to a node again that still lacks it. It doubles each time.
const AGAIN: Duration = Duration::from_secs(30);
/// Most nodes whose wishes are kept. More than a mesh has in practice.
const MAX_WISHES: usize = 4096;

/// Files that nodes lack, by what they said last.
#[derive(Default)]
pub(super) struct Wishes {
    wishes: BTreeMap<NodeId, Wish>,
    /// When they are served.
    pub(super) serve_at: Option<Instant>,
}

/// A file that a node lacks, and when it was sent to it.
struct Wish {
    name: String,
    sent: Option<Sent>,
}

struct Sent {
    at: Instant,
    pause: Duration,
}

impl Wishes {
    /// Returns no wishes, which are served at this time at the earliest.
    pub(super) fn resume(serve_at: Instant) -> Self {
        Self { serve_at: Some(serve_at), ..Self::default() }
    }

    /// Notes what a node lacks; `None` for nothing.
    pub(super) fn note(&mut self, now: Instant, node: NodeId, name: Option<String>) {
        let is_full = self.wishes.len() >= MAX_WISHES && !self.wishes.contains_key(&node);
        let Some(name) = name.filter(|_| !is_full) else {
            self.wishes.remove(&node);
            return;
        };

        let wish = self.wishes.entry(node).or_insert(Wish { name: String::new(), sent: None });
        if wish.name != name {
            *wish = Wish { name, sent: None };
        }
        self.serve_at.get_or_insert(now + GATHER);
    }

    /// Returns whether it is time to serve them, and takes note of it.
    pub(super) fn is_due(&mut self, now: Instant) -> bool {
        let is_due = self.serve_at.is_none_or(|at| at <= now);
        if is_due {
            self.serve_at = None;
        }
        is_due && !self.wishes.is_empty()
    }
}

/// A file of a roll-out that this node can send.
pub(super) struct Outgoing {
    pub(super) path: PathBuf,
    pub(super) priority: Option<u8>,
    /// Most airtime in the background, percent.
    pub(super) background: Option<u8>,
}

/// A transfer that is to begin.
pub(super) struct Transfer {
    pub(super) name: String,
    pub(super) file: Outgoing,
    pub(super) receivers: Vec<NodeId>,
}

impl Wishes {
    /// Returns the transfers that bring nodes what they lack, one for all that lack the same.
    /// `waiting` are names of files whose transfers wait for their turn; `file` finds a file by
    /// its name on the mesh.
    pub(super) fn transfers(
        &mut self,
        now: Instant,
        stack: &Stack,
        waiting: &[String],
        file: impl Fn(&str) -> Option<Outgoing>,
    ) -> Vec<Transfer> {
        let paths = stack.topology().paths_from(stack.node(), Metric::Unicast);
        let sent_now = stack.transfers();

        let mut transfers: BTreeMap<String, Transfer> = BTreeMap::new();
        for (to, Wish { name, sent }) in &mut self.wishes {
            let is_recent = sent.as_ref().is_some_and(|sent| now < sent.at + sent.pause);
            let is_sent = waiting.contains(name) || is_served(&sent_now, *to, name);
            if is_recent || is_sent || !paths.reaches(*to) {
                continue;
            }

            let Some(file) = file(name) else { continue };
            let transfer = transfers.entry(name.clone()).or_insert(Transfer {
                name: name.clone(),
                file,
                receivers: Vec::new(),
            });
            transfer.receivers.push(*to);
            let pause = sent.as_ref().map_or(AGAIN, |sent| sent.pause * 2);
            *sent = Some(Sent { at: now, pause });
        }
        transfers.into_values().collect()
    }
}

/// Returns whether a file is on its way to a node. A transfer that goes on lasts as long as it
/// needs, also while the node is off.
fn is_served(transfers: &[TransferStatus], node: NodeId, name: &str) -> bool {
    let sent = transfers.iter().filter(|t| {
        t.direction == Direction::Sending && t.stage == file::Stage::Open && t.name == name
    });
    let mut receivers = sent.flat_map(|t| &t.receivers);
    receivers.any(|receiver| {
        let has_ended =
            matches!(receiver.state, ReceiverState::Complete | ReceiverState::Refused(_));
        receiver.node == node && !has_ended
    })
}
