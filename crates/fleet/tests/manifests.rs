//! Manifests as signers, operators and attackers write them.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on stops there")]

use ncmesh_fleet::eupgrade::{Announcement, EupgradeError};
use ncmesh_fleet::gluon::{GluonError, GluonManifest, Schedule};
use ncmesh_fleet::{
    Digests, Flaw, Head, Image, Known, MAX_BYTES, MAX_IMAGES, MAX_SIGNATURES, Manifest,
    ManifestError, Refusal, Release, Station, Trust, TrustError, Version,
};
use ncmesh_wire::identity::SecretKey;
use proptest::prelude::*;

fn key(seed: u8) -> SecretKey {
    SecretKey::new(&[seed; 32].into())
}

fn version(text: &str) -> Version {
    text.parse().unwrap()
}

fn image(model: &str, contents: &[u8]) -> Image {
    let (size, digests) = Digests::read(contents).unwrap();
    Image { model: model.into(), file: format!("town-{model}.bin"), size, digests }
}

fn head(of: &str) -> Head {
    Head {
        name: "town".into(),
        version: version(of),
        channel: "stable".into(),
        replaces: Vec::new(),
    }
}

fn release(of: &str) -> Release {
    Release::new(head(of), vec![image("wdr4300", b"large"), image("cpe210", b"small")]).unwrap()
}

fn signed(of: &str, signers: &[u8]) -> Manifest {
    let mut manifest = Manifest::new(release(of));
    for signer in signers {
        manifest.sign(&key(*signer)).unwrap();
    }
    manifest
}

fn trust(keys: &[u8], need: usize) -> Trust {
    Trust::new(keys.iter().map(|seed| key(*seed).public()), need).unwrap()
}

fn parse(text: &str) -> Result<Manifest, ManifestError> {
    Manifest::parse(text.as_bytes())
}

#[test]
fn a_manifest_has_this_text() {
    let digests = Digests { sha256: [0x1A; 32], blake3: [0x2B; 32] };
    let image = Image { model: "cpe210".into(), file: "town.bin".into(), size: 5, digests };
    let head = Head { replaces: vec![version("0.9")], ..head("1.0") };
    let mut manifest = Manifest::new(Release::new(head, vec![image]).unwrap());
    manifest.sign(&key(1)).unwrap();
    let text = format!(
        "ncmesh release 1\nname town\nversion 1.0\nchannel stable\nreplaces 0.9\n\
         image cpe210 5 {} {} town.bin\n---\n{} ",
        "1a".repeat(32),
        "2b".repeat(32),
        key(1).public()
    );
    assert!(manifest.to_string().starts_with(&text), "{manifest}");
}

#[test]
fn what_is_written_is_read_again() {
    let manifest = signed("1.0", &[1, 2, 3]);
    let text = manifest.to_string();
    assert_eq!(parse(&text), Ok(manifest.clone()));

    // Signers add lines to copies, and somebody joins the files in another order.
    let (statement, lines) = text.split_once("---\n").unwrap();
    let reversed: Vec<&str> = lines.lines().rev().chain(lines.lines()).collect();
    let joined = format!("{statement}---\n{}\n", reversed.join("\n"));
    assert_eq!(parse(&joined), Ok(manifest));
}

#[test]
fn n_of_m_keys_must_have_signed() {
    let trust = trust(&[1, 2, 3], 2);
    let refused = |good| Err(Refusal::Signatures { good, need: 2 });
    assert_eq!(trust.check(&signed("1.0", &[])).map(|_| ()), refused(0));
    assert_eq!(trust.check(&signed("1.0", &[1])).map(|_| ()), refused(1));
    // A key that is not trusted, and one that signs twice.
    assert_eq!(trust.check(&signed("1.0", &[1, 9, 1])).map(|_| ()), refused(1));
    assert_eq!(trust.check(&signed("1.0", &[3, 1])).unwrap().len(), 2);

    // The signature of another release is none, also twice under one key.
    let other = signed("1.1", &[1]).to_string();
    let (_, signatures) = other.split_once("---\n").unwrap();
    let text = signed("1.0", &[1]).to_string() + signatures;
    let manifest = parse(&text).unwrap();
    assert_eq!(trust.check(&manifest).map(|_| ()), refused(1));
    assert_eq!(manifest.claimed().len(), 1);
}

#[test]
fn trust_needs_enough_different_keys() {
    let keys = [key(1).public(), key(1).public()];
    assert_eq!(Trust::new(keys, 0), Err(TrustError::None));
    assert_eq!(Trust::new(keys, 2), Err(TrustError::FewKeys { need: 2, keys: 1 }));
}

