//! Fields that the dissector shows for well-formed frames.

use crate::forged::{forge, hex, open_frame};
use crate::support::Tshark;
use ncmesh_engine::registry::ServiceKind;
use ncmesh_engines::registry;
use std::process::Command;

/// Checks that a golden body of docs/reference/wire-format.md is shown with these fields.
fn shows(service: u8, kind: u8, body: &str, fields: &[(&str, &str)]) {
    let Some(tshark) = Tshark::new() else { return };
    let dir = tempfile::tempdir().unwrap();
    let pcap = forge(dir.path(), &[open_frame(service, kind, &hex(body))]);
    let header = [
        ("ncmesh.sender", "7"),
        ("ncmesh.salt", "09090909090909090909090909090909"),
        ("ncmesh.counter", "1"),
    ];
    let (names, values): (Vec<_>, Vec<_>) = header.iter().chain(fields).copied().unzip();
    assert_eq!(tshark.table(&pcap, &names), [values], "{names:?}");
}

/// The golden hello.
const HELLO: &str = "03e8 0003 0102 0009 deadbeef01020304 61 81 0007 0008 0a010009 \
    11 11 0007 0005 0007 0102030405060708 00000103 0006 0102030405060708 00000009";

#[test]
fn a_hello() {
    let fields = [
        ("_ws.col.Info", "control hello next in 1000 ms, 0 states"),
        ("ncmesh.type", "hello"),
        ("ncmesh.hello.interval", "1000"),
        ("ncmesh.hello.short_sent", "3"),
        ("ncmesh.hello.long_sent", "258"),
        ("ncmesh.hello.neighbors", "9"),
        ("ncmesh.hello.digest", "0xdeadbeef01020304"),
        ("ncmesh.hello.asks", "1"),
        ("ncmesh.hello.asked", "7"),
        ("ncmesh.hello.late", "1"),
        ("ncmesh.hello.missed", "8"),
        ("ncmesh.hello.newer", "1"),
        ("ncmesh.hello.knows_older", "1"),
        ("ncmesh.hello.address", "0x0a010009"),
        ("ncmesh.proofs.of", "7"),
        ("ncmesh.proofs.doubt", "5"),
        ("ncmesh.echo.node", "7"),
        ("ncmesh.echo.start", "0x0102030405060708"),
        ("ncmesh.echo.counter", "259"),
        ("ncmesh.vouch.node", "6"),
        ("ncmesh.vouch.counter", "9"),
    ];
    shows(0, 0, HELLO, &fields);
}

#[test]
fn a_hello_with_a_long_address() {
    let body = HELLO.replace("61 81", "61 21").replace("0a010009", "0200000000070000");
    let fields = [
        ("ncmesh.hello.has_address", "0"),
        ("ncmesh.hello.long_address", "0x0200000000070000"),
        ("ncmesh.proofs.of", "7"),
    ];
    shows(0, 0, &body, &fields);
}

#[test]
fn a_frame_that_ethernet_padded() {
    let Some(tshark) = Tshark::new() else { return };
    let dir = tempfile::tempdir().unwrap();
    let frame = open_frame(0, 1, &[]);
    let padded = [&[frame.len() as u8][..], &frame, &[0; 4]].concat();
    assert_eq!(padded.len(), 46);
    let pcap = forge(dir.path(), &[padded]);
    let shown = tshark.fields(&pcap, ["ncmesh.sender", "ncmesh.type", "ncmesh.malformed"]);
    assert_eq!(shown, [["7", "probe", ""]]);
}

#[test]
fn a_probe() {
    shows(0, 1, "0000", &[("ncmesh.type", "probe"), ("ncmesh.probe.padding", "0000")]);
}

