//! The credits of one generation: to which next hops they were given, and what backs them (MC2, 3.4).

use super::paths::MAX_HOPS;

/// A set of next hops: bit i stands for the i-th.
pub(super) type HopSet = u8;

/// The credits of one generation.
#[derive(Clone, Debug)]
pub(super) struct Ledger {
    /// C(n, c): packets this node is to transfer yet.
    pub held: u32,
    /// All it ever took in.
    pub taken: u32,
    /// z(n, c, m): those ever transferred to each hop.
    pub given: [u16; MAX_HOPS],
    /// Of them, those the hop is told of.
    pub told: [u16; MAX_HOPS],
    /// Of them, those the hop knows of.
    pub learned: [u16; MAX_HOPS],
    /// By set of hops: packets that at least one of them received.
    received: Vec<u16>,
    /// Each packet that was received, as long as it was new to some of the hops.
    landings: Vec<Landing>,
    /// Credits of which a hop is told though no packet of its own backs them yet.
    unbacked: u16,
    /// What is in the air counts as received as likely as it will be.
    expected: Vec<f32>,
    /// Of those given, the ones that frames tell the hop of that it may have heard.
    pledged: [u16; MAX_HOPS],
    /// Frames that tell a hop of one more credit each, and may have been heard by it: nobody else's is backed by them.
    reserved: Vec<u16>,
}

/// A frame of which it is not known of every hop whether it received it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unclear<'a> {
    pub generation: u32,
    pub serial: u16,
    pub nominee: Option<usize>,
    /// Hops may yet be heard to say that they did.
    pub in_air: bool,
    /// Who is known to have received it.
    pub heard: HopSet,
    /// Of whom it is known whether they did.
    pub known: HopSet,
    /// What it announces of its generation.
    pub told: &'a [u16],
}

/// What becomes known of who received a frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reception {
    pub generation: u32,
    pub serial: u16,
    /// Who was known to have received it.
    pub before: HopSet,
    /// Who did too.
    pub new: HopSet,
    /// Credits of the generation that the sender had taken in.
    pub taken: u32,
    pub nominee: Option<usize>,
}

/// A packet that next hops received.
#[derive(Clone, Copy, Debug)]
struct Landing {
    serial: u16,
    heard: HopSet,
    /// New to the hops together, not only to some of them.
    fresh: bool,
    /// A credit of one of them is told because of it, or of another in its place.
    backs: bool,
}

impl Ledger {
    pub(super) fn new(hops: usize) -> Self {
        let sets = 1 << hops;
        Self {
            held: 0,
            taken: 0,
            given: [0; MAX_HOPS],
            told: [0; MAX_HOPS],
            learned: [0; MAX_HOPS],
            received: vec![0; sets],
            landings: Vec::new(),
            unbacked: 0,
            expected: vec![0.0; sets],
            pledged: [0; MAX_HOPS],
            reserved: Vec::new(),
        }
    }

    fn given_to(&self, set: usize) -> u32 {
        members(set).map(|hop| u32::from(self.given[hop])).sum()
    }

    /// |TC(n, c, J)|: credits given to the set that nobody in it has received a packet for.
    pub(super) fn owed(&self, set: usize) -> u32 {
        self.given_to(set).saturating_sub(u32::from(self.received[set]))
    }

    /// Credits the hop does not know of yet.
    pub(super) fn unlearned(&self, hop: usize) -> u32 {
        u32::from(self.given[hop] - self.learned[hop])
    }

    /// Nothing is in the air.
    pub(super) fn expect_nothing(&mut self) {
        self.expected.fill(0.0);
        self.pledged = [0; MAX_HOPS];
        self.reserved.clear();
    }

    /// This frame is not known to have been received by all who may have; if it is in the air each set of hops receives it as
    /// `likely` as is said.
    pub(super) fn expect(&mut self, frame: &Unclear<'_>, likely: &[f32]) {
        self.pledge(frame);
        if frame.in_air {
            self.expected.iter_mut().zip(likely).for_each(|(all, one)| *all += one);
        }
    }

    fn pledge(&mut self, frame: &Unclear<'_>) {
        if frame.nominee.is_some_and(|hop| frame.known >> hop & 1 == 0) {
            self.reserved.push(frame.serial);
        }
        for (hop, told) in frame.told.iter().enumerate().take(MAX_HOPS) {
            if frame.known >> hop & 1 == 0 {
                self.pledged[hop] = self.pledged[hop].max(*told);
            }
        }
    }

    pub(super) fn is_told(&self, hop: usize) -> bool {
        self.told[hop] == self.learned[hop]
    }

    /// Credits that would be lost with it.
    pub(super) fn remaining(&self, end: Option<usize>) -> u32 {
        let open = |hop| if end == Some(hop) { self.owed(1 << hop) } else { self.unlearned(hop) };
        self.held + (0..MAX_HOPS).map(open).sum::<u32>()
    }

    /// |TC(n, c, J)| less what is likely received of it already.
    pub(super) fn outstanding(&self, set: usize) -> f64 {
        (f64::from(self.owed(set)) - f64::from(self.expected[set])).max(0.0)
    }

