//! Network namespaces joined by a bridge: several hosts on one segment of one machine. Needs root.

use ncmesh_test_support::skip;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};

static SEGMENTS: AtomicU32 = AtomicU32::new(0);

/// A segment, whose namespaces are removed on drop.
pub(crate) struct Segment {
    names: Vec<String>,
}

impl Segment {
    /// Makes a segment of `hosts` namespaces, each with the interface `mesh0`, 10.77.0.1 and up. If
    /// that is not possible, the test is skipped and must return.
    pub(crate) fn new(hosts: usize) -> Option<Self> {
        let n = SEGMENTS.fetch_add(1, Ordering::Relaxed);
        let prefix = format!("ncm{}-{n}", std::process::id());
        let mut segment = Self { names: vec![format!("{prefix}-bridge")] };
        segment.names.extend((1..=hosts).map(|host| format!("{prefix}-{host}")));
        match segment.build() {
            Ok(()) => Some(segment),
            Err(reason) => {
                skip(format_args!("network namespaces cannot be made here: {reason}"));
                None
            }
        }
    }

    /// Returns the namespace of host `i`, counted from 1.
    pub(crate) fn host(&self, i: usize) -> &str {
        &self.names[i]
    }

    /// Drops `percent` of the UDP frames that reach host `i`. Returns whether that is possible; if
    /// not, the test is skipped and must return.
    pub(crate) fn lose(&self, i: usize, percent: u32) -> bool {
        self.drop_udp(i, &format!("numgen random mod 100 < {percent}"))
    }

    /// Drops the UDP frames from `address` that reach host `i`. Returns whether that is possible;
    /// if not, the test is skipped and must return.
    pub(crate) fn silence(&self, i: usize, address: &str) -> bool {
        self.drop_udp(i, &format!("ip saddr {address}"))
    }

    /// Drops all questions and answers of ARP that reach host `i`. Returns whether that is
    /// possible; if not, the test is skipped and must return.
    pub(crate) fn drop_arp(&self, i: usize) -> bool {
        self.filter(
            i,
            "add table arp loss; \
             add chain arp loss arriving { type filter hook input priority 0; policy drop; }",
        )
    }

    /// Drops the UDP frames that reach host `i` and `which` fits, in the language of nftables.
    fn drop_udp(&self, i: usize, which: &str) -> bool {
        let rules = format!(
            "add table ip loss; \
             add chain ip loss arriving {{ type filter hook prerouting priority -300; }}; \
             add rule ip loss arriving iifname mesh0 ip protocol udp {which} drop"
        );
        self.filter(i, &rules)
    }

    /// Adds rules of nftables at host `i`. Returns whether that is possible; if not, the test is
    /// skipped and must return.
    fn filter(&self, i: usize, rules: &str) -> bool {
        let added = run("ip", &["netns", "exec", self.host(i), "nft", rules]);
        if let Err(reason) = &added {
            skip(format_args!("nftables cannot lose frames here: {reason}"));
        }
        added.is_ok()
    }

    /// Runs a command in the namespace of host `i`.
    pub(crate) fn run(&self, i: usize, command: &str) -> Output {
        let words = ["netns", "exec", self.host(i)].into_iter().chain(command.split(' '));
        Command::new("ip").args(words).output().unwrap()
    }

    fn build(&self) -> Result<(), String> {
        let bridge = &self.names[0];
        ip(&format!("netns add {bridge}"))?;
        ip(&format!("-n {bridge} link add br0 type bridge"))?;
        ip(&format!("-n {bridge} link set br0 up"))?;
        for (i, host) in self.names.iter().enumerate().skip(1) {
            ip(&format!("netns add {host}"))?;
            self.plug(i)?;
        }
        Ok(())
    }

    /// Runs `ip` in the namespace of host `i`, or in the bridge's for 0.
    pub(crate) fn ip(&self, i: usize, args: &str) {
        ip(&format!("-n {} {args}", self.names[i])).unwrap();
    }