#[test]
fn a_comparison() {
    let fields = [
        ("_ws.col.Info", "control compare with 7: 2 ranges"),
        ("ncmesh.type", "compare"),
        ("ncmesh.compare.to", "7"),
        ("ncmesh.range.first", "0,10"),
        ("ncmesh.range.last", "9,65535"),
        ("ncmesh.range.digest", "0x0000000000000000,0xdeadbeef01020304"),
    ];
    let ranges = "0000 0009 0000000000000000 000a ffff deadbeef01020304";
    shows(0, 2, &format!("0007 {ranges}"), &fields);
    let fields = [
        ("_ws.col.Info", "control versions with 7: 2 states"),
        ("ncmesh.type", "versions"),
        ("ncmesh.compare.to", "7"),
        ("ncmesh.range.first", "0,10"),
        ("ncmesh.range.last", "9,65535"),
        ("ncmesh.listed.count", "2,0"),
        ("ncmesh.listed.origin", "3,4"),
        ("ncmesh.listed.epoch", "7,8"),
        ("ncmesh.listed.base", "2,1"),
    ];
    let listed = "0003 0000000000000007 00000002 0004 0000000000000008 00000001";
    shows(0, 3, &format!("0007 0000 0009 02 {listed} 000a ffff 00"), &fields);
    let fields = [
        ("_ws.col.Info", "control request to 7: 2 states"),
        ("ncmesh.type", "request"),
        ("ncmesh.compare.to", "7"),
        ("ncmesh.wanted", "3,4"),
    ];
    shows(0, 4, "0007 0003 0004", &fields);
}

#[test]
fn a_forwarded_packet() {
    let fields = [
        ("ncmesh.type", "data"),
        ("ncmesh.next_hop", "2"),
        ("ncmesh.packet.source", "1"),
        ("ncmesh.packet.destination", "3"),
        ("ncmesh.packet.hops", "9"),
        ("ncmesh.packet.bytes", "4950"),
    ];
    shows(20, 1, "0002 0001 0003 09 4950", &fields);
}

#[test]
fn packets_of_two_flows_combined() {
    let body = "0102 02 00010004 00000001 0004 00000007 01 04 02 01 0028 02 0908 \
                00020005 00000001 0005 00000000 00 04 02 01 0028 02 0003 aabb";
    let fields = [
        ("_ws.col.Info", "core_nc coded 1 to 4 generation 7 + 2 to 5 generation 0"),
        ("ncmesh.core.serial", "258"),
        ("ncmesh.core.parts", "2"),
        ("ncmesh.next_hop", "4,5"),
        ("ncmesh.core.older_open", "1,0"),
        ("ncmesh.core.generation_size", "4,4"),
        ("ncmesh.core.count", "2,2"),
        ("ncmesh.core.closed", "1,1"),
        ("ncmesh.core.symbol_size", "40,40"),
        ("ncmesh.coefficients", "0908,0003"),
        ("ncmesh.payload", "aabb"),
    ];
    shows(23, 1, body, &fields);
}

#[test]
fn a_count_and_its_feedback() {
    let count = "0102 0304 01 00010004 00000001 0003 00000000 00 04 02 01 0028";
    let fields = [
        ("_ws.col.Info", "cope count 1 to 4 generation 0"),
        ("ncmesh.core.number", "772"),
        ("ncmesh.core.again", "1"),
        ("ncmesh.next_hop", "3"),
    ];
    shows(25, 2, count, &fields);
    let feedback = "00010004 00000001 0003 00000007 0506 01 02 05 003e 02 0009 01 0003 005a 0064";
    let fields = [
        ("_ws.col.Info", "core_nc feedback 1 to 4 generation 7: more"),
        ("ncmesh.core.number", "1286"),
        ("ncmesh.core.request", "1"),
        ("ncmesh.core.missing_alone", "2"),
        ("ncmesh.core.missing_combined", "5"),
        ("ncmesh.core.progress", "62"),
        ("ncmesh.core.missing_numbers", "0009"),
        ("ncmesh.core.received", "90"),
        ("ncmesh.core.sent", "100"),
    ];
    shows(23, 3, feedback, &fields);
}

/// The golden states, behind a hello.
#[test]
fn states_behind_a_hello() {
    let fields = [
        ("ncmesh.type", "hello"),
        ("ncmesh.state.origin", "3,3"),
        ("ncmesh.state.whole", "1,0"),
        ("ncmesh.state.urgent", "1,0"),
        ("ncmesh.state.scope", "63,3"),
        ("ncmesh.state.number", "3,5"),
        ("ncmesh.state.since_base", "1,3"),
        ("ncmesh.state.epoch", "7"),
        ("ncmesh.state.name", "c"),
        ("ncmesh.state.epoch_bits", "0x0007"),
        ("ncmesh.state.since", "3"),
        ("ncmesh.state.count", "2,2"),
        ("ncmesh.link.node", "5,9,5,9"),
        ("ncmesh.link.delivery", "0.8,1,0.6,0"),
    ];
    let whole = "0003 ff 00000003 0001 0000000000000007 01 63 02 0005 cc 0009 ff";
    let change = "0003 03 00000005 0003 0007 0003 02 0005 99 0009 00";
    shows(0, 0, &format!("{HELLO} {whole} {change}"), &fields);
}