#[test]
fn releases_with_flaws_are_refused() {
    let make = |images| Release::new(head("1.0"), images);
    assert_eq!(make(vec![]), Err(Flaw::NoImage));
    let two = vec![image("a", b"1"), image("a", b"2")];
    assert_eq!(make(two), Err(Flaw::TwoFiles("town-a.bin".into())));
    let mut two = vec![image("a", b"1"), image("a", b"2")];
    two[1].file = "other.bin".into();
    assert_eq!(make(two), Err(Flaw::TwoImages("a".into())));
    assert_eq!(make(vec![image("a", b"")]), Err(Flaw::Empty("a".into())));
    for (model, file) in [("a b", "f"), ("-a", "f"), ("a", "../f"), ("a", ".f"), ("a", "")] {
        let image = Image { model: model.into(), file: file.into(), ..image("a", b"1") };
        assert!(matches!(make(vec![image]), Err(Flaw::Misnamed(_))), "{model} {file}");
    }
    let replaces = vec![version("1.00")];
    let flaw = Release::new(Head { replaces, ..head("1.0") }, vec![image("a", b"1")]);
    assert_eq!(flaw, Err(Flaw::Replaced(version("1.00"), version("1.0"))));
}

#[test]
fn the_longest_release_with_all_signatures_fits() {
    let long = |c: &str, n: usize, length| format!("{c}{n:0length$}");
    let images = (0..MAX_IMAGES).map(|n| Image {
        model: long("m", n, 63),
        file: long("f", n, 199),
        size: u64::MAX,
        ..image("m", b"1")
    });
    let replaces = (0..16).map(|n| version(&long("0", n, 63))).collect();
    let name = long("n", 0, 63);
    let head =
        Head { name: name.clone(), version: version(&long("9", 0, 63)), channel: name, replaces };
    let mut manifest = Manifest::new(Release::new(head, images.collect()).unwrap());
    for signer in 0..MAX_SIGNATURES {
        manifest.sign(&key(signer as u8)).unwrap();
    }
    let text = manifest.to_string();
    assert!(text.len() <= MAX_BYTES, "{}", text.len());
    assert_eq!(parse(&text), Ok(manifest.clone()));
    assert_eq!(manifest.sign(&key(200)), Err(ManifestError::ManySignatures));
}

#[test]
fn hostile_texts_end_in_an_error_that_names_the_line() {
    let text = signed("1.0", &[1]).to_string();
    let with = |old: &str, new: &str| parse(&text.replacen(old, new, 1)).map(|_| ());
    let at = |line, expected| Err(ManifestError::Line { line, expected });
    assert_eq!(parse(""), Err(ManifestError::NoText));
    assert_eq!(with("release 1", "release 2"), Err(ManifestError::NoManifest));
    assert_eq!(with("name town", "title town"), at(2, "name NAME"));
    assert_eq!(with("channel", "Channel"), at(4, "channel CHANNEL"));
    assert!(matches!(with("image", "picture"), Err(ManifestError::Line { line: 5, .. })));
    assert!(matches!(with(" 1.0", " 1 0"), Err(ManifestError::Misnamed { line: 3, .. })));
    assert_eq!(with("town-", "to/wn-").map_err(|e| matches!(e, ManifestError::Flaw(_))), Err(true));
    assert!(matches!(with("---", "----"), Err(ManifestError::Line { line: 7, .. })));
    assert_eq!(with(" 5 ", " 05 "), Err(ManifestError::Form));
    assert_eq!(with(" 5 ", " +5 "), Err(ManifestError::Form));
    assert_eq!(with("town\n", "town\r\n"), Err(ManifestError::NoText));
    assert_eq!(parse(text.trim_end()), Err(ManifestError::NoText));
    let key = key(1).public().to_string();
    assert_eq!(with(&key, &"0".repeat(64)), at(8, "KEY SIGNATURE"));
    assert_eq!(with(&key, &key.to_uppercase()), at(8, "KEY SIGNATURE"));

    // Without the separator there is no end.
    let (statement, signature) = text.split_once("---\n").unwrap();
    assert!(matches!(parse(statement), Err(ManifestError::Line { line: 6, .. })));
    let images: Vec<&str> = statement.lines().rev().collect();
    let swapped = format!("{}\n{}\n", images[0], images[1]);
    let in_order = format!("{}\n{}\n", images[1], images[0]);
    assert_eq!(with(&in_order, &swapped), Err(ManifestError::Form));
    let many = text.clone() + &signature.repeat(MAX_SIGNATURES);
    assert_eq!(parse(&many), Err(ManifestError::ManySignatures));
    let line = format!("{}\n", images[0]);
    assert_eq!(with(&line, &line.repeat(MAX_IMAGES)), Err(Flaw::ManyImages.into()));
    assert_eq!(parse(&"x\n".repeat(MAX_BYTES)), Err(ManifestError::Long));
}

