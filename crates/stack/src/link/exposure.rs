//! Frames of a neighbour that meet frames of nodes which it does not hear.
//!
//! A node defers to those that it hears. Over a good link its frames are lost only where they meet
//! those of other nodes. Such losses say nothing about the link: they come and go with traffic, and
//! if they counted, ways would change with it. Frames are numbered, so this node knows what each
//! neighbour sends, whether it hears the frames or not:
//!
//! ```text
//!   time        |----------------------------------------------|
//!   x hears     ====           =======        =====               others, and this node
//!   hidden           ===  ===          ====         ====          from x
//!   x sends         ^ in here: what the nodes that it hears leave
//! ```
//!
//! The share of the rest that hidden nodes take is the share of its frames that is lost to them.

use ncmesh_engine::time::{Duration, Instant};

/// Least time that is looked at.
const LOOK: Duration = Duration::from_millis(150);
/// Time over which what is seen is averaged: collisions begin and end with traffic.
const MEAN: f64 = 0.5;
/// Delivery below which a node does not defer to another.
pub(crate) const HIDDEN: f64 = 0.05;
/// Least share of the time that the nodes which a node hears leave it.
const LEAST_IDLE: f64 = 0.1;
/// Share of frames that is lost to collisions, at most: the rest shows whether the node is there.
const MOST_COLLIDES: f64 = 0.97;
/// Bytes of a hello, which collides with frames that begin during it as well.
const HELLO: f64 = 140.0;
/// How much of the length of a frame that was heard is taken over for those that were lost.
const LEARN: f64 = 0.1;

/// A frame of this node, and how long it was on the air.
#[derive(Clone, Copy, Debug)]
struct Sample {
    len: usize,
    airtime: Duration,
}

/// Airtime of this node, and of frames of any length.
#[derive(Debug, Default)]
pub(super) struct Airtimes {
    shortest: Option<Sample>,
    longest: Option<Sample>,
    /// Airtime of this node since the last look.
    own: Duration,
    looked_at: Instant,
}

/// Airtime of a frame, s: that of its preamble, and of each byte.
#[derive(Clone, Copy, Debug)]
struct Rate {
    frame: f64,
    byte: f64,
}

/// Time that is looked at, s, the share of it that this node's frames took, and how long others'
/// take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look {
    span: f64,
    pub own: f64,
    rate: Rate,
}

impl Airtimes {
    /// Notes a frame of this node.
    pub(super) fn note(&mut self, len: usize, airtime: Duration) {
        let sample = Sample { len, airtime };
        self.own += airtime;
        if self.shortest.is_none_or(|shortest| len <= shortest.len) {
            self.shortest = Some(sample);
        }
        if self.longest.is_none_or(|longest| len >= longest.len) {
            self.longest = Some(sample);
        }
    }

    /// Returns what passed since the last look, if that is long enough ago.
    pub(super) fn look(&mut self, now: Instant) -> Option<Look> {
        let span = now.since(self.looked_at);
        let rate = self.rate().filter(|_| span >= LOOK)?;
        let own = core::mem::take(&mut self.own);
        self.looked_at = now;
        let span = span.as_secs_f64();
        Some(Look { span, own: own.as_secs_f64() / span, rate })
    }

    /// Returns how long a frame of `len` bytes takes, if that is known.
    pub(super) fn airtime(&self, len: usize) -> Option<Duration> {
        let Rate { frame, byte } = self.rate()?;
        Some(Duration::from_secs_f64(frame + byte * len as f64))
    }

    /// Returns the airtime of frames, by the shortest and the longest of this node; `None` before
    /// it sent two of different length.
    fn rate(&self) -> Option<Rate> {
        let short = self.shortest?;
        let long = self.longest?;
        let bytes = (long.len - short.len) as f64;
        let byte = long.airtime.saturating_sub(short.airtime).as_secs_f64() / bytes;
        let frame = (short.airtime.as_secs_f64() - byte * short.len as f64).max(0.0);
        byte.is_finite().then_some(Rate { frame, byte })
    }
}

/// Frames that a neighbour sent, and what becomes of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Exposure {
    /// Number of the last frame that was heard, and the mean length of its frames.
    last: Option<u32>,
    len: f64,
    /// Frames and bytes that it sent since the last look.
    frames: f64,
    bytes: f64,
    /// Share of its frames that is lost to nodes which it does not hear.
    collides: f64,
    /// Frames that a node with several ports had sent on this one by its last hello, modulo 2^16.
    told: Option<u16>,
    /// Frames that were heard since its last hello.
    heard: u16,
}

impl Exposure {
    /// Returns whether no frame was heard that is later than the one of this number.
    pub(super) fn is_latest(&self, counter: u32) -> bool {
        self.last < Some(counter)
    }

    /// Counts the frames that its sender says it sent on this port before a hello, and that were
    /// not heard.
    pub(super) fn note_told(&mut self, frames: u16) {
        if let Some(before) = self.told.replace(frames) {
            let lost = f64::from(frames.wrapping_sub(before).saturating_sub(self.heard));
            self.frames += lost;
            self.bytes += lost * self.len;
        }
        self.heard = 0;
    }

    /// Counts a frame that was heard and, if its sender has no other port, those before it that
    /// were not.
    pub(super) fn note_frame(&mut self, counter: u32, len: usize, are_all_here: bool) {
        let len = len as f64;
        self.heard = self.heard.saturating_add(1);
        let last = self.last.filter(|_| are_all_here);
        let lost = last.map_or(0, |last| counter.saturating_sub(last.saturating_add(1)));
        self.len = if self.last.is_none() { len } else { self.len + LEARN * (len - self.len) };
        self.last = self.last.max(Some(counter));
        self.frames += f64::from(lost) + 1.0;
        self.bytes += f64::from(lost) * self.len + len;
    }

    /// Returns the share of the time in which its frames since the last look would disturb a hello.
    pub(super) fn take_share(&mut self, look: Look) -> f64 {
        let Look { span, rate, .. } = look;
        let airtime = self.frames * (2.0 * rate.frame + HELLO * rate.byte) + self.bytes * rate.byte;
        self.frames = 0.0;
        self.bytes = 0.0;
        airtime.min(span) / span
    }

    /// Notes the shares of the time that nodes took which it hears, and those that hide from it.
    pub(super) fn note_shares(&mut self, sensed: f64, hidden: f64, look: Look) {
        let collides = (hidden / (1.0 - sensed).max(LEAST_IDLE)).min(MOST_COLLIDES);
        self.collides += (look.span / MEAN).min(1.0) * (collides - self.collides);
    }

    /// Returns the share of its frames that met none of a node which it does not hear.
    pub(super) fn clear(&self) -> f64 {
        1.0 - self.collides
    }
}
