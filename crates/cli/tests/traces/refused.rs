//! Files that cannot be written, and nodes that do not exist.

use crate::support::simulate;

fn fails(more: &[&str], code: i32, words: &str) {
    let output = simulate(more);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{said}");
    assert!(said.contains(words), "{words:?} is not in {said:?}");
    assert!(output.stdout.is_empty(), "no outcome is shown");
}

#[test]
fn a_file_that_cannot_be_written_is_named() {
    for option in ["--pcap", "--events"] {
        fails(&[option, "/nonexistent/run"], 5, "/nonexistent/run cannot be written: No such file");
        fails(&[option, "/proc"], 5, "/proc cannot be written: Is a directory");
        let full = "/dev/full cannot be written: No space left on device";
        fails(&[option, "/dev/full"], 5, full);
        // A file so long that buffered bytes at its end do not matter.
        fails(&[option, "/dev/full", "--set", "traffic.size=1MB"], 5, full);
    }
}

#[test]
fn wrong_usage_is_told() {
    fails(&["--pcap-node", "d"], 2, "--pcap <FILE>");
    fails(&["--pcap", "run", "--pcap-node", "d,x"], 6, "no node `x`; there are s, r1, r2, d");
    fails(&["--pcap", "run", "--events", "run"], 2, "--pcap and --events both name run");
}