#[test]
fn a_node_takes_only_what_is_for_it() {
    let runs = Station {
        name: Some("town".into()),
        channel: Some("stable".into()),
        model: Some("cpe210".into()),
        running: Some(version("1.1")),
        ..Station::default()
    };
    let new = signed("1.2", &[1]);
    assert_eq!(runs.judge(&new).unwrap().unwrap().file, "town-cpe210.bin");

    let refusal = |station: &Station, of: &str| station.judge(&signed(of, &[])).unwrap_err();
    let older = |found, newest| Refusal::Older { found: version(found), newest: version(newest) };
    assert_eq!(refusal(&runs, "1.0"), older("1.0", "1.1"));
    assert_eq!(refusal(&runs, "1.1"), Refusal::Runs(version("1.1")));
    let other = Station { model: Some("ap".into()), ..runs.clone() };
    assert_eq!(refusal(&other, "1.2"), Refusal::Model("ap".into()));
    let other = Station { channel: Some("testing".into()), ..runs.clone() };
    assert!(matches!(refusal(&other, "1.2"), Refusal::Channel { .. }));
    let other = Station { name: Some("village".into()), ..runs.clone() };
    assert!(matches!(refusal(&other, "1.2"), Refusal::Name { .. }));

    // A replay of what was in between.
    let knows = Station { newest: Some(Known::of(&signed("1.3", &[]))), ..runs.clone() };
    assert_eq!(refusal(&knows, "1.2"), older("1.2", "1.3"));
    assert!(knows.judge(&signed("1.3", &[2])).is_ok());
    let downgrades = Station { may_downgrade: true, ..knows.clone() };
    assert!(downgrades.judge(&signed("1.0", &[])).is_ok());

    // Another operator's 1.3.
    let images = vec![image("cpe210", b"other")];
    let other = Manifest::new(Release::new(head("1.3"), images.clone()).unwrap());
    assert_eq!(knows.judge(&other), Err(Refusal::Differs(version("1.3"))));

    let replaces = vec![version("1.0")];
    let after = Release::new(Head { replaces, ..head("1.4") }, images).unwrap();
    let judged = runs.judge(&Manifest::new(after)).map(|_| ());
    assert_eq!(judged, Err(Refusal::Replaces(version("1.1"))));
}

const SAMPLE: &str = "BRANCH=stable\n\
    DATE=1970-01-01 00:00:00+00:00\n\
    PRIORITY=7\n\
    \n\
    # model               ver sha256sum   size    filename\n\
    tp-link-tl-wdr4300-v1 0.4 \
    0ce0fb6a79802ba98c933ac3ae7757fdf2f62b32641fb6c5efc09211b9082c46 3735556 town-0.4.bin\n\
    tp-link-tl-wdr4300-v1 0.4 \
    0ce0fb6a79802ba98c933ac3ae7757fdf2f62b32641fb6c5efc09211b9082c46 town-0.4.bin\n\
    \n\
    # after three dashes follow signatures\n\
    ---\n\
    49030b7b394e0bd204e0faf17f2d2b2756b503c9d682b135deea42b34a09010b\
    ff139cbf7513be3f9f8aae126b7f6ff3a7bfe862a798eae9b005d75abbba770a\n";

