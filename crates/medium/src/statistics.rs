//! Counters of the medium.

/// Counters of one radio, as sender and as receiver. The MAC's own frames are RTS, CTS and ACK.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RadioStatistics {
    /// Transmissions of data frames, retries included.
    pub frames_sent: u64,
    /// Transmissions of data frames that at least one radio in reach lost to an overlap: with
    /// another frame that it sensed, or with its own transmission.
    pub frames_collided: u64,
    /// Unicast frames that were acknowledged.
    pub frames_acked: u64,
    /// Unicast frames that were given up at the retry limit.
    pub frames_failed: u64,
    /// Grants that the host declined.
    pub grants_declined: u64,
    /// ACKs sent.
    pub acks_sent: u64,
    /// RTSs sent.
    pub rts_sent: u64,
    /// CTSs sent.
    pub cts_sent: u64,
    /// Time on the air, the MAC's own frames included, ns.
    pub airtime_ns: u64,
    /// Time in which the channel was busy for this radio, in completed busy periods, ns.
    pub busy_ns: u64,
    /// Frames delivered to this radio.
    pub deliveries: u64,
    /// Frames not delivered to it because of the link's loss.
    pub losses: u64,
    /// Frames that were strong enough, but were not delivered because of interference, noise or the
    /// radio's own transmission.
    pub collisions: u64,
    /// Unicast frames that arrived again after a lost ACK, and were filtered.
    pub duplicates: u64,
}

impl RadioStatistics {
    /// Adds the counters of another radio.
    fn add(&mut self, other: &Self) {
        self.frames_sent += other.frames_sent;
        self.frames_collided += other.frames_collided;
        self.frames_acked += other.frames_acked;
        self.frames_failed += other.frames_failed;
        self.grants_declined += other.grants_declined;
        self.acks_sent += other.acks_sent;
        self.rts_sent += other.rts_sent;
        self.cts_sent += other.cts_sent;
        self.airtime_ns += other.airtime_ns;
        self.busy_ns += other.busy_ns;
        self.deliveries += other.deliveries;
        self.losses += other.losses;
        self.collisions += other.collisions;
        self.duplicates += other.duplicates;
    }
}

/// Transmissions of one radio's data frames, by what became of them at another one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkStatistics {
    /// Frames that were decoded.
    pub decoded: u64,
    /// Frames that the link's loss erased.
    pub erased: u64,
    /// Frames that were strong enough, but were not decoded because of interference, noise or the
    /// receiver's own transmission.
    pub corrupted: u64,
}

/// Counters of the whole medium.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Counters of each radio, by index.
    pub radios: Vec<RadioStatistics>,
    /// Time in which at least one frame was on the air anywhere, in completed busy periods, ns.
    pub busy_ns: u64,
}

impl Statistics {
    /// Returns the sums of all radios' counters.
    pub fn total(&self) -> RadioStatistics {
        let mut total = RadioStatistics::default();
        self.radios.iter().for_each(|radio| total.add(radio));
        total
    }
}
