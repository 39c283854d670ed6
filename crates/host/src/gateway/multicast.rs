//! IP multicast of a host: groups that it is a member of, and groups that it sends to.
//!
//! A kernel reports its memberships by IGMP (RFC 2236, RFC 3376) and MLD (RFC 2710, RFC 3810) on
//! each device, the tunnel's too. They are read here and go no further. A group is a stream of the
//! mesh without layers: the host of each member joins it, and each host that sends to it is a
//! source. The driver does both, as [`GroupAction`]s say.
//!
//! Groups of the local link stay on the host, as routers do not forward them. mDNS is the
//! exception, and those of the configuration.

#[cfg(test)]
mod tests;

use super::counters::Dropped;
use super::header::Header;
use super::query;
use crate::rate_limit::RateLimit;
use ncmesh_engine::time::{Duration, Instant};
use smoltcp::wire::IpProtocol;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Most groups that a host is a member of, of those that the mesh carries.
pub const MAX_MEMBERSHIPS: usize = 24;
/// Most groups that a host sends to at a time.
pub const MAX_SENT_GROUPS: usize = 8;
/// Rate of a group where the configuration does not say, bit/s.
pub const DEFAULT_GROUP_BPS: u64 = 2_000_000;
/// Layer of a stream that carries a group.
pub const GROUP_LAYER: &str = "ip";
/// Groups of mDNS (RFC 6762).
pub const MDNS: [IpAddr; 2] = [
    IpAddr::V4(Ipv4Addr::new(224, 0, 0, 251)),
    IpAddr::V6(Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 0xfb)),
];

/// Prefix of names of groups of the mesh that carry multicast.
const PREFIX: &str = "ip-";
/// Reports that are read in one second at most.
const REPORTS_PER_SECOND: u32 = 100;
/// Time between two questions to the kernel for its memberships.
const QUERY_INTERVAL: Duration = Duration::from_secs(60);
/// Time after which a membership that was not reported again ends: two queries may be lost.
const MEMBERSHIP: Duration = Duration::from_secs(150);
/// Time after which a group is left whose last member is gone. A host that leaves and joins all the
/// time makes no more frames than that.
const LINGER: Duration = Duration::from_secs(2);
/// Time without packets after which a group is not sent to any longer.
const IDLE: Duration = Duration::from_secs(60);
/// Time whose worth of packets may come at once.
const BURST: Duration = Duration::from_millis(250);
/// Fewest bytes that may come at once: a few packets, also of a slow group.
const LEAST_BURST: u64 = 6000;

/// Settings of multicast.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MulticastConfig {
    /// Groups of the local link that the mesh carries besides mDNS.
    pub groups: BTreeSet<IpAddr>,
    /// Rate at which a host may send to a group, bit/s.
    pub rate_bps: u64,
}

impl Default for MulticastConfig {
    fn default() -> Self {
        Self { groups: BTreeSet::new(), rate_bps: DEFAULT_GROUP_BPS }
    }
}

/// Task of the driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroupAction {
    /// Join a group of the mesh.
    Join(String),
    /// Leave it.
    Leave(String),
    /// Send a packet to a group of the mesh, and begin a stream to it if there is none.
    Send {
        /// The group.
        group: String,
        /// The packet.
        packet: Vec<u8>,
    },
    /// End the stream to a group.
    Close(String),
}

/// Groups of a host.
#[derive(Debug)]
pub(super) struct Groups {
    config: MulticastConfig,
    /// When each membership ends.
    members: BTreeMap<IpAddr, Instant>,
    sent: BTreeMap<IpAddr, SentGroup>,
    reports: RateLimit,
    next_query: Option<Instant>,
    actions: VecDeque<GroupAction>,
}

/// A group that the host sends to: a token bucket.
#[derive(Debug)]
struct SentGroup {
    /// Bytes that may come now.
    budget: u64,
    /// When that was so: the last packet.
    last: Instant,
}

impl Groups {
    pub(super) fn new(config: MulticastConfig) -> Self {
        Self {
            config,
            members: BTreeMap::new(),
            sent: BTreeMap::new(),
            reports: RateLimit::new(REPORTS_PER_SECOND),
            next_query: None,
            actions: VecDeque::new(),
        }
    }

    pub(super) fn adjust(&mut self, config: MulticastConfig) {
        self.config = config;
    }

    /// Returns the groups that the host is a member of.
    pub(super) fn members(&self) -> impl Iterator<Item = IpAddr> {
        self.members.keys().copied()
    }

    pub(super) fn poll(&mut self) -> Option<GroupAction> {
        self.actions.pop_front()
    }

