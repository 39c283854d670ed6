//! IP multicast through the tunnels of real daemons, by programs that know nothing of the mesh.

use crate::support::net::Segment;
use crate::support::{Node, mesh, wait_until};
use ncmesh_test_support::skip;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A program in the namespace of a host, which ends with its owner.
struct Program(Child);

impl Program {
    /// Starts a program whose output goes to a file.
    fn start(segment: &Segment, host: usize, args: &[&str], output: &Path) -> Self {
        let file = std::fs::File::create(output).unwrap();
        let mut command = Command::new("ip");
        command.args(["netns", "exec", segment.host(host)]).args(args).stdin(Stdio::null());
        let errors = file.try_clone().unwrap();
        Self(command.stdout(file).stderr(errors).spawn().unwrap())
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts three nodes in a row: the ends do not hear each other.
fn row(segment: &Segment, dir: &Path, more: &str) -> Option<Vec<Node>> {
    let tunnel = format!("[tunnel]\naddress = [\"10.44.0.0/24\", \"fd44::/64\"]\n{more}");
    if !segment.silence(1, "10.77.0.3") || !segment.silence(3, "10.77.0.1") {
        return None;
    }
    Some(mesh(segment, dir, &[&tunnel, &tunnel, &tunnel]))
}

/// Joins a group and prints what comes, each datagram on a line with its source.
const MEMBER: &str = "
import socket, sys
group, port, device = sys.argv[1], int(sys.argv[2]), sys.argv[3]
is_v6 = ':' in group
s = socket.socket(socket.AF_INET6 if is_v6 else socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind((group if not is_v6 else '::', port))
index = socket.if_nametoindex(device)
if is_v6:
    request = socket.inet_pton(socket.AF_INET6, group) + index.to_bytes(4, sys.byteorder)
    s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, request)
else:
    request = socket.inet_aton(group) + bytes(4) + index.to_bytes(4, sys.byteorder)
    s.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, request)
print('joined', flush=True)
while True:
    data, source = s.recvfrom(2000)
    print(source[0], data.decode(), flush=True)
";

/// Sends numbered datagrams to a group, 20 in a second.
const SOURCE: &str = "
import socket, sys, time
group, port, device, count = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
is_v6 = ':' in group
s = socket.socket(socket.AF_INET6 if is_v6 else socket.AF_INET, socket.SOCK_DGRAM)
index = socket.if_nametoindex(device)
if is_v6:
    s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, index)
else:
    request = bytes(8) + index.to_bytes(4, sys.byteorder)
    s.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, request)
for n in range(count):
    s.sendto(b'%d' % n, (group, port))
    time.sleep(0.05)
";

/// Starts a member of a group at a host, and waits until its node knows.
fn member(segment: &Segment, host: usize, node: &Node, group: &str, output: &Path) -> Program {
    let python = ["python3", "-c", MEMBER, group, "5353", "ncmesh0"];
    let program = Program::start(segment, host, &python, output);
    wait_until("the node knows of the member", || {
        node.status().tunnel.unwrap().groups.iter().any(|known| known == group)
    });
    program
}

fn lines(file: &Path) -> Vec<String> {
    std::fs::read_to_string(file).unwrap().lines().map(str::to_owned).collect()
}

/// Sends `count` datagrams from a host to a group.
fn send(segment: &Segment, host: usize, group: &str, count: &str) {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", segment.host(host), "python3", "-c", SOURCE, group]);
    let status = command.args(["5353", "ncmesh0", count]).status().unwrap();
    assert!(status.success());
}

#[test]
fn members_of_a_group_get_what_hosts_behind_other_nodes_send_to_it() {
    let Some(segment) = Segment::new(3) else { return };
    let dir = tempfile::tempdir().unwrap();
    let Some(nodes) = row(&segment, dir.path(), "") else { return };
    // A group of the site, mDNS, and a group of IPv6.
    for (group, source) in
        [("239.1.2.3", "10.44.0.1"), ("224.0.0.251", "10.44.0.1"), ("ff05::77", "fd44::1")]
    {
        let outputs = [2, 3].map(|host| dir.path().join(format!("{group}-{host}")));
        let members =
            [2, 3].map(|host| member(&segment, host, &nodes[host - 1], group, &outputs[host - 2]));
        send(&segment, 1, group, "40");
        for output in &outputs {
            wait_until("the last datagram", || lines(output).iter().any(|l| l.ends_with(" 39")));
            // The first ones may be missing: the source did not know of members yet.
            let got = lines(output);
            let own = got.iter().filter(|line| line.starts_with(&format!("{source} "))).count();
            assert!(own > 30, "{group}: {got:?}");
        }
        drop(members);
        wait_until("the group is left", || {
            nodes[2].status().tunnel.unwrap().groups.iter().all(|known| known != group)
        });
    }

    // Neither of the hosts' groups of the link went further.
    let groups = nodes[0].status().tunnel.unwrap().groups;
    assert_eq!(groups, Vec::<String>::new());
    let listed = String::from_utf8(nodes[2].call(&["stream", "list"]).stdout).unwrap();
    assert!(listed.contains("ip-239.1.2.3"), "{listed}");
}

