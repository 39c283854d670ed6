//! Receiver of a stream of RTP: packets of all layers in order, numbered for a player.

use super::format::{FIRST_OF_FRAME, Kind, LAYERS};
use super::packet::{RtpPacket, renumber};
use super::sdp::{self, MAX_TRACKS, Track};
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_wire::FlowId;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};

/// Packets of a track that wait for others, at most: a second of 20 Mbit/s.
const MAX_HELD: usize = 2048;
/// Distance of numbers beyond which a track has begun again.
const MAX_JUMP: u16 = 8192;
/// Time with late packets alone after which a track has begun again, with lower numbers.
const STALL: Duration = Duration::from_secs(2);
/// Time without packets after which another source may be heard.
const SILENCE: Duration = Duration::from_secs(2);
/// Shortest and longest wait for packets that are missing. The longest is the age at which engines
/// give packets up by default.
const MIN_WAIT: Duration = Duration::from_millis(40);
const MAX_WAIT: Duration = Duration::from_secs(1);
/// Wait before anything is known of a path.
const FIRST_WAIT: Duration = Duration::from_millis(300);
/// Time after which a wait that was not needed becomes a quarter shorter.
const PATIENCE_INTERVAL: Duration = Duration::from_secs(1);

/// A datagram for a player.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Playable {
    /// Distance of its port from the first port of the player.
    pub port: u16,
    /// The datagram.
    pub packet: Vec<u8>,
}

/// Receiver of a group that RTP is sent to.
///
/// A player can make nothing of two sources at one port. So the first source is heard, and another
/// one once it is silent.
#[derive(Clone, Debug, Default)]
pub struct RtpReceiver {
    source: Option<Source>,
    tracks: BTreeMap<u8, TrackReceiver>,
    sdp: Option<Vec<Track>>,
    out: VecDeque<Playable>,
    /// Packets of other sources, and ones that are none of a stream of RTP.
    refused: u64,
}

/// The source that is heard.
#[derive(Clone, Copy, Debug)]
struct Source {
    flow: FlowId,
    heard: Instant,
}

impl RtpReceiver {
    /// Returns how many packets were not played because they came from another source, or were not
    /// RTP.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Returns the description for a player whose ports begin at `port`, once the source has sent
    /// one.
    #[must_use]
    pub fn sdp(&self, port: u16) -> Option<String> {
        self.sdp.as_ref().map(|tracks| sdp::write(tracks, port))
    }

    /// Takes a packet of a layer that arrived by the stream `flow`.
    pub fn handle(&mut self, flow: FlowId, layer: &str, packet: &[u8], now: Instant) {
        // Before the source counts as heard: a group may have sources of other layers.
        let Some(content) = Content::read(layer, packet) else {
            self.refused += 1;
            return;
        };

        let other = self.source.filter(|source| source.flow != flow);

        // One source at a time plays: another one is refused until that is silent.
        if other.is_some_and(|source| now < source.heard + SILENCE) {
            self.refused += 1;
            return;
        }

        // The source is silent: its numbers and its description are not those of the new one.
        if other.is_some() {
            self.tracks.clear();
            self.sdp = None;
        }

        self.source = Some(Source { flow, heard: now });
        match content {
            Content::Rtcp(playable) => self.out.push_back(playable),
            Content::Sdp(tracks) => self.sdp = Some(tracks),
            Content::Rtp(arrival) => {
                let number = arrival.track;
                let track = self.tracks.entry(number);
                let track = track.or_insert_with(|| TrackReceiver::new(&arrival, now));
                track.handle(arrival, now);
                track.play(number, now, &mut self.out);
            }
        }
    }

    /// Plays what need not wait any longer.
    pub fn handle_timeout(&mut self, now: Instant) {
        for (number, track) in &mut self.tracks {
            track.play(*number, now, &mut self.out);
        }
    }

    /// Returns the next datagram for the player.
    pub fn poll(&mut self) -> Option<Playable> {
        self.out.pop_front()
    }

    /// Returns when [`handle_timeout`](Self::handle_timeout) is due.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.tracks.values().filter_map(TrackReceiver::poll_timeout).min()
    }
}

/// Contents of a packet that arrived.
#[derive(Clone, Debug)]
enum Content {
    Rtcp(Playable),
    Sdp(Vec<Track>),
    Rtp(Arrival),
}

