//! Credits of one generation at one node: whom they were transferred to, and which received
//! packets back them (MC2, 3.4).
//!
//! A credit is the duty to pass on one packet of the generation. At the node that has the duty it
//! goes through these states:
//!
//! ```text
//!   held --transfer--> transferred --a delivery backs it--> announced --acknowledged--> gone
//!                        |     ^
//!                        +-----+  moved to another hop
//! ```
//!
//! Each state is a count for each hop, and each count includes those after it:
//! `transferred >= announced >= acknowledged`.
//!
//! *Transmission credits* are not stored. |TC(n, c, J)| is the number of credits transferred to the
//! hops of J, less the number of packets that at least one hop of J received. That is what the
//! paper's two update rules amount to, once a packet that J received counts for every set that
//! intersects J (`ERRATA.md`).
//!
//! *Backing.* The paper announces credits as they are transferred. Hops then own more credits than
//! packets, and send combinations that bring nothing new. Here each announced credit is backed by
//! one delivery, which the hop itself received and which backs no other credit. Whatever
//! combinations the hops send for their credits are independent then, whenever they send them.

use crate::hops::{HopSet, MAX_HOPS};

/// Credits of one generation.
#[derive(Clone, Debug)]
pub(crate) struct Ledger {
    hops: usize,
    /// C(n, c): credits that this node has not transferred yet.
    pub held: u32,
    /// All credits that this node ever received.
    pub total: u32,
    /// z(n, c, m): credits ever transferred to each hop.
    pub transferred: [u16; MAX_HOPS],
    /// Ones among them that frames announce to the hop.
    pub announced: [u16; MAX_HOPS],
    /// Ones among them that the hop is known to know of.
    pub acknowledged: [u16; MAX_HOPS],
    /// Packets that at least one hop of the set received, by index of the set.
    received: Vec<u16>,
    /// Packets that were new to some of the hops.
    deliveries: Vec<Delivery>,
    /// Announced credits that no innovative delivery backs yet.
    unbacked: u16,
    /// Packets in flight that each set is expected to receive, by index of the set.
    expected: Vec<f32>,
    /// Highest count that a frame announces to each hop, of frames that it may have received.
    assigned: [u16; MAX_HOPS],
    /// Serial numbers of frames that assign a credit to a hop which may have received them. Their
    /// deliveries are kept for that credit.
    reserved: Vec<u16>,
}

/// A frame that some next hop has not reported on yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PendingFrame<'a> {
    pub generation: u32,
    pub serial: u16,
    /// The next hop that it assigns a credit to.
    pub assigned_hop: Option<usize>,
    /// Whether hops may still be heard to report on it.
    pub in_flight: bool,
    /// Hops that are known to have received it.
    pub receivers: HopSet,
    /// Hops of which it is known whether they received it.
    pub resolved: HopSet,
    /// Credits of its generation that it announces to each hop.
    pub announced: &'a [u16],
}

/// News of who received a frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reception {
    pub generation: u32,
    pub serial: u16,
    /// Hops that were known to have received it.
    pub already: HopSet,
    /// Hops that turn out to have received it too.
    pub new: HopSet,
    /// Credits of the generation that the sender had received when it sent the frame.
    pub total_when_sent: u32,
    /// The next hop that it assigns a credit to.
    pub assigned_hop: Option<usize>,
}

/// |C| of this node and of its next hops, as far as this node knows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Backlogs {
    pub own: u32,
    pub hops: [u32; MAX_HOPS],
}

/// A packet that next hops received.
#[derive(Clone, Copy, Debug)]
struct Delivery {
    serial: u16,
    receivers: HopSet,
    /// Whether it was new to the hops together, not only to some of them.
    innovative: bool,
    /// Whether it backs a credit of one of its receivers, or another delivery that does so in its
    /// place.
    backs: bool,
}

impl Ledger {
    /// Returns an empty ledger towards `hops` next hops.
    pub(crate) fn new(hops: usize) -> Self {
        let sets = 1 << hops;
        Self {
            hops,
            held: 0,
            total: 0,
            transferred: [0; MAX_HOPS],
            announced: [0; MAX_HOPS],
            acknowledged: [0; MAX_HOPS],
            received: vec![0; sets],
            deliveries: Vec::new(),
            unbacked: 0,
            expected: vec![0.0; sets],
            assigned: [0; MAX_HOPS],
            reserved: Vec::new(),
        }
    }

    // ---- queries

    /// Returns |TC(n, c, J)|: credits that were transferred to the set, but whose packets no hop of
    /// the set has received.
    pub(crate) fn owed(&self, set: HopSet) -> u32 {
        let transferred: u32 = set.iter().map(|hop| u32::from(self.transferred[hop])).sum();
        transferred.saturating_sub(u32::from(self.received[set.index()]))
    }

