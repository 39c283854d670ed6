//! What happened on the medium, counted.

/// Counters of one radio, as sender and as receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RadioStatistics {
    /// Transmissions begun, retries included, the MAC's own frames not.
    pub frames_sent: u64,
    /// Of these, the ones that at least one radio in reach missed because of overlap: another frame it
    /// sensed at the same time, or its own transmission.
    pub frames_collided: u64,
    /// Unicast frames acknowledged.
    pub frames_acked: u64,
    /// Unicast frames given up.
    pub frames_failed: u64,
    /// Grants answered with nothing to send.
    pub grants_declined: u64,
    /// Acknowledgments sent.
    pub acks_sent: u64,
    /// Requests to send.
    pub rts_sent: u64,
    /// Answers to those.
    pub cts_sent: u64,
    /// Time on the air, the MAC's own frames included, ns.
    pub airtime_ns: u64,
    /// Time in which the radio sent or sensed another, in completed busy periods, ns.
    pub busy_ns: u64,
    /// Frames delivered to this radio.
    pub deliveries: u64,
    /// Frames not delivered to it because of the link's loss.
    pub losses: u64,
    /// Frames strong enough for it, but not delivered because others overlapped there, it was sending itself,
    /// or noise spoilt them.
    pub collisions: u64,
    /// Unicast frames that came again after a lost acknowledgment, and were filtered.
    pub duplicates: u64,
}

impl RadioStatistics {
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

/// Counters of the whole medium.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// By radio index.
    pub radios: Vec<RadioStatistics>,
    /// Time in which at least one frame was in the air anywhere, in completed busy periods, ns.
    pub busy_ns: u64,
}

impl Statistics {
    /// All radios' counters added up.
    pub fn total(&self) -> RadioStatistics {
        let mut total = RadioStatistics::default();
        self.radios.iter().for_each(|radio| total.add(radio));
        total
    }
}