#[test]
fn two_hosts_send_to_one_group_and_each_is_heard() {
    let Some(segment) = Segment::new(3) else { return };
    let dir = tempfile::tempdir().unwrap();
    let Some(nodes) = row(&segment, dir.path(), "") else { return };
    let output = dir.path().join("output");
    let _member = member(&segment, 3, &nodes[2], "239.1.2.3", &output);
    std::thread::scope(|scope| {
        scope.spawn(|| send(&segment, 1, "239.1.2.3", "40"));
        scope.spawn(|| send(&segment, 2, "239.1.2.3", "40"));
    });
    for source in ["10.44.0.1 39", "10.44.0.2 39"] {
        wait_until(source, || lines(&output).iter().any(|line| line == source));
    }

    // The member's node says how both streams came.
    let listed = String::from_utf8(nodes[2].call(&["stream", "list"]).stdout).unwrap();
    let (_, received) = listed.split_once("RECEPTION OF").unwrap();
    assert_eq!(received.matches("ip-239.1.2.3").count(), 2, "{listed}");
}

#[test]
fn what_is_too_much_is_dropped_and_told() {
    let Some(segment) = Segment::new(3) else { return };
    let dir = tempfile::tempdir().unwrap();
    let slow = "multicast = { rate = \"50k\" }\n";
    let Some(nodes) = row(&segment, dir.path(), slow) else { return };
    let flood = "
import socket, sys
index = socket.if_nametoindex('ncmesh0')
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, bytes(8) + index.to_bytes(4, sys.byteorder))
for n in range(500):
    s.sendto(bytes(1000), ('239.1.2.3', 5353))
    s.sendto(b'x', ('239.1.3.%d' % (n % 250), 5353))
    s.sendto(b'x', ('224.0.0.77', 5353))
";
    let output = segment.host(1).to_owned();
    let mut command = Command::new("ip");
    command.args(["netns", "exec", &output, "python3", "-c", flood]);
    assert!(command.status().unwrap().success());
    wait_until("the drops are told", || {
        let drops = nodes[0].status().tunnel.unwrap().drops;
        ["rate", "groups", "multicast"].iter().all(|why| drops.contains_key(*why))
    });
    let streams = nodes[2].call(&["stream", "list"]);
    let streams = String::from_utf8(streams.stdout).unwrap();
    assert!(streams.matches("ip-239.1.").count() <= 8, "{streams}");
}

#[test]
fn iperf_measures_multicast_through_the_mesh() {
    let Some(segment) = Segment::new(3) else { return };
    if Command::new("iperf").arg("-v").stderr(Stdio::null()).status().is_err() {
        return skip("multicast is measured by iperf 2");
    }
    let dir = tempfile::tempdir().unwrap();
    let Some(nodes) = row(&segment, dir.path(), "") else { return };
    let output = dir.path().join("server");
    let server = ["iperf", "-s", "-u", "-B", "239.1.2.3%ncmesh0", "-i", "1"];
    let _server = Program::start(&segment, 3, &server, &output);
    wait_until("the node knows of the server", || {
        nodes[2].status().tunnel.unwrap().groups.contains(&"239.1.2.3".to_owned())
    });
    let client = "iperf -c 239.1.2.3 -u -T 4 -B 10.44.0.1 -b 400k -l 1200 -t 6";
    let sent = segment.run(1, client);
    assert!(sent.status.success(), "{sent:?}");
    // A second in the middle in which all datagrams came.
    wait_until("a whole second", || {
        let got = std::fs::read_to_string(&output).unwrap();
        got.lines().any(|line| line.contains("Kbits/sec") && line.contains("(0%)"))
    });
}