    /// Returns |TC(n, c, J)| less what of it is probably received already.
    pub(crate) fn outstanding(&self, set: HopSet) -> f64 {
        (f64::from(self.owed(set)) - f64::from(self.expected[set.index()])).max(0.0)
    }

    /// Returns the credits transferred to a hop that it is not known to know of.
    pub(crate) fn unacknowledged(&self, hop: usize) -> u32 {
        u32::from(self.transferred[hop] - self.acknowledged[hop])
    }

    /// Returns whether a hop is known to know of all that is announced to it.
    pub(crate) fn is_acknowledged(&self, hop: usize) -> bool {
        self.announced[hop] == self.acknowledged[hop]
    }

    /// Returns the credits that are still this node's duty. `destination` is the hop that is the
    /// flow's destination, if one is: credits end there with the packet.
    pub(crate) fn remaining(&self, destination: Option<usize>) -> u32 {
        let open = |hop| match destination {
            Some(destination) if destination == hop => self.owed(HopSet::single(hop)),
            _ => self.unacknowledged(hop),
        };
        self.held + (0..MAX_HOPS).map(open).sum::<u32>()
    }

    // ---- frames in flight

    /// Forgets the frames that were pending.
    pub(crate) fn clear_pending(&mut self) {
        self.expected.fill(0.0);
        self.assigned = [0; MAX_HOPS];
        self.reserved.clear();
    }

    /// Counts a frame that some hop has not reported on. While it is in flight each set counts as
    /// having received it with its probability in `quality`, by index of the set, so that a node
    /// does not send for the same credit twice before it can know whether that is needed.
    pub(crate) fn add_pending(&mut self, frame: &PendingFrame<'_>, quality: &[f32]) {
        let may_receive = |hop: usize| !frame.resolved.contains(hop);

        // If the assigned hop may have it, its delivery is kept for that credit.
        if frame.assigned_hop.is_some_and(may_receive) {
            self.reserved.push(frame.serial);
        }

        // A hop that may have it may know of the credits that it announces, so they stay there.
        for (hop, announced) in frame.announced.iter().enumerate().take(MAX_HOPS) {
            if may_receive(hop) {
                self.assigned[hop] = self.assigned[hop].max(*announced);
            }
        }

        if !frame.in_flight {
            return;
        }

        // A set that has the frame for certain is counted in its receptions, not here.
        for set in HopSet::nonempty(self.hops).filter(|set| !set.intersects(frame.receivers)) {
            self.expected[set.index()] += quality[set.index()];
        }
    }

    // ---- receptions

    /// Updates TC and the deliveries with news of who received a frame.
    pub(crate) fn receive(&mut self, reception: &Reception) {
        let Reception { serial, already, new, total_when_sent, .. } = *reception;

        // TC update: the packet counts for every set that it reaches for the first time. A frame
        // contains no packet that came later than it was sent. So no set can have received more
        // useful packets than the sender had credits then: what exceeds them may be what another
        // node sent already, and credits that came later need packets that are not in it.
        let mut innovative = false;
        let mut useful = false;
        for set in HopSet::nonempty(self.hops) {
            let received = &mut self.received[set.index()];
            let is_first = !set.intersects(already) && set.intersects(new);
            let counts = is_first && u32::from(*received) < total_when_sent;
            *received += u16::from(counts);
            useful |= counts;

            // The last set is that of all hops.
            innovative = counts;
        }

        // Note the delivery, to back a credit with. If an announced credit was waiting for an
        // innovative packet it backs that one at once.
        if let Some(known) = self.delivery_mut(serial) {
            known.receivers = known.receivers.union(new);
        } else if useful {
            let backs = innovative && self.unbacked > 0;
            self.unbacked -= u16::from(backs);
            self.deliveries.push(Delivery { serial, receivers: new, innovative, backs });
        }

        // The frame assigned a credit to one hop. If that hop is among the receivers it has read of
        // the credit already, and the frame itself backs it.
        let Some(hop) = reception.assigned_hop.filter(|hop| new.contains(*hop)) else { return };
        if self.announced[hop] >= self.transferred[hop] {
            return;
        }
        let innovative = match self.delivery_mut(serial) {
            Some(delivery) if delivery.backs => return,
            Some(delivery) => {
                delivery.backs = true;
                delivery.innovative
            }
            None => false,
        };

        // A redundant packet backs the credit in the place of an innovative one: the hops together
        // cannot pass on more than they received. If there is none yet, the next one is used.
        if !innovative {
            match self.unassigned_delivery(|delivery| delivery.innovative) {
                Some(instead) => self.deliveries[instead].backs = true,
                None => self.unbacked += 1,
            }
        }

        self.announced[hop] += 1;
    }