    /// Takes a packet that the host sends to a group.
    ///
    /// # Errors
    /// Says why the packet went no further.
    pub(super) fn handle_outbound(&mut self, packet: Vec<u8>, now: Instant) -> Result<(), Dropped> {
        let header = Header::read(&packet).map_err(|_| Dropped::Malformed)?;
        if let Some(report) = read_report(&header) {
            return self.handle_report(&report, now);
        }

        let group = header.destination;
        if !self.is_carried(group) {
            return Err(Dropped::Multicast);
        }
        // Each group that is sent to is a stream of the mesh, so a program must not open any
        // number.
        if !self.sent.contains_key(&group) && self.sent.len() >= MAX_SENT_GROUPS {
            return Err(Dropped::Groups);
        }

        // The bucket fills at the group's rate.
        let rate = self.config.rate_bps;
        let worth = |time: Duration| (rate as f64 / 8.0 * time.as_secs_f64()) as u64;
        let most = worth(BURST).max(LEAST_BURST);
        let full = SentGroup { budget: most, last: now };
        let sent = self.sent.entry(group).or_insert(full);
        let refilled = sent.budget.saturating_add(worth(now - sent.last)).min(most);
        let length = packet.len() as u64;
        let Some(left) = refilled.checked_sub(length) else { return Err(Dropped::Rate) };
        *sent = SentGroup { budget: left, last: now };
        self.actions.push_back(GroupAction::Send { group: group_name(group), packet });
        Ok(())
    }

    /// Returns whether a packet of a group of the mesh is for this host.
    pub(super) fn takes(&self, name: &str, header: &Header<'_>) -> bool {
        name == group_name(header.destination) && self.members.contains_key(&header.destination)
    }

    /// Forgets a membership that the mesh did not take, so that the next report asks for it again.
    pub(super) fn refuse_membership(&mut self, name: &str) {
        self.members.retain(|group, _| group_name(*group) != name);
    }

    /// Ends what has lasted long enough. Returns questions to the kernel for its memberships.
    pub(super) fn handle_time(&mut self, now: Instant) -> Vec<Vec<u8>> {
        let ended = self.members.extract_if(.., |_, until| *until <= now);
        let left = ended.map(|(group, _)| GroupAction::Leave(group_name(group)));
        self.actions.extend(left);

        let idle = self.sent.extract_if(.., |_, sent| now >= sent.last + IDLE);
        let closed = idle.map(|(group, _)| GroupAction::Close(group_name(group)));
        self.actions.extend(closed);

        // Memberships end unless they are confirmed, and the kernel confirms them only when it is
        // asked.
        if self.next_query.is_some_and(|next| now < next) {
            return Vec::new();
        }
        self.next_query = Some(now + QUERY_INTERVAL);
        vec![query::igmp(), query::mld()]
    }

    fn handle_report(&mut self, report: &[Membership], now: Instant) -> Result<(), Dropped> {
        // Reports come from programs on this host, which may join and leave as fast as they like.
        if !self.reports.take(now) {
            return Err(Dropped::Reports);
        }

        let mut result = Ok(());
        for Membership { group, is_member } in report {
            let is_known = self.members.contains_key(group);
            if !self.is_carried(*group) {
                continue;
            }
            match (is_member, is_known) {
                // The other records of the report still count: some may leave a group.
                (true, false) if self.members.len() >= MAX_MEMBERSHIPS => {
                    result = Err(Dropped::Groups);
                }
                (true, _) => {
                    self.members.insert(*group, now + MEMBERSHIP);
                    if !is_known {
                        self.actions.push_back(GroupAction::Join(group_name(*group)));
                    }
                }
                // A program that leaves often joins again soon, so the group is kept for a while.
                (false, true) => {
                    self.members.insert(*group, now + LINGER);
                }
                (false, false) => {}
            }
        }

        result
    }

    /// Returns whether the mesh carries a group.
    fn is_carried(&self, group: IpAddr) -> bool {
        if !group.is_multicast() {
            return false;
        }
        !is_local(group) || MDNS.contains(&group) || self.config.groups.contains(&group)
    }
}

/// Returns whether a group is one of the local link or of the host alone.
#[must_use]
pub fn is_local(group: IpAddr) -> bool {
    const LINK_SCOPE: u8 = 2;
    match group {
        IpAddr::V4(v4) => v4.octets()[..3] == [224, 0, 0],
        IpAddr::V6(v6) => v6.is_multicast() && v6.octets()[1] & 0x0F <= LINK_SCOPE,
    }
}

/// Returns whether a source may send to a group by its address alone: one that is valid on a link.
pub(super) fn is_local_source(header: &Header<'_>) -> bool {
    let is_link = matches!(header.source, IpAddr::V6(v6) if v6.is_unicast_link_local());
    is_link && is_local(header.destination)
}