#[test]
fn an_announcement() {
    let root = "aa".repeat(32);
    let hash = "bb".repeat(32);
    let head = "000301020304 0000000000000007 00000009 80 0a 00000000000003e8 20 0578";
    let body = [head, &root, &hash, "05 612e62696e 0001 0005 01"].concat();
    let fields = [
        ("ncmesh.type", "announcement"),
        ("ncmesh.flow", "3-01020304"),
        ("ncmesh.flow.source", "3"),
        ("ncmesh.flow.serial", "0x01020304"),
        ("ncmesh.originator_epoch", "7"),
        ("ncmesh.number", "9"),
        ("ncmesh.announcement.phase", "0"),
        ("ncmesh.announcement.may_join", "1"),
        ("ncmesh.announcement.airtime", "10"),
        ("ncmesh.announcement.size", "1000"),
        ("ncmesh.announcement.generation", "32"),
        ("ncmesh.announcement.symbol_size", "1400"),
        ("ncmesh.announcement.generations", "1"),
        ("ncmesh.announcement.root", &root),
        ("ncmesh.announcement.hash", &hash),
        ("ncmesh.announcement.name", "a.bin"),
        ("ncmesh.announcement.receivers", "1"),
        ("ncmesh.receiver.node", "5"),
        ("ncmesh.receiver.state", "1"),
    ];
    shows(16, 0, &body, &fields);
}

#[test]
fn data() {
    let body = "000301020304 1122 00000006 00000004 02 02 01 0008 0180 0005 00000055 0a0b ff";
    let fields = [
        ("ncmesh.type", "data"),
        ("ncmesh.flow", "3-01020304"),
        ("ncmesh.incarnation", "0x1122"),
        ("ncmesh.turn", "6"),
        ("ncmesh.generation", "4"),
        ("ncmesh.packets", "2"),
        ("ncmesh.systematic", "0"),
        ("ncmesh.has_piggyback", "1"),
        ("ncmesh.forwarders", "1"),
        ("ncmesh.forwarder.node", "8"),
        ("ncmesh.forwarder.credit", "1.5"),
        ("ncmesh.piggyback.receiver", "5"),
        ("ncmesh.piggyback.serial", "0x00000055"),
        ("ncmesh.coefficients", "0a0b"),
        ("ncmesh.payload", "ff"),
    ];
    shows(16, 1, body, &fields);
}

#[test]
fn data_with_belts() {
    let body = "000301020304 1122 00000006 00000004 02 05 02 0008 0180 0009 0040 03 40 01 ff";
    let fields = [
        ("_ws.col.Info", "more data 3-01020304 generation 4, systematic"),
        ("ncmesh.has_belts", "1"),
        ("ncmesh.systematic", "1"),
        ("ncmesh.forwarder.node", "8,9"),
        ("ncmesh.forwarder.credit", "1.5,0.25"),
        ("ncmesh.revision", "3"),
        ("ncmesh.upstream", "40"),
        ("ncmesh.index", "1"),
        ("ncmesh.payload", "ff"),
    ];
    shows(17, 1, body, &fields);
}

#[test]
fn data_of_the_cascade() {
    let body = "000301020304 00000004 02 0e 02 0102 0003 0708 0009 00000005 01 02 01ff 0a0b ff";
    let fields = [
        ("_ws.col.Info", "cascade data 3-01020304 generation 4, coded, rank 2"),
        ("ncmesh.type", "data"),
        ("ncmesh.flow", "3-01020304"),
        ("ncmesh.generation", "4"),
        ("ncmesh.packets", "2"),
        ("ncmesh.feeds", "0"),
        ("ncmesh.forwards", "1"),
        ("ncmesh.receives", "1"),
        ("ncmesh.polls", "1"),
        ("ncmesh.systematic", "0"),
        ("ncmesh.rank", "2"),
        ("ncmesh.frame_number", "258"),
        ("ncmesh.parent", "3"),
        ("ncmesh.handled", "1800"),
        ("ncmesh.ago", "9"),
        ("ncmesh.first_wanted", "5"),
        ("ncmesh.backlog", "1"),
        ("ncmesh.ranks.count", "2"),
        ("ncmesh.ranks", "01ff"),
        ("ncmesh.coefficients", "0a0b"),
        ("ncmesh.payload", "ff"),
    ];
    shows(26, 1, body, &fields);
    let fields = [
        ("_ws.col.Info", "cascade data 3-01020304 generation 4, systematic, rank 12"),
        ("ncmesh.feeds", "1"),
        ("ncmesh.forwards", "1"),
        ("ncmesh.receives", "0"),
        ("ncmesh.polls", "0"),
        ("ncmesh.first_wanted", "4294967295"),
        ("ncmesh.ranks.count", "0"),
        ("ncmesh.index", "11"),
        ("ncmesh.payload", "ff"),
    ];
    shows(
        26,
        1,
        "000301020304 00000004 0c 19 0c 0102 0003 0000 ffff ffffffff 00 00 0b ff",
        &fields,
    );
}

