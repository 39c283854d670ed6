//! Sources that only the caller's process can read: standard input, pipes, files of `/proc`.

use crate::support::net::Segment;
use crate::support::{INBOX, Node, mesh, wait_until};
use std::fs;
use std::process::{Command, Stdio};

/// Runs a script of the shell with the daemon's socket in its environment. `$NCMESH` is the
/// program.
fn script(node: &Node, text: &str) -> std::process::Output {
    let mut shell = Command::new("bash");
    shell.args(["-c", text]).env("NCMESH", env!("CARGO_BIN_EXE_ncmesh"));
    shell.env("NCMESH_API", node.socket()).stdin(Stdio::null());
    shell.output().unwrap()
}

#[test]
fn contents_that_only_the_caller_can_read_are_sent() {
    let Some(segment) = Segment::new(2) else { return };
    let dir = tempfile::tempdir().unwrap();
    let pair = mesh(&segment, dir.path(), &["", INBOX]);
    let received = |name: &str| fs::read(pair[1].dir.join("inbox").join(name)).unwrap();

    let file = dir.path().join("file");
    let bytes: Vec<u8> = (0..300_000_u32).map(|i| (i * 7 % 251) as u8).collect();
    fs::write(&file, &bytes).unwrap();
    let file = file.display();
    for (name, command) in [
        ("piped", format!("cat {file} | $NCMESH send - --name piped --to n2")),
        ("slow", format!("(cat {file}; sleep 1) | $NCMESH send - --name slow --to n2")),
        ("stdin", format!("$NCMESH send /dev/stdin --name stdin --to n2 < {file}")),
        ("fd", format!("$NCMESH send /dev/fd/3 --name fd --to n2 3< {file}")),
        ("self", format!("$NCMESH send /proc/self/fd/4 --name self --to n2 4< {file}")),
        ("sub", format!("$NCMESH send <(cat {file}) --name sub --to n2")),
        (
            "fifo",
            format!(
                "cd {}; mkfifo fifo; cat {file} > fifo & sleep 0.3; \
                          $NCMESH send {}/fifo --to n2",
                dir.path().display(),
                dir.path().display()
            ),
        ),
    ] {
        let output = script(&pair[0], &command);
        assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
        assert!(received(name) == bytes, "{name}");
    }
    let output = script(&pair[0], "$NCMESH send /proc/cpuinfo --to n2");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(String::from_utf8_lossy(&received("cpuinfo")).contains("processor"));

    // Nothing of it is left, and what has no name or no end is refused.
    let spool = pair[0].dir.join("state/spool");
    wait_until("nothing is left", || fs::read_dir(&spool).unwrap().count() == 0);
    for (command, problem) in [
        ("$NCMESH send - --to n2 < /dev/null", "has no name: say --name NAME"),
        ("$NCMESH send /dev/zero --to n2", "is not a regular file"),
        ("$NCMESH send /dev --to n2", "is not a regular file"),
        ("echo x | $NCMESH send - --name .x --to n2", "it begins with a dot"),
    ] {
        let output = script(&pair[0], command);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains(problem), "{command}: {said}");
    }
    wait_until("nothing is left", || fs::read_dir(&spool).unwrap().count() == 0);
}

#[test]
fn a_received_file_goes_to_standard_output() {
    let Some(segment) = Segment::new(2) else { return };
    let dir = tempfile::tempdir().unwrap();
    let pair = mesh(&segment, dir.path(), &["", INBOX]);
    let out = dir.path().join("out");
    let mut receiver = Command::new("bash");
    receiver.args(["-c", &format!("$NCMESH receive --stdout > {}", out.display())]);
    receiver.env("NCMESH", env!("CARGO_BIN_EXE_ncmesh")).env("NCMESH_API", pair[1].socket());
    let mut receiver = receiver.spawn().unwrap();
    std::thread::sleep(std::time::Duration::from_secs(1));
    let sent = script(&pair[0], "seq 20000 | $NCMESH send - --name numbers --to n2");
    assert!(sent.status.success(), "{}", String::from_utf8_lossy(&sent.stderr));
    assert!(receiver.wait().unwrap().success());
    let text = fs::read_to_string(out).unwrap();
    assert!(text.starts_with("1\n2\n") && text.ends_with("\n20000\n"));
}