    /// Lets the interface of host `i` send no faster than `rate`, such as `4mbit`, and hold back
    /// what comes faster, as drivers do. Returns whether that is possible; if not, the test is
    /// skipped and must return.
    pub(crate) fn slow_down(&self, i: usize, rate: &str) -> bool {
        let exec = ["netns", "exec", self.host(i)];
        let add = ["tc", "qdisc", "add", "dev", "mesh0", "root"];
        let limit = ["tbf", "rate", rate, "burst", "1600", "latency", "100ms"];
        let added = run("ip", &[&exec[..], &add, &limit].concat());
        if let Err(reason) = &added {
            skip(format_args!("tc cannot hold frames back here: {reason}"));
        }
        added.is_ok()
    }

    /// Takes all addresses of IP from the interface of host `i`, those of IPv6 for good.
    pub(crate) fn strip(&self, i: usize) {
        self.ip(i, "address flush dev mesh0");
        let set = self.run(i, "sysctl -q -w net.ipv6.conf.mesh0.disable_ipv6=1");
        assert!(set.status.success(), "{set:?}");
    }

    /// Runs a program of Python at host `i`. Returns whether that is possible; if not, the test is
    /// skipped and must return.
    pub(crate) fn python(&self, i: usize, program: &str) -> bool {
        let ran = run("ip", &["netns", "exec", self.host(i), "python3", "-c", program]);
        if let Err(reason) = &ran {
            skip(format_args!("frames cannot be made here: {reason}"));
        }
        ran.is_ok()
    }

    /// Counts UDP packets of more than 500 bytes that reach host `i`, by kind. Returns whether that
    /// is possible; if not, the test is skipped and must return.
    pub(crate) fn count(&self, i: usize) -> bool {
        let long = "iifname mesh0 ip protocol udp ip length > 500";
        let rules = format!(
            "add table ip count; add counter ip count unicast; add counter ip count broadcast; \
             add chain ip count arriving {{ type filter hook prerouting priority -300; }}; \
             add rule ip count arriving {long} meta pkttype host counter name unicast; \
             add rule ip count arriving {long} meta pkttype broadcast counter name broadcast"
        );
        self.filter(i, &rules)
    }

    /// Returns how many were counted of a kind, `unicast` or `broadcast`.
    pub(crate) fn counted(&self, i: usize, kind: &str) -> u64 {
        let listed = self.run(i, &format!("nft list counter ip count {kind}"));
        let text = String::from_utf8_lossy(&listed.stdout).into_owned();
        let mut words = text.split_whitespace().skip_while(|word| *word != "packets").skip(1);
        words.next().unwrap().parse().unwrap()
    }

    /// Adds the interface of host `i`.
    pub(crate) fn plug(&self, i: usize) -> Result<(), String> {
        let bridge = &self.names[0];
        let host = &self.names[i];
        ip(&format!("-n {host} link add mesh0 type veth peer name port{i} netns {bridge}"))?;
        ip(&format!("-n {bridge} link set port{i} master br0 up"))?;
        ip(&format!("-n {host} addr add 10.77.0.{i}/24 brd + dev mesh0"))?;
        ip(&format!("-n {host} link set mesh0 up"))
    }

    /// Joins two hosts by a cable, whose ends have one name at both.
    pub(crate) fn join(&self, one: usize, other: usize, name: &str) {
        let peer = &self.names[other];
        self.ip(one, &format!("link add {name} type veth peer name {name} netns {peer}"));
        for host in [one, other] {
            self.ip(host, &format!("link set {name} up"));
        }
    }

    /// Removes the interface of host `i`.
    pub(crate) fn unplug(&self, i: usize) {
        ip(&format!("-n {} link del mesh0", self.names[i])).unwrap();
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        for name in &self.names {
            // Fails if the namespace was never made.
            let _ = ip(&format!("netns del {name}"));
        }
    }
}

fn ip(args: &str) -> Result<(), String> {
    run("ip", &args.split(' ').collect::<Vec<_>>())
}

fn run(program: &str, args: &[&str]) -> Result<(), String> {
    let output =
        Command::new(program).args(args).output().map_err(|e| format!("{program}: {e}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("{program} {}: {}", args.join(" "), said.trim()))
}