#[test]
fn a_report_of_the_cascade() {
    let fields = [
        ("_ws.col.Info", "cascade report 3-01020304 of 9 to parent 3: wants generation 4"),
        ("ncmesh.type", "report"),
        ("ncmesh.next_hop", "8"),
        ("ncmesh.parent", "3"),
        ("ncmesh.child", "9"),
        ("ncmesh.flow", "3-01020304"),
        ("ncmesh.frame_number", "258"),
        ("ncmesh.handled", "1800"),
        ("ncmesh.ago", "9"),
        ("ncmesh.feeds", "0"),
        ("ncmesh.forwards", "1"),
        ("ncmesh.receives", "1"),
        ("ncmesh.first_wanted", "4"),
        ("ncmesh.backlog", "1"),
        ("ncmesh.ranks", "07ff"),
    ];
    shows(26, 3, "0008 0003 0009 000301020304 0102 0708 0009 0c 00000004 01 07ff", &fields);
}

#[test]
fn an_acknowledgment() {
    let fields = [
        ("ncmesh.type", "acknowledgment"),
        ("ncmesh.next_hop", "8"),
        ("ncmesh.flow", "3-01020304"),
        ("ncmesh.receiver.node", "5"),
        ("ncmesh.originator_epoch", "7"),
        ("ncmesh.number", "2"),
        ("ncmesh.receiver.state", "1"),
        ("ncmesh.first_missing", "1"),
        ("ncmesh.bits", "80"),
    ];
    shows(16, 2, "0008 000301020304 0005 0000000000000007 00000002 01 00000001 80", &fields);
}

#[test]
fn packets_that_cross_are_shown_each() {
    // All forged frames are of node 7.
    let coded = "02 0001 0003 0002 11 00000009 0000 ce6bb2c9 11 00000007 0005 64f2c448 08134b";
    let fields = [
        ("_ws.col.Info", "xor coded 3-00000009 + 1-00000007"),
        ("ncmesh.xor.packets", "2"),
        ("ncmesh.xor.next", "1,3"),
        ("ncmesh.xor.length", "2"),
        ("ncmesh.xor.hop", "1,1"),
        ("ncmesh.xor.hops", "2,2"),
        ("ncmesh.xor.number", "0x00000009,0x00000007"),
        ("ncmesh.xor.sequence", "0,5"),
        ("ncmesh.xor.source", "3,1"),
        ("ncmesh.xor.node", "7,1,7,3"),
        ("ncmesh.xor.destination", "1,3"),
        ("ncmesh.xor.check", "0xce6bb2c9,0x64f2c448"),
        ("ncmesh.payload", "08134b"),
    ];
    shows(21, 1, coded, &fields);
    let fields = [
        ("_ws.col.Info", "xor data 1-00000007"),
        ("ncmesh.xor.source", "1"),
        ("ncmesh.xor.node", "7,3"),
        ("ncmesh.payload", "4950"),
    ];
    shows(21, 1, "01 11 00000007 0005 0001 0003 4950", &fields);
    let fields = [
        ("ncmesh.neighbour.node", "2"),
        ("ncmesh.report.coded", "40"),
        ("ncmesh.report.decoded", "39"),
    ];
    shows(21, 2, "0002 00000028 00000027", &fields);
    shows(
        21,
        3,
        "0002 0005 0009",
        &[("ncmesh.request.neighbour", "2"), ("ncmesh.request.missing", "5,9")],
    );
}