#[test]
fn gluons_manifest_is_read_and_stays_as_it_is() {
    let manifest = GluonManifest::parse(SAMPLE.as_bytes()).unwrap();
    assert_eq!(manifest.to_string(), SAMPLE);
    assert_eq!(manifest.branches(), ["stable"]);
    assert_eq!(manifest.version().unwrap().as_str(), "0.4");
    assert_eq!(manifest.images()["tp-link-tl-wdr4300-v1"].size, 3_735_556);
    assert_eq!(manifest.signatures().len(), 1);

    let error = |old: &str, new: &str| {
        GluonManifest::parse(SAMPLE.replacen(old, new, 1).as_bytes()).unwrap_err()
    };
    let at = |line, expected| GluonError::Line { line, expected };
    assert_eq!(error("BRANCH=stable", ""), GluonError::Missing("BRANCH"));
    assert_eq!(error("00:00:00+", "00:00+"), at(2, "DATE=YYYY-MM-DD HH:MM:SS+HH:MM"));
    assert_eq!(error("=7", "=1e3"), at(3, "PRIORITY=DAYS, such as 1 or 0.5"));
    assert_eq!(error("3735556 ", "-1 "), at(6, "MODEL VERSION SHA256 SIZE FILE"));
    assert_eq!(error("49030b", "49030"), at(11, "a signature of 128 digits"));
    assert_eq!(error("# model", &"#".repeat(600)), GluonError::LongLine(5));
    let line = SAMPLE.lines().nth(5).unwrap();
    let other = format!("{line}\n{}", line.replace("0ce0", "0ce1"));
    assert_eq!(error(line, &other), GluonError::TwoImages("tp-link-tl-wdr4300-v1".into()));
    let other = format!("{line}\nother 0.5 {}", line.split_once("0.4 ").unwrap().1);
    let mixed = GluonManifest::parse(SAMPLE.replacen(line, &other, 1).as_bytes()).unwrap();
    let versions = GluonError::TwoVersions(version("0.5"), version("0.4"));
    assert_eq!(mixed.version(), Err(versions));
}

#[test]
fn a_release_becomes_a_manifest_of_gluon() {
    let date = "2026-11-28 12:00:00+01:00".parse().unwrap();
    let priority = "0.5".parse().unwrap();
    let written = GluonManifest::of(&release("1.0"), Schedule { date, priority });
    let read = GluonManifest::parse(written.to_string().as_bytes()).unwrap();
    assert_eq!(read, written);
    assert_eq!(read.images().len(), 2);
}

#[test]
fn libremeshs_announcements_are_read_and_written() {
    let written = Announcement::of(&image("tplink,cpe210.v2", b"image"), "LibreMesh 20.10");
    assert_eq!(written.file_name(), "tplink-cpe210-v2.json");
    let text = written.to_json().unwrap();
    let read = Announcement::parse(text.as_bytes()).unwrap();
    assert_eq!(read, written);
    let image = read.image().unwrap();
    assert_eq!(image.digest().unwrap(), Digests::read(&b"image"[..]).unwrap().1.sha256);

    let error =
        |old: &str, new: &str| Announcement::parse(text.replace(old, new).as_bytes()).unwrap_err();
    assert!(matches!(error("version\": 1", "version\": 2"), EupgradeError::Format(2)));
    assert!(matches!(error("sysupgrade", "factory"), EupgradeError::NoImage));
    assert!(matches!(error("town-", "../town-"), EupgradeError::Misnamed(_)));
    assert!(matches!(error(&image.sha256, "00"), EupgradeError::Hash(_)));
    assert!(matches!(error("{", "["), EupgradeError::Json(_)));
    assert!(matches!(error("LibreMesh", &"L".repeat(70_000)), EupgradeError::Long));
}

proptest! {
    /// One bit of a manifest changes: its text is refused, or its signature no longer counts.
    #[test]
    fn a_changed_release_has_no_signature(at in 0_usize..10_000, bit in 0_u8..8) {
        let manifest = signed("1.0", &[1]);
        let mut text = manifest.to_string().into_bytes();
        let at = at % text.len();
        text[at] ^= 1 << bit;
        if let Ok(other) = Manifest::parse(&text) {
            prop_assert!(trust(&[1], 1).check(&other).is_err());
        }
    }

    #[test]
    fn any_text_is_read_or_refused(lines in prop::collection::vec(
        prop_oneof![
            Just("ncmesh release 1".to_owned()), Just("name n".into()), Just("version 1".into()),
            Just("channel c".into()), Just("replaces 0".into()), Just("---".into()),
            Just(format!("image a 1 {0} {0} f", "0".repeat(64))), Just("BRANCH=b".into()),
            Just("DATE=1970-01-01 00:00:00+00:00".into()), Just("PRIORITY=1".into()),
            Just(format!("m 1 {} 5 f", "0".repeat(64))), Just("0".repeat(128)), "[ -~]{0,20}",
        ], 0..12)) {
        let text = lines.join("\n") + "\n";
        if let Ok(manifest) = Manifest::parse(text.as_bytes()) {
            prop_assert_eq!(manifest.to_string(), text.clone());
        }
        if let Ok(manifest) = GluonManifest::parse(text.as_bytes()) {
            prop_assert_eq!(manifest.to_string(), text);
        }
    }
}
