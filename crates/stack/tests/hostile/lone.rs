//! One node, what it hears, and what memory it takes.

use ncmesh_engine::counters::DropReason;
use ncmesh_engine::file::FileLimits;
use ncmesh_engine::registry::Registry;
use ncmesh_engine::storage::MemoryStorage;
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::topology::Metric;
use ncmesh_engine::{TxReport, TxResult};
use ncmesh_stack::control::{HELLO, SERVICE};
use ncmesh_stack::{Stack, StackConfig};
use ncmesh_wire::{Cipher, NodeId, Salt, Versions, Writer, frame};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::collections::BTreeMap;

thread_local! {
    static BYTES: Cell<isize> = const { Cell::new(0) };
}

/// Counts the bytes that a thread has allocated and not freed.
struct Counting;

/// Returns the bytes that this thread holds now.
pub(crate) fn bytes_held() -> isize {
    BYTES.with(Cell::get)
}

fn count(change: isize) {
    BYTES.with(|bytes| bytes.set(bytes.get() + change));
}

// SAFETY: passes every call on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller's layout.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: `block` came from `System.alloc` with this layout.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

pub(crate) const ME: u16 = 1;
/// Two honest neighbours: node 1 reaches node 3 over node 2.
pub(crate) const NEAR: u16 = 2;
pub(crate) const FAR: u16 = 3;
pub(crate) const LIAR: u16 = 66;
/// Scope byte of a whole state for the whole mesh that is passed on at once.
pub(crate) const WHOLE: u8 = 0xFF;
/// The same of a change.
pub(crate) const CHANGE: u8 = 0x7F;
/// Share of the airtime that a node with few neighbours may use for link states and repair.
pub(crate) const BUDGET: f64 = 0.12 / 4.0;

/// Where the fields of a frame begin, and in a hello the number of short frames.
const BODY: usize = frame::HEADER_LEN + 2;
const SHORT_SENT: usize = BODY + 2;

/// A frame that the node sent.
pub(crate) struct Sent {
    pub(crate) at: Instant,
    pub(crate) kind: u8,
    pub(crate) body: Vec<u8>,
}

/// One node, and what it hears.
pub(crate) struct Lone {
    pub(crate) stack: Stack,
    pub(crate) storage: MemoryStorage,
    pub(crate) now: Instant,
    pub(crate) mtu: usize,
    /// Start, and number of the last frame, of each sender.
    pub(crate) senders: BTreeMap<u16, (u8, u32)>,
    pub(crate) sent: Vec<Sent>,
    pub(crate) airtime: Duration,
}

impl Lone {
    pub(crate) fn new(mtu: usize) -> Self {
        let config = StackConfig {
            node: NodeId(ME),
            name: "n1".into(),
            profile: Default::default(),
            salt: Salt([1; 16]),
            epoch: 1,
            seed: 1,
            mtu,
            versions: Versions::OWN,
            cipher: Cipher::Null,
            trust: Default::default(),
            link: Default::default(),
            route: Default::default(),
            share: Default::default(),
            engines: toml::Table::new(),
            file: FileLimits::default(),
        };
        let now = Instant::default();
        let mut stack = Stack::new(config, Registry(&[]), now).unwrap();
        stack.trust_all();
        Self {
            stack,
            storage: MemoryStorage::default(),
            now,
            mtu,
            senders: BTreeMap::new(),
            sent: Vec::new(),
            airtime: Duration::ZERO,
        }
    }

    /// A node between honest neighbours, ten seconds after its start.
    pub(crate) fn settled() -> Self {
        let mut lone = Self::new(1472);
        for _ in 0..50 {
            lone.hear_the_honest();
            lone.run(200);
        }
        assert_eq!(lone.hops(FAR), Some(vec![NEAR, FAR]));
        lone
    }

    /// Hears hellos of node 2, which tells the links of node 3 too.
    pub(crate) fn hear_the_honest(&mut self) {
        let near = whole(NEAR, 1, 0, 1, b"n2", &[(ME, 250), (FAR, 250)]);
        let far = whole(FAR, 1, 0, 1, b"n3", &[(NEAR, 250)]);
        self.hear(NEAR, HELLO, &hello(1000, 0, 7, &[], &[near, far].concat()));
    }

    /// Hears the next frame of `sender`.
    pub(crate) fn hear(&mut self, sender: u16, kind: u8, body: &[u8]) {
        let (start, counter) = self.senders.get(&sender).copied().unwrap_or((1, 0));
        self.hear_as(sender, start, counter + 1, kind, body);
    }

    /// Hears a frame of `sender` of this start with this number.
    pub(crate) fn hear_as(&mut self, sender: u16, start: u8, counter: u32, kind: u8, body: &[u8]) {
        self.senders.insert(sender, (start, counter));
        let mut frame = vec![0xC2];
        Writer::new(&mut frame).node(NodeId(sender)).bytes(&[start; 16]).u32(counter);
        Writer::new(&mut frame).u8(SERVICE.0).u8(kind);
        frame.extend_from_slice(body);
        // A hello counts the short frames before it. All that tests send are short.
        if kind == HELLO && body.len() > 4 {
            frame[SHORT_SENT..SHORT_SENT + 2]
                .copy_from_slice(&(counter.wrapping_sub(1) as u16).to_be_bytes());
        }
        frame.extend([0; 16]);
        self.stack.at(self.now, &mut self.storage).handle_datagram(&frame);
    }