/// Returns the name of the group of the mesh that carries a group of IP.
#[must_use]
pub fn group_name(group: IpAddr) -> String {
    match group {
        IpAddr::V4(v4) => format!("{PREFIX}{v4}"),
        IpAddr::V6(v6) => {
            let words = v6.segments().map(|word| format!("{word:x}"));
            format!("{PREFIX}{}", words.join("-"))
        }
    }
}

/// Returns whether a group of the mesh carries multicast, by its name.
#[must_use]
pub fn is_group_name(name: &str) -> bool {
    let Some(address) = name.strip_prefix(PREFIX) else { return false };
    let group: Result<IpAddr, _> = address.replace('-', ":").parse();
    group.is_ok_and(|group| group.is_multicast() && group_name(group) == name)
}

/// A kernel's report on one group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Membership {
    group: IpAddr,
    is_member: bool,
}

/// Reads a report of memberships; `None` if the packet is none.
fn read_report(header: &Header<'_>) -> Option<Vec<Membership>> {
    let payload = header.payload?;
    match header.protocol {
        IpProtocol::Igmp => read_igmp(payload),
        IpProtocol::HopByHop => {
            // The header with the router alert stands before that of ICMP.
            let [next, words] = *payload.first_chunk()?;
            let icmp = payload.get(8 * (usize::from(words) + 1)..)?;
            (IpProtocol::from(next) == IpProtocol::Icmpv6).then(|| read_mld(icmp)).flatten()
        }
        _ => None,
    }
}

fn read_igmp(message: &[u8]) -> Option<Vec<Membership>> {
    const V1_REPORT: u8 = 0x12;
    const V2_REPORT: u8 = 0x16;
    const V2_LEAVE: u8 = 0x17;
    const V3_REPORT: u8 = 0x22;

    let kind = *message.first()?;
    let group = || Some(Ipv4Addr::from(*message.get(4..)?.first_chunk::<4>()?).into());
    match kind {
        V1_REPORT | V2_REPORT | V2_LEAVE => {
            Some(vec![Membership { group: group()?, is_member: kind != V2_LEAVE }])
        }
        V3_REPORT => read_records::<4>(message),
        _ => None,
    }
}

fn read_mld(message: &[u8]) -> Option<Vec<Membership>> {
    const V1_REPORT: u8 = 131;
    const V1_DONE: u8 = 132;
    const V2_REPORT: u8 = 143;

    let kind = *message.first()?;
    let group = || Some(Ipv6Addr::from(*message.get(8..)?.first_chunk::<16>()?).into());
    match kind {
        V1_REPORT | V1_DONE => {
            Some(vec![Membership { group: group()?, is_member: kind != V1_DONE }])
        }
        V2_REPORT => read_records::<16>(message),
        _ => None,
    }
}

/// Reads the records of a report of IGMPv3 or MLDv2, whose addresses have `N` bytes. Records after
/// a malformed one are not read.
fn read_records<const N: usize>(message: &[u8]) -> Option<Vec<Membership>> {
    const MODE_IS_INCLUDE: u8 = 1;
    const CHANGE_TO_INCLUDE: u8 = 3;
    const ALLOW: u8 = 5;
    const MODE_IS_EXCLUDE: u8 = 2;
    const CHANGE_TO_EXCLUDE: u8 = 4;
    let count = u16::from_be_bytes(*message.get(6..)?.first_chunk()?);
    let mut rest = message.get(8..)?;
    let mut report = Vec::new();
    for _ in 0..count {
        // Lengths are those of the sender, so the list may end before its count says.
        let Some((&[kind, auxiliary, high, low], after)) = rest.split_first_chunk() else { break };
        let Some((address, after)) = after.split_first_chunk::<N>() else { break };
        let sources = usize::from(u16::from_be_bytes([high, low]));
        let Some(next) = after.get(N * sources + 4 * usize::from(auxiliary)..) else { break };
        rest = next;

        // The kernel itself tells sources apart. A group is left when no source is wanted.
        let is_member = match kind {
            MODE_IS_EXCLUDE | CHANGE_TO_EXCLUDE => true,
            MODE_IS_INCLUDE | CHANGE_TO_INCLUDE | ALLOW => sources > 0,
            _ => continue,
        };

        let group = match (<[u8; 4]>::try_from(&address[..]), <[u8; 16]>::try_from(&address[..])) {
            (Ok(v4), _) => IpAddr::from(v4),
            (_, Ok(v6)) => IpAddr::from(v6),
            _ => continue,
        };
        report.push(Membership { group, is_member });
    }
    Some(report)
}