impl Content {
    /// Reads a packet; `None` if it is none of a stream of RTP.
    fn read(layer: &str, packet: &[u8]) -> Option<Self> {
        if !LAYERS.contains(&layer) {
            return None;
        }

        let (&header, rest) = packet.split_first()?;
        let number = header & 0x0F;
        if usize::from(number) >= MAX_TRACKS {
            return None;
        }

        Some(match Kind::of(header)? {
            Kind::Rtcp => {
                let port = sdp::PORTS_PER_TRACK * u16::from(number) + 1;
                Self::Rtcp(Playable { port, packet: rest.to_vec() })
            }
            Kind::Sdp => Self::Sdp(sdp::read_travelled(rest)?),
            Kind::Rtp => {
                // The count of base packets before it tells how many of a gap are of the base.
                let (count, datagram) = rest.split_first_chunk()?;
                let rtp = RtpPacket::read(datagram)?;
                Self::Rtp(Arrival {
                    track: number,
                    sequence: rtp.sequence,
                    ssrc: rtp.ssrc,
                    held: Held {
                        timestamp: rtp.timestamp,
                        ends_frame: rtp.marker,
                        begins_frame: header & FIRST_OF_FRAME != 0,
                        is_base: layer == LAYERS[0],
                        base_before: u16::from_be_bytes(*count),
                        packet: datagram.to_vec(),
                    },
                })
            }
        })
    }
}

/// A packet of RTP that arrived.
#[derive(Clone, Debug)]
struct Arrival {
    /// Number of its track.
    track: u8,
    sequence: u16,
    ssrc: u32,
    held: Held,
}

/// A packet that waits for those before it.
#[derive(Clone, Debug)]
struct Held {
    timestamp: u32,
    ends_frame: bool,
    begins_frame: bool,
    is_base: bool,
    /// Packets of the base before this one.
    base_before: u16,
    packet: Vec<u8>,
}

/// When the packet of a number arrived.
#[derive(Clone, Copy, Debug)]
struct Evidence {
    number: u64,
    at: Instant,
}

/// Packets of one track in order.
#[derive(Clone, Debug)]
struct TrackReceiver {
    ssrc: u32,
    /// Number of the next packet to play, beyond 16 bits.
    next: u64,
    /// Packets of the base before that one.
    base_before: u16,
    /// Number that the player sees on the next packet.
    number: u16,
    held: BTreeMap<u64, Held>,
    /// Since when all packets were late.
    late_since: Option<Instant>,
    /// Arrivals of packets that may be held, the oldest first.
    evidence: VecDeque<Evidence>,
    /// Waits for missing packets of the base, and of enhancements.
    base: Patience,
    enhancement: Patience,
    /// Timestamp of a frame of an enhancement that lacks packets.
    damaged: Option<u32>,
    /// Whether the last packet played is of a frame of an enhancement that goes on.
    inside_enhancement: bool,
}

impl TrackReceiver {
    /// Returns a track that begins with this packet.
    fn new(first: &Arrival, now: Instant) -> Self {
        Self {
            ssrc: first.ssrc,
            // Far from 0, so that numbers before the first one exist.
            next: (1 << 32) + u64::from(first.sequence),
            base_before: first.held.base_before,
            number: first.sequence,
            held: BTreeMap::new(),
            late_since: None,
            evidence: VecDeque::new(),
            base: Patience::new(now),
            enhancement: Patience::new(now),
            damaged: None,
            inside_enhancement: false,
        }
    }

    /// Returns when the packets before the first one that is held are not waited for any longer.
    fn poll_timeout(&self) -> Option<Instant> {
        let gap = self.gap()?;
        Some(self.evidence.front()?.at + self.patience(gap).wait())
    }

    fn handle(&mut self, arrival: Arrival, now: Instant) {
        // A number far from the next one, or packets that are late all the time, mean another
        // sequence.
        let is_stalled = self.late_since.is_some_and(|since| now >= since + STALL);
        let ahead = arrival.sequence.wrapping_sub(self.next as u16) as i16;
        let is_far = ahead.unsigned_abs() > MAX_JUMP || ahead < 0 && is_stalled;
        let is_same = arrival.ssrc == self.ssrc;
        if is_far || !is_same {
            // The source has begun again. The player sees numbers that go on.
            let number = if is_same { self.number.wrapping_add(1) } else { arrival.sequence };
            *self = Self { number, ..Self::new(&arrival, now) };
        }

        // Numbers of 16 bits are continued to 64, so that they can be compared.
        let Arrival { sequence, held, .. } = arrival;
        let ahead = sequence.wrapping_sub(self.next as u16) as i16;
        let number = self.next.wrapping_add_signed(ahead.into());
        let patience = if held.is_base { &mut self.base } else { &mut self.enhancement };
        if number < self.next {
            self.late_since.get_or_insert(now);
            return patience.note_late(now);
        }

        self.late_since = None;

        // A packet that others of higher numbers waited for says how long a wait is of use.
        if let (Some(first), Some((last, _))) = (self.evidence.front(), self.held.last_key_value())
            && number < *last
        {
            patience.note(now - first.at, now);
        }

        // A copy is dropped.
        if let Entry::Vacant(place) = self.held.entry(number) {
            place.insert(held);
            self.evidence.push_back(Evidence { number, at: now });
        }
    }