    /// Tells hops of credits, each backed by a packet of its own that the hop received: then what the hops send on is
    /// independent, whenever they send it. The node holds `held` credits in all, and the hops `theirs`.
    pub(super) fn tell(&mut self, hops: usize, (held, theirs): (u32, &[u32])) {
        while let Some(hop) =
            (0..hops).find(|hop| self.back(*hop)).or_else(|| self.shift(hops, (held, theirs)))
        {
            self.told[hop] += 1;
        }
    }

    /// Hops received a frame. No set of them received more than credits were `taken` in when it was sent: beyond that, what other
    /// nodes send may be the same, and what comes later to back further credits is not in it.
    pub(super) fn receive(&mut self, received: &Reception) {
        let Reception { serial, before, new, taken, nominee, .. } = *received;
        let (mut fresh, mut useful) = (false, false);
        for (set, received) in self.received.iter_mut().enumerate().skip(1) {
            let first = set & usize::from(before) == 0 && set & usize::from(new) != 0;
            // The last set is that of all hops.
            fresh = first && u32::from(*received) < taken;
            *received += u16::from(fresh);
            useful |= fresh;
        }
        if let Some(landing) = self.landing(serial) {
            landing.heard |= new;
        } else if useful {
            let backs = fresh && self.unbacked > 0;
            self.unbacked -= u16::from(backs);
            self.landings.push(Landing { serial, heard: new, fresh, backs });
        }
        let nominee = nominee.filter(|hop| new >> hop & 1 == 1);
        if let Some(hop) = nominee.filter(|hop| self.told[*hop] < self.given[*hop]) {
            self.tell_by(serial, hop);
        }
    }

    fn landing(&mut self, serial: u16) -> Option<&mut Landing> {
        self.landings.iter_mut().rev().find(|landing| landing.serial == serial)
    }

    /// A hop heard the frame that told it of a credit, which backs that one if it backs none.
    fn tell_by(&mut self, serial: u16, hop: usize) {
        let mut fresh = false;
        if let Some(landing) = self.landing(serial) {
            if landing.backs {
                return;
            }
            (landing.backs, fresh) = (true, landing.fresh);
        }
        if !fresh {
            match self.free(|landing| landing.fresh) {
                Some(instead) => self.landings[instead].backs = true,
                None => self.unbacked += 1,
            }
        }
        self.told[hop] += 1;
    }

    /// Backs a credit of which the hop is not told by a packet that it received and that backs no other. One that was not new to
    /// the hops together does in the place of one that was: more than there are of those they cannot send on.
    fn back(&mut self, hop: usize) -> bool {
        if self.told[hop] >= self.given[hop] {
            return false;
        }
        let own = |landing: &Landing| landing.heard >> hop & 1 == 1;
        let fresh = self.free(|landing| landing.fresh && own(landing)).map(|by| (by, by));
        let backing = fresh.or_else(|| {
            let by = self.free(|landing| !landing.fresh && own(landing))?;
            Some((by, self.free(|landing| landing.fresh)?))
        });
        if let Some((by, instead)) = backing {
            self.landings[by].backs = true;
            self.landings[instead].backs = true;
        }
        backing.is_some()
    }

    /// Of the packets that back no credit and may, and are as is said, one that few hops received.
    fn free(&self, is: impl Fn(&Landing) -> bool) -> Option<usize> {
        let free = self.landings.iter().enumerate();
        let free = free.filter(|(_, landing)| landing.is_free(&self.reserved) && is(landing));
        free.min_by_key(|(_, landing)| landing.heard.count_ones()).map(|(at, _)| at)
    }

    /// Nothing is owed to the hops together, and yet a credit of one is not backed: of the others that received what backs it the
    /// one that holds fewest takes it over, if it holds no more than the node (eq. 7, but for CTC). If nothing is owed to any
    /// hop no packet is to come that could back it where it is, and it is taken over all the same.
    fn shift(&mut self, hops: usize, (held, theirs): (u32, &[u32])) -> Option<usize> {
        let is_open = |hop: &usize| self.told[*hop].max(self.pledged[*hop]) < self.given[*hop];
        let from = (0..hops).find(is_open)?;
        if self.owed((1 << hops) - 1) > 0 {
            return None;
        }
        let settled = (1..1 << hops).all(|set| self.owed(set) == 0);
        let taker = |landing: &Landing| {
            let heard = members(usize::from(landing.heard));
            heard.filter(|to| settled || theirs[*to] <= held).min_by_key(|to| theirs[*to])
        };
        let free = self.landings.iter().enumerate();
        let free = free.filter(|(_, landing)| landing.fresh && landing.is_free(&self.reserved));
        let takers = free.filter_map(|(at, landing)| Some((taker(landing)?, at)));
        let (to, at) = takers.min_by_key(|(to, _)| theirs[*to])?;
        self.landings[at].backs = true;
        self.given[from] -= 1;
        self.given[to] += 1;
        Some(to)
    }
}

impl Landing {
    fn is_free(&self, reserved: &[u16]) -> bool {
        !self.backs && !reserved.contains(&self.serial)
    }
}

pub(super) fn members(set: usize) -> impl Iterator<Item = usize> {
    (0..MAX_HOPS).filter(move |hop| set >> hop & 1 == 1)
}
