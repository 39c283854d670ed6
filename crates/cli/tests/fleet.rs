//! `ncmesh fleet` on a command line: releases are packed, signed by several keys and checked, and
//! each mistake has one line and its exit code.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on stops there")]

use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

fn fleet(dir: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ncmesh"));
    command.arg("fleet").args(args).current_dir(dir).output().unwrap()
}

fn said(dir: &Path, args: &[&str]) -> String {
    let output = fleet(dir, args);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Runs a command that fails with this exit code and one line that has these words.
fn fails(dir: &Path, args: &[&str], code: i32, words: &str) {
    let output = fleet(dir, args);
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(code), "{error}");
    assert!(error.contains(words) && error.lines().count() == 1, "{error}");
}

fn pack(dir: &Path, version: &str, contents: &str) -> String {
    fs::write(dir.join("a.bin"), contents).unwrap();
    fs::write(dir.join("b.bin"), "another image").unwrap();
    let out = format!("{version}.manifest");
    let images = ["--image", "wdr4300=a.bin", "--image", "cpe210=b.bin"];
    said(dir, &[&["pack", "town", version, "--out", &out], &images[..]].concat());
    out
}

fn verify<'a>(manifest: &'a str, keys: &'a [String], more: &[&'a str]) -> Vec<&'a str> {
    let keys = keys.iter().flat_map(|key| ["--key", key]);
    ["verify", manifest, "--need", "2"]
        .into_iter()
        .chain(keys)
        .chain(more.iter().copied())
        .collect()
}

#[test]
fn a_release_counts_once_enough_keys_have_signed() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let keys = ["a.key", "b.key", "c.key"].map(|file| said(dir, &["keygen", file]));
    assert_eq!(said(dir, &["key", "a.key"]), keys[0]);
    let new = pack(dir, "1.1", "an image");
    let check = |more: &[&'static str]| verify(&new, &keys, more);

    fails(dir, &check(&[]), 10, "0 of the 2 signatures that are needed");
    said(dir, &["sign", &new, "--key", "b.key"]);
    said(dir, &["sign", &new, "--key", "b.key"]);
    fails(dir, &check(&[]), 10, "1 of the 2 signatures that are needed");
    said(dir, &["sign", &new, "--key", "a.key"]);
    assert!(said(dir, &check(&["--images", "."])).starts_with("good: 2 of 3 trusted keys signed"));
    let text = said(dir, &check(&["--json", "--model", "cpe210", "--running", "1.0"]));
    let answer: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(answer["signers"].as_array().unwrap().len(), 2);
    assert_eq!(answer["images"][0]["model"], "cpe210");

    // Nodes for which it is not.
    fails(dir, &check(&["--model", "ap"]), 10, "it has no image for ap");
    fails(dir, &check(&["--running", "1.2"]), 10, "version 1.1 is older than 1.2");
    fails(dir, &check(&["--channel", "testing"]), 10, "it is in channel stable, not in testing");
    said(dir, &check(&["--running", "1.2", "--downgrade"]));

    // Another 1.1, by the same signers, and images that are not those that were signed.
    fs::create_dir(dir.join("other")).unwrap();
    let other = dir.join("other");
    pack(&other, "1.1", "another operator's image");
    for key in ["../a.key", "../b.key"] {
        said(&other, &["sign", "1.1.manifest", "--key", key]);
    }
    let known = ["--known", "other/1.1.manifest"];
    fails(dir, &check(&known), 10, "another release of version 1.1 is known, which differs");
    fails(dir, &check(&["--images", "other"]), 10, "it is not the image for wdr4300");

    // A byte of the manifest changes.
    let text = fs::read_to_string(dir.join(&new)).unwrap();
    fs::write(dir.join(&new), text.replace("name town", "name city")).unwrap();
    fails(dir, &check(&[]), 10, "0 of the 2 signatures that are needed");
    fs::write(dir.join(&new), text.replace("name town", "name  town")).unwrap();
    fails(dir, &check(&[]), 10, "a release's name is 1 to 64 characters");
    fs::write(dir.join(&new), "x\n".repeat(1 << 20)).unwrap();
    fails(dir, &check(&[]), 10, "a manifest has at most 1048576 bytes");
}

#[test]
fn mistakes_end_in_one_line() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let key = said(dir, &["keygen", "a.key"]);
    let new = pack(dir, "1.0", "an image");
    fails(dir, &["keygen", "a.key"], 5, "remove it first");
    fails(dir, &["sign", &new, "--key", "none.key"], 5, "none.key");
    fails(dir, &["verify", &new, "--key", &key, "--need", "2"], 2, "only 1 different keys");
    fails(dir, &["verify", "none", "--key", &key], 5, "none cannot be read");
    fails(dir, &["verify", "a.bin", "--key", &key], 10, "a manifest is ASCII text");
    let pack = |more: &[&'static str]| [&["pack", "town"], more, &["--out", "m"]].concat();
    fails(dir, &pack(&["--image", "a=a.bin"]), 2, "name the version");
    fails(dir, &pack(&["1.0"]), 2, "at least one image");
    fails(dir, &pack(&["1.0", "--image", "a=none.bin"]), 5, "none.bin cannot be read");
    fails(dir, &pack(&["1.0", "--image", "a=a.bin", "--image", "a=b.bin"]), 2, "two images for a");
    assert!(!dir.join("m").exists());

    fs::set_permissions(dir.join("a.key"), fs::Permissions::from_mode(0o640)).unwrap();
    fails(dir, &["sign", &new, "--key", "a.key"], 5, "chmod 600");
}

#[test]
fn releases_go_to_other_updaters_and_come_back() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let key = said(dir, &["keygen", "a.key"]);
    let new = pack(dir, "1.0", "an image");
    let schedule = ["--date", "2026-11-28 12:00:00+00:00", "--priority", "1"];
    let export = ["export", "gluon", &new, "--out", "stable.manifest"];
    said(dir, &[&export[..], &schedule].concat());
    said(dir, &["pack", "town", "--gluon", "stable.manifest", "--out", "again.manifest"]);
    let read = |file: &str| fs::read_to_string(dir.join(file)).unwrap();
    assert_eq!(read("again.manifest"), read(&new));
    fails(dir, &["verify", "stable.manifest", "--key", &key], 10, "which ncmesh cannot check");

    said(dir, &["export", "eupgrade", &new, "--out", "latest", "--description", "Town 1"]);
    let args = ["pack", "town", "1.0", "--eupgrade", "latest/cpe210.json", "--images", "."];
    said(dir, &[&args[..], &["--out", "of-one-board.manifest"]].concat());
    assert!(read("of-one-board.manifest").contains("image cpe210 13 "));

    // The images have changed since.
    fs::write(dir.join("b.bin"), "a worse image").unwrap();
    let again = ["pack", "town", "--gluon", "stable.manifest", "--out", "third.manifest"];
    fails(dir, &again, 10, "it is not the image that stable.manifest lists");
    fails(dir, &[&args[..], &["--out", "fourth"]].concat(), 10, "it is not the image");
}