#[test]
fn frames_of_paths_joined() {
    let fields = [
        ("_ws.col.Info", "mc2 data 2 to 4 generation 6"),
        ("ncmesh.instance", "0x00010001"),
        ("ncmesh.mc2.node", "2,4"),
        ("ncmesh.mc2.next_hops", "0x0002,0x0000"),
        ("ncmesh.mc2.serial", "772"),
        ("ncmesh.mc2.credits", "5"),
        ("ncmesh.mc2.ack.node", "1"),
        ("ncmesh.mc2.announced.credits", "7"),
        ("ncmesh.mc2.generation", "6"),
        ("ncmesh.mc2.symbol_size", "3"),
        ("ncmesh.coefficients", "0100"),
        ("ncmesh.payload", "0001aa"),
    ];
    let body = "00010001 02 0002 0002 0004 0000 02 0304 03 0005 00000000 01 0001 0009 00000003 \
                01 01 00000006 0007 00000006 02 00 02 0003 0100 0001aa";
    shows(22, 1, body, &fields);
    let fields = [("_ws.col.Info", "mc2 report 2 to 4"), ("ncmesh.mc2.done", "7")];
    shows(22, 2, "0002 0004 00000001 0000 00000007 00", &fields);
    let fields = [
        ("_ws.col.Info", "mc2 request 2 to 4 by 2: 3 packets of generation 6"),
        ("ncmesh.mc2.request.missing", "3"),
    ];
    shows(22, 3, "0002 0004 00000001 0002 00000006 01 03", &fields);
}

#[test]
fn frames_of_a_stream() {
    let fields = [
        ("_ws.col.Info", "multirate data 1-00000007 layer 1, packet 5 to 2"),
        ("ncmesh.flow", "1-00000007"),
        ("ncmesh.next_hop", "2"),
        ("ncmesh.stream.layer", "1"),
        ("ncmesh.stream.sequence", "5"),
        ("ncmesh.packet.hops", "9"),
        ("ncmesh.packet.bytes", "525450"),
    ];
    shows(24, 1, "0001 00000007 0002 01 00000005 09 525450", &fields);
    let fields = [
        ("ncmesh.parent", "1"),
        ("ncmesh.membership.receivers", "2"),
        ("ncmesh.membership.backlog", "1.5"),
        ("ncmesh.membership.pressure", "2.5"),
    ];
    shows(24, 2, "0001 00000007 0001 0002 3fc00000 40200000", &fields);
    let fields = [
        ("_ws.col.Info", "multirate announcement 1-00000007 to group tv, 2 layers"),
        ("ncmesh.stream.group", "tv"),
        ("ncmesh.stream.layer.name", "base,enh"),
        ("ncmesh.stream.sent", "3,4"),
    ];
    shows(
        24,
        3,
        "0001 00000007 00000001 02 02 7476 04 62617365 03 656e68 00000003 00000004",
        &fields,
    );
}

#[test]
fn every_registered_engine_is_known_by_name() {
    let Some(tshark) = Tshark::new() else { return };
    let dir = tempfile::tempdir().unwrap();
    // Announcements are the frames that all file schemes write alike.
    let head = "000301020304 0000000000000007 00000009 80 00";
    let hashes = "aa".repeat(64);
    let body = [head, "00000000000003e8 20 0578", &hashes, "05 612e62696e 0000"].concat();
    for entry in registry().of(ServiceKind::File) {
        let pcap = forge(dir.path(), &[open_frame(entry.id.0, 0, &hex(&body))]);
        let expected = format!("{} announcement 3-01020304 open, 0 receivers", entry.name);
        assert_eq!(tshark.fields(&pcap, ["_ws.col.Info"]), [[expected]]);
    }
}

#[test]
fn frames_of_daemons_over_udp_are_shown_too() {
    let Some(tshark) = Tshark::new() else { return };
    let dir = tempfile::tempdir().unwrap();
    let dump = dir.path().join("dump");
    let pcap = dir.path().join("udp.pcap");
    let frame = open_frame(0, 0, &hex("03e8 0009 0002 0001 1122334455667788 00 01 0007 00 00"));
    let bytes: Vec<String> = frame.iter().map(|byte| format!("{byte:02x}")).collect();
    std::fs::write(&dump, format!("0000 {}\n", bytes.join(" "))).unwrap();
    let mut text2pcap = Command::new("text2pcap");
    text2pcap.args(["-u", "7117,7117"]).arg(&dump).arg(&pcap);
    assert!(text2pcap.output().unwrap().status.success());
    assert_eq!(
        tshark.fields(&pcap, ["_ws.col.Info"]),
        [["control hello next in 1000 ms, 0 states"]]
    );
}