/// Starts a D-Bus and an Avahi of a host's own, then runs a command of theirs until it succeeds.
/// Its own file systems and processes end with it.
const AVAHI: &str = "
mount -t tmpfs none /run && mkdir /run/dbus /run/avahi-daemon
cat > /run/bus.conf <<END
<busconfig>
  <type>system</type>
  <listen>unix:path=/run/dbus/system_bus_socket</listen>
  <policy context='default'>
    <allow user='*'/> <allow own='*'/> <allow send_destination='*'/> <allow receive_sender='*'/>
  </policy>
</busconfig>
END
cat > /run/avahi.conf <<END
[server]
host-name=$0
allow-interfaces=ncmesh0
allow-point-to-point=yes
END
dbus-daemon --config-file=/run/bus.conf --nofork --nopidfile &
until test -S /run/dbus/system_bus_socket; do sleep 0.1; done
avahi-daemon --file=/run/avahi.conf --no-drop-root --no-chroot --no-rlimits &
until \"$@\"; do sleep 1; done
";

/// Starts an Avahi of this name at a host, and a command that talks to it.
fn avahi(segment: &Segment, host: usize, name: &str, command: &[&str], output: &Path) -> Program {
    let apart = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", AVAHI, name];
    Program::start(segment, host, &[&apart, command].concat(), output)
}

#[test]
fn avahi_finds_a_service_of_a_host_behind_another_node() {
    let Some(segment) = Segment::new(3) else { return };
    let has = |program: &str| Command::new(program).arg("--version").output().is_ok();
    if !["avahi-daemon", "avahi-browse", "dbus-daemon"].into_iter().all(has) {
        return skip("services are found by Avahi");
    }
    let dir = tempfile::tempdir().unwrap();
    let Some(_nodes) = row(&segment, dir.path(), "") else { return };
    let [published, found] = ["published", "found"].map(|name| dir.path().join(name));
    let publish = ["avahi-publish", "--service", "a printer", "_ipp._tcp", "631"];
    let _publisher = avahi(&segment, 1, "first", &publish, &published);
    let browse = ["avahi-browse", "--resolve", "--parsable", "_ipp._tcp"];
    let _browser = avahi(&segment, 3, "third", &browse, &found);
    // A service that was resolved has name, address and port.
    wait_until("the printer is found", || {
        let resolved = lines(&found).into_iter().filter(|line| line.starts_with("=;ncmesh0;IPv4;"));
        resolved.into_iter().any(|line| line.contains(";first.local;10.44.0.1;631;"))
    });
}

#[test]
fn a_picture_by_rtp_to_a_group_arrives_at_a_host_behind_another_node() {
    let Some(segment) = Segment::new(3) else { return };
    if Command::new("ffmpeg").arg("-version").output().is_err() {
        return skip("pictures are sent and received by ffmpeg");
    }
    let dir = tempfile::tempdir().unwrap();
    let Some(nodes) = row(&segment, dir.path(), "") else { return };
    for host in [1, 3] {
        let routed = segment.run(host, "ip route add 239.0.0.0/8 dev ncmesh0");
        assert!(routed.status.success(), "{routed:?}");
    }
    let sdp = dir.path().join("group.sdp");
    let described = "v=0\no=- 0 0 IN IP4 10.44.0.1\ns=group\nc=IN IP4 239.1.2.3/4\nt=0 0\n\
                     m=video 5004 RTP/AVP 32\n";
    std::fs::write(&sdp, described).unwrap();

    // Each picture that was decoded has a line.
    let pictures = dir.path().join("pictures");
    let input = ["-protocol_whitelist", "file,rtp,udp", "-i", sdp.to_str().unwrap()];
    let player = ["ffmpeg", "-loglevel", "error"].into_iter().chain(input);
    let player: Vec<&str> = player.chain(["-an", "-f", "framecrc", "-"]).collect();
    let _player = Program::start(&segment, 3, &player, &pictures);
    wait_until("the node knows of the player", || {
        nodes[2].status().tunnel.unwrap().groups.contains(&"239.1.2.3".to_owned())
    });
    let source = "ffmpeg -loglevel error -re -f lavfi -i testsrc=size=160x120:rate=25 -t 8 \
                  -c:v mpeg1video -g 12 -b:v 200k -f rtp rtp://239.1.2.3:5004?pkt_size=1200&ttl=4";
    let sent = segment.run(1, source);
    assert!(sent.status.success(), "{sent:?}");
    wait_until("pictures", || {
        let is_picture = |line: &&String| line.starts_with("0,");
        lines(&pictures).iter().filter(is_picture).count() > 100
    });
}
