//! Arbitrary manifests of releases, of Gluon and of LibreMesh, and packets of roll-outs: each is
//! read or refused, and what is read is written as it was.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ncmesh_fleet::eupgrade::Announcement;
use ncmesh_fleet::gluon::GluonManifest;
use ncmesh_fleet::rollout::Packet;
use ncmesh_fleet::usign::UsignKey;
use ncmesh_fleet::{Manifest, Station};

fuzz_target!(|data: &[u8]| {
    if let Ok(manifest) = Manifest::parse(data) {
        let written = manifest.to_string();
        assert_eq!(Manifest::parse(written.as_bytes()), Ok(manifest.clone()));
        // The signed part has one form; only lines of signatures may change their order.
        assert!(data.starts_with(manifest.release().statement().as_bytes()));
        assert_eq!(Station::default().judge(&manifest), Ok(None));
    }
    if let Ok(manifest) = GluonManifest::parse(data) {
        assert_eq!(manifest.to_string().as_bytes(), data);
        assert!(!manifest.images().is_empty());
    }
    if let Ok(announcement) = Announcement::parse(data) {
        let written = announcement.to_json().expect("it was JSON");
        assert_eq!(Announcement::parse(written.as_bytes()).ok(), Some(announcement));
    }
    if let Ok(packet @ Packet::Order(_)) = Packet::parse(data) {
        assert_eq!(packet.to_bytes(), data);
    }
    if let Ok(key) = UsignKey::parse(data) {
        let _ = key.check(b"contents", data);
    }
});
