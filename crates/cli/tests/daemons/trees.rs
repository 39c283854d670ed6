//! Directories in one transfer, between daemons.

use crate::support::net::Segment;
use crate::support::{INBOX, assert_fails, contents, mesh, wait_until};
use ncmesh_node::api::types::{State, Transfer};
use std::fs;
use std::os::unix::fs::symlink;

#[test]
fn a_directory_arrives_as_a_directory() {
    let Some(segment) = Segment::new(2) else { return };
    let dir = tempfile::tempdir().unwrap();
    let pair = mesh(&segment, dir.path(), &["", INBOX]);
    let site = dir.path().join("site");
    fs::create_dir_all(site.join("images/raw")).unwrap();
    fs::write(site.join("index.html"), "<p>").unwrap();
    fs::write(site.join("images/a.jpg"), contents(200_000, 1)).unwrap();
    fs::write(site.join("images/raw/a.raw"), contents(1_000_000, 2)).unwrap();
    symlink("/etc/passwd", site.join("link")).unwrap();
    let site = site.to_str().unwrap();

    let sent: Transfer = pair[0].ask(&["send", site, "--to", "n2", "--exclude", "raw"]);
    assert_eq!((sent.state, sent.name.as_str()), (State::Complete, "site/"));
    assert!(sent.size < 210_000, "{} bytes", sent.size);
    let received = pair[1].dir.join("inbox/site");
    assert_eq!(fs::read(received.join("index.html")).unwrap(), b"<p>");
    assert_eq!(fs::read(received.join("images/a.jpg")).unwrap(), contents(200_000, 1));
    assert!(!received.join("images/raw").exists() && !received.join("link").exists());

    // Again, under another name; nothing of it is left in either state.
    let images = format!("{site}/images");
    let html = format!("{site}/index.html");
    let both = ["send", &images, &html, "--name", "both", "--to", "n2", "--include", "*.html"];
    let sent: Transfer = pair[0].ask(&both);
    assert_eq!(sent.name, "both/");
    assert!(pair[1].dir.join("inbox/both/index.html").is_file());
    wait_until("nothing is left", || {
        let parts = fs::read_dir(pair[1].dir.join("inbox/.ncmesh")).unwrap();
        let left: Vec<_> = parts.map(|part| part.unwrap().file_name()).collect();
        fs::read_dir(pair[0].dir.join("state/spool")).unwrap().count() == 0 && left == ["trees"]
    });

    let fails =
        |args: &[&str], code, words: &[&str]| assert_fails(&pair[0].call(args), code, words);
    fails(&["send", &images, &html, "--to", "n2"], 2, &["--name"]);
    fails(&["send", "-", &html, "--to", "n2"], 2, &["standard input", "alone"]);
    fails(&["send", site, "--to", "n2", "--include", "*.png"], 5, &["nothing to send"]);
    fails(&["send", site, "--to", "n2", "--include", "[a"], 2, &[]);
    // A file may not say that it is a directory.
    fails(&["send", &html, "--to", "n2", "--name", "html/"], 5, &["does not begin as"]);
}