    /// Lets time pass, and sends at 11 Mbit/s whatever the node wants to send.
    pub(crate) fn run(&mut self, ms: u64) {
        let end = self.now + Duration::from_millis(ms);
        let mut out = Vec::new();
        loop {
            self.stack.at(self.now, &mut self.storage).handle_timeout();
            while self.now < end
                && self.stack.at(self.now, &mut self.storage).fill(&mut out).is_some()
            {
                assert!(out.len() <= self.mtu, "a frame of {} bytes", out.len());
                let airtime = Duration::from_micros(192 + out.len() as u64 * 8 / 11);
                let body = out[BODY..out.len() - frame::TAG_LEN].to_vec();
                self.sent.push(Sent { at: self.now, kind: out[BODY - 1], body });
                self.airtime += airtime;
                self.now = self.now + airtime;
                let report = TxReport { result: TxResult::Sent, airtime, heard_by: None };
                self.stack.at(self.now, &mut self.storage).handle_tx_report(report);
            }
            let next = self.stack.poll_timeout().unwrap();
            if self.now >= end || next >= end {
                self.now = self.now.max(end);
                return;
            }
            self.now = self.now.max(next);
        }
    }

    /// Begins to measure airtime. Returns the present time.
    pub(crate) fn begin(&mut self) -> Instant {
        self.airtime = Duration::ZERO;
        self.now
    }

    /// Returns the share of the time since `since` that the node has sent.
    pub(crate) fn load(&self, since: Instant) -> f64 {
        self.airtime.as_secs_f64() / self.now.since(since).as_secs_f64()
    }

    pub(crate) fn dropped(&self, reason: DropReason) -> u64 {
        self.stack.counters().dropped(reason)
    }

    pub(crate) fn knows(&self, node: u16) -> bool {
        self.stack.topology().state(NodeId(node)).is_some()
    }

    /// Returns the hops of the path to a node.
    pub(crate) fn hops(&self, to: u16) -> Option<Vec<u16>> {
        let paths = self.stack.topology().paths_from(NodeId(ME), Metric::Broadcast);
        let reached = paths.reaches(NodeId(to));
        reached.then(|| paths.path_to(NodeId(to)).iter().map(|node| node.0).collect())
    }

    /// Returns the number of frames of a kind that were sent from `since` on.
    pub(crate) fn count(&self, kind: u8, since: Instant) -> usize {
        self.sent.iter().filter(|s| s.kind == kind && s.at >= since).count()
    }
}

pub(crate) fn body(write: impl FnOnce(&mut Writer<'_>)) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut Writer::new(&mut out));
    out
}

pub(crate) fn hello(
    interval_ms: u16,
    long_sent: u16,
    digest: u64,
    asks: &[u16],
    states: &[u8],
) -> Vec<u8> {
    let mut out = body(|w| {
        w.u16(interval_ms).u16(0).u16(long_sent).u16(2).u64(digest).u8(asks.len() as u8).u8(0);
        for node in asks {
            w.node(NodeId(*node));
        }
        // No proofs.
        w.u16(0);
    });
    out.extend_from_slice(states);
    out
}

/// A whole state; `links` are nodes heard, with delivery in units of 1/255.
pub(crate) fn whole(
    origin: u16,
    number: u32,
    since_base: u16,
    epoch: u64,
    name: &[u8],
    links: &[(u16, u8)],
) -> Vec<u8> {
    body(|w| {
        w.node(NodeId(origin)).u8(WHOLE).u32(number).u16(since_base).u64(epoch);
        w.short_bytes(name).u8(links.len() as u8);
        for (node, delivery) in links {
            w.node(NodeId(*node)).u8(*delivery);
        }
    })
}

/// A change of the links since a version.
pub(crate) fn change(
    origin: u16,
    number: u32,
    since_base: u16,
    epoch_bits: u16,
    since: u16,
    links: &[(u16, u8)],
) -> Vec<u8> {
    body(|w| {
        w.node(NodeId(origin)).u8(CHANGE).u32(number).u16(since_base).u16(epoch_bits).u16(since);
        w.u8(links.len() as u8);
        for (node, delivery) in links {
            w.node(NodeId(*node)).u8(*delivery);
        }
    })
}

pub(crate) fn compare(to: u16, ranges: &[(u16, u16, u64)]) -> Vec<u8> {
    body(|w| {
        w.node(NodeId(to));
        for (first, last, digest) in ranges {
            w.node(NodeId(*first)).node(NodeId(*last)).u64(*digest);
        }
    })
}

/// One list of versions: `count` states are promised, those of `listed` follow.
pub(crate) fn versions(
    to: u16,
    first: u16,
    last: u16,
    count: u8,
    listed: &[(u16, u64, u32)],
) -> Vec<u8> {
    body(|w| {
        w.node(NodeId(to)).node(NodeId(first)).node(NodeId(last)).u8(count);
        for (origin, epoch, base) in listed {
            w.node(NodeId(*origin)).u64(*epoch).u32(*base);
        }
    })
}

pub(crate) fn request(to: u16, nodes: impl IntoIterator<Item = u16>) -> Vec<u8> {
    body(|w| {
        w.node(NodeId(to));
        for node in nodes {
            w.node(NodeId(node));
        }
    })
}