    fn delivery_mut(&mut self, serial: u16) -> Option<&mut Delivery> {
        self.deliveries.iter_mut().rev().find(|delivery| delivery.serial == serial)
    }

    /// Returns the index of an unassigned delivery that matches `filter`. Prefers the one that
    /// fewest next hops received, because it can back the fewest other credits.
    fn unassigned_delivery(&self, filter: impl Fn(&Delivery) -> bool) -> Option<usize> {
        let all = self.deliveries.iter().enumerate();
        let free = all.filter(|(_, one)| one.is_unassigned(&self.reserved) && filter(one));
        free.min_by_key(|(_, one)| one.receivers.len()).map(|(at, _)| at)
    }

    // ---- announcing

    /// Announces every credit that a delivery backs. Credits that cannot be backed where they are
    /// move to another hop.
    pub(crate) fn announce_backed(&mut self, backlogs: &Backlogs) {
        loop {
            let backed = (0..self.hops).find(|hop| self.back_credit(*hop));
            let Some(hop) = backed.or_else(|| self.move_credit(backlogs)) else { return };
            self.announced[hop] += 1;
        }
    }

    /// Backs one credit of `hop` that is not announced yet. Returns whether it could.
    fn back_credit(&mut self, hop: usize) -> bool {
        if self.announced[hop] >= self.transferred[hop] {
            return false;
        }

        // Best is an innovative packet that the hop received and that backs nothing else.
        let own = |delivery: &Delivery| delivery.receivers.contains(hop);
        if let Some(at) = self.unassigned_delivery(|one| one.innovative && own(one)) {
            self.deliveries[at].backs = true;
            return true;
        }

        // A packet that was new to this hop, though not to the hops together, is as good: it is a
        // random combination of what they have. But the hops cannot pass on more packets than they
        // received, so an innovative delivery elsewhere is used up with it.
        let redundant = self.unassigned_delivery(|one| !one.innovative && own(one));
        let innovative = self.unassigned_delivery(|one| one.innovative);
        let (Some(by), Some(instead)) = (redundant, innovative) else { return false };
        self.deliveries[by].backs = true;
        self.deliveries[instead].backs = true;
        true
    }

    /// Moves a credit that is not backed from the hop it was transferred to to one that received a
    /// packet for it. Returns the hop that has it now.
    ///
    /// In the paper's figure 3 two hops get one credit each and both receive the packet: nothing is
    /// owed to the two together, but one credit is not backed. Another hop that received a free
    /// packet can take it over.
    fn move_credit(&mut self, backlogs: &Backlogs) -> Option<usize> {
        // Credits that a frame in flight announces stay, because the hop may have read of them.
        let is_open =
            |hop: &usize| self.announced[*hop].max(self.assigned[*hop]) < self.transferred[*hop];
        let from = (0..self.hops).find(is_open)?;

        // As long as packets are owed to the hops together, one may still come that backs it.
        if self.owed(HopSet::all(self.hops)) > 0 {
            return None;
        }

        // Back-pressure holds here too: a hop takes a credit over only if it holds no more than
        // this node (eq. 7; CTC is 0 here). A full hop would send it on a detour. But if nothing is
        // owed to any set, no packet will come that could back the credit where it is. Any hop may
        // take it then.
        let is_final = HopSet::nonempty(self.hops).all(|set| self.owed(set) == 0);
        let may_take = |hop: &usize| is_final || backlogs.hops[*hop] <= backlogs.own;
        let backlog = |hop: &usize| backlogs.hops[*hop];

        let all = self.deliveries.iter().enumerate();
        let free = all.filter(|(_, one)| one.innovative && one.is_unassigned(&self.reserved));
        let takers = free.filter_map(|(at, delivery)| {
            let taker = delivery.receivers.iter().filter(may_take).min_by_key(backlog)?;
            Some((taker, at))
        });

        let (to, at) = takers.min_by_key(|(taker, _)| backlog(taker))?;

        self.deliveries[at].backs = true;
        self.transferred[from] -= 1;
        self.transferred[to] += 1;
        Some(to)
    }
}

impl Delivery {
    /// Returns whether it can back a credit: it backs none yet, and is not `reserved` for the one
    /// that its frame assigned.
    fn is_unassigned(&self, reserved: &[u16]) -> bool {
        !self.backs && !reserved.contains(&self.serial)
    }
}