    /// Plays packets in order, as far as none is missing that is worth a wait.
    fn play(&mut self, number: u8, now: Instant, out: &mut VecDeque<Playable>) {
        loop {
            // A gap is waited for while a packet may still come, and while there is room.
            let evidence = self.evidence.front();
            if let Some(gap) = self.gap() {
                let until = evidence.map(|first| first.at + self.patience(gap).wait());
                if self.held.len() <= MAX_HELD && until.is_some_and(|until| now < until) {
                    return;
                }
                self.patience_mut(gap).relax(now);
                self.skip(gap);
            }

            // Play the next packet, under a number that the player has not seen.
            let Some((_, held)) = self.held.pop_first() else { return };
            self.next += 1;
            self.base_before = held.base_before.wrapping_add(u16::from(held.is_base));
            while self.evidence.front().is_some_and(|first| first.number < self.next) {
                self.evidence.pop_front();
            }

            // The rest of a frame that lacks its beginning is of no use to a decoder.
            if !held.is_base && self.damaged == Some(held.timestamp) {
                continue;
            }

            self.inside_enhancement = !held.is_base && !held.ends_frame;
            let mut packet = held.packet;
            renumber(&mut packet, self.number);
            self.number = self.number.wrapping_add(1);
            out.push_back(Playable { port: sdp::PORTS_PER_TRACK * u16::from(number), packet });
        }
    }

    /// Returns what is missing before the first packet that is held; `None` if nothing is.
    fn gap(&self) -> Option<Gap> {
        let (number, head) = self.held.first_key_value()?;
        let missing = number.checked_sub(self.next).filter(|missing| *missing > 0)?;
        let base = head.base_before.wrapping_sub(self.base_before);
        // No more of the base can be missing than is missing at all.
        let base = base.min(u16::try_from(missing).unwrap_or(u16::MAX));
        Some(Gap { missing, base })
    }

    fn patience(&self, gap: Gap) -> &Patience {
        if gap.base > 0 { &self.base } else { &self.enhancement }
    }

    fn patience_mut(&mut self, gap: Gap) -> &mut Patience {
        if gap.base > 0 { &mut self.base } else { &mut self.enhancement }
    }

    /// Gives up the packets of a gap. Packets of the base leave a gap for the player, too.
    fn skip(&mut self, gap: Gap) {
        // Missing enhancement packets leave no gap in the numbers: the player need not know of
        // them.
        let Some((&number, head)) = self.held.first_key_value() else { return };
        self.number = self.number.wrapping_add(gap.base);
        if gap.missing > gap.base.into() {
            // A frame whose beginning was played has a hole, which the player must see.
            self.number =
                self.number.wrapping_add((self.inside_enhancement && gap.base == 0).into());
            if !head.is_base && !head.begins_frame {
                self.damaged = Some(head.timestamp);
            }
        }

        self.next = number;
        self.base_before = head.base_before;
        self.inside_enhancement = false;
    }
}

/// Packets that are missing before one that is held.
#[derive(Clone, Copy, Debug)]
struct Gap {
    missing: u64,
    /// Missing packets of the base.
    base: u16,
}

/// Time that missing packets are waited for: somewhat longer than the latest that came, and next to
/// nothing where most never come. A path that carries a part of an enhancement would delay the base
/// for little.
#[derive(Clone, Copy, Debug)]
struct Patience {
    lateness: Duration,
    /// When it was last made shorter.
    judged: Instant,
    /// Whether packets that were missing came in the end: a moving average of 0 and 1.
    hope: f64,
}

/// Weight of the latest packet in [`Patience::hope`].
const LATEST: f64 = 1.0 / 16.0;
/// Hope below which a wait is not worth it. A packet that comes late counts as one that did not
/// come and one that did.
const LEAST_HOPE: f64 = 0.4;

impl Patience {
    fn new(now: Instant) -> Self {
        Self { lateness: FIRST_WAIT, judged: now, hope: 1.0 }
    }

    fn wait(&self) -> Duration {
        if self.hope < LEAST_HOPE {
            return MIN_WAIT;
        }
        (self.lateness * 3 / 2).clamp(MIN_WAIT, MAX_WAIT)
    }

    /// Notes that a packet came so long after the first that waited for it.
    fn note(&mut self, lateness: Duration, now: Instant) {
        self.hope += LATEST * (1.0 - self.hope);
        if lateness > self.lateness {
            self.lateness = lateness;
            self.judged = now;
        }
    }

    /// Notes that a packet came when it was not waited for any longer.
    fn note_late(&mut self, now: Instant) {
        self.note((self.lateness * 2).min(MAX_WAIT), now);
    }

    /// Notes that a wait was in vain.
    fn relax(&mut self, now: Instant) {
        self.hope -= LATEST * self.hope;
        if now >= self.judged + PATIENCE_INTERVAL {
            self.lateness = self.lateness * 3 / 4;
            self.judged = now;
        }
    }
}
