//! Keys, certificates and revocations: what is signed counts, and nothing else.

#![allow(clippy::unwrap_used, reason = "tests")]

use ncmesh_wire::identity::{
    Authority, Certificate, LONGEST_AHEAD, MAX_REVOKED, PublicKey, Purpose, Rejection, Revocations,
    SecretKey, Signature, Subject, Validity,
};
use ncmesh_wire::prefix::Prefixes;
use ncmesh_wire::{Malformed, NodeId};
use proptest::prelude::*;
use zeroize::Zeroizing;

const DAY: u64 = 86_400;
/// A date in 2026, seconds since 1970.
const TODAY: u64 = 1_790_000_000;

fn key(seed: u8) -> SecretKey {
    SecretKey::new(&Zeroizing::new([seed; 32]))
}

fn subject(node: u16) -> Subject {
    let prefixes = Prefixes(vec!["10.7.0.0/16".parse().unwrap(), "fd00::/8".parse().unwrap()]);
    Subject { node: NodeId(node), key: key(node as u8).public(), name: "gate".into(), prefixes }
}

fn certificate(network: &SecretKey, serial: u32) -> Certificate {
    let validity = Validity { serial, issued: TODAY, expires: TODAY + 30 * DAY };
    Certificate::issue(network, validity, subject(7))
}

fn written(certificate: &Certificate) -> Vec<u8> {
    let mut out = Vec::new();
    certificate.write(&mut out);
    out
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// RFC 8032, 7.1, test 1: the key.
#[test]
fn a_public_key_is_that_of_the_rfc() {
    let secret = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60";
    let secret: SecretKey = secret.parse().unwrap();
    let public = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";
    assert_eq!(secret.public().to_string(), public);
    assert_eq!(public.parse(), Ok(secret.public()));
    assert_eq!(secret.public().fingerprint(), "d75a-9801-82b1-0ab7");
    assert_eq!(format!("{secret:?}"), "SecretKey(..)");
}

#[test]
fn texts_that_are_no_keys_are_refused() {
    let point_of_small_order = format!("01{}", "00".repeat(31));
    for bad in ["", "12", &"g0".repeat(32), &point_of_small_order, &"ff".repeat(32)] {
        assert!(bad.parse::<PublicKey>().is_err(), "{bad}");
    }
    assert!("d75a".parse::<SecretKey>().is_err());
}

/// The golden vectors of the wire format.
#[test]
fn golden_certificate_and_revocations() {
    let network = key(1);
    let certificate = certificate(&network, 3);
    assert_eq!(hex(&written(&certificate)), CERTIFICATE);
    assert_eq!(Certificate::parse(&written(&certificate)), Ok(certificate));
    let list = Revocations::issue(&network, 2, TODAY, vec![1, 3]);
    let mut out = Vec::new();
    list.write(&mut out);
    assert_eq!(hex(&out), REVOCATIONS);
    assert_eq!(Revocations::parse(&out), Ok(list));
}

const CERTIFICATE: &str = "\
    8a88e3dd7409f19500000003000000006ab13b80000000006ad8c8800007ea4a6c63e29c520abef5507b132e\
    c5f9954776aebebe7b92421eea691446d22c04676174650101100a07000008fd000000000000000000000000\
    000000d250337895b15701275207cf129788f505a111e4903f9ec30665dd8e93ffcae2087257c6bc2b4a6a5c\
    a100e2c154cf3b9fbcf9b0f468c125e9ba061a4dd5cf01";

const REVOCATIONS: &str = "\
    8a88e3dd7409f19500000002000000006ab13b80000200000001000000039ea983b00c42be62740361c2c5e7\
    e230bc08f21246f261c9a41531706f4190b858f2a7f6c649bd55d0e20100eef24d0cdc5b9135b838dd9f5b80\
    ffb6cfe60502";

#[test]
fn a_certificate_counts_in_its_network_until_it_ends_or_is_revoked() {
    let network = key(1);
    let mut authority = Authority::new([network.public()]);
    let good = certificate(&network, 3);
    assert_eq!(authority.admit(&good, None), Ok(()));
    let other = certificate(&key(2), 3);
    assert_eq!(authority.admit(&other, None), Err(Rejection::OtherNetwork));
    let forged = Certificate { name: "other".into(), ..good.clone() };
    assert_eq!(authority.admit(&forged, None), Err(Rejection::Signature));
    assert_eq!(authority.admit(&good, Some(TODAY + 30 * DAY)), Err(Rejection::Expired));

    let list = Revocations::issue(&network, 1, TODAY, vec![3]);
    assert_eq!(authority.revoke(list.clone()), Ok(()));
    assert_eq!(authority.admit(&good, None), Err(Rejection::Revoked));
    // An older list, or the same, brings no certificate back.
    let older = Revocations::issue(&network, 1, TODAY + DAY, vec![]);
    assert_eq!(authority.revoke(older), Err(Rejection::Old));
    let stranger = Revocations::issue(&key(2), 9, TODAY, vec![]);
    assert_eq!(authority.revoke(stranger), Err(Rejection::OtherNetwork));
    let forged = Revocations { number: 9, serials: vec![], ..list };
    assert_eq!(authority.revoke(forged), Err(Rejection::Signature));
    assert_eq!(authority.is_valid(&good, None), Err(Rejection::Revoked));
    assert_eq!(authority.admit(&certificate(&network, 4), None), Ok(()));
}

#[test]
fn two_networks_count_during_a_change_of_the_key() {
    let mut authority = Authority::new([key(1).public(), key(2).public(), key(3).public()]);
    assert_eq!(authority.admit(&certificate(&key(1), 3), None), Ok(()));
    assert_eq!(authority.admit(&certificate(&key(2), 3), None), Ok(()));
    assert_eq!(authority.admit(&certificate(&key(3), 3), None), Err(Rejection::OtherNetwork));
    // Each network revokes its own.
    authority.revoke(Revocations::issue(&key(1), 1, TODAY, vec![3])).unwrap();
    assert_eq!(authority.admit(&certificate(&key(1), 3), None), Err(Rejection::Revoked));
    assert_eq!(authority.admit(&certificate(&key(2), 3), None), Ok(()));
}

/// Routers have clocks that begin at 1970, and some begin anywhere.
#[test]
fn a_clock_that_cannot_be_right_changes_nothing() {
    let network = key(1);
    let validity = Validity { serial: 5, issued: TODAY, expires: TODAY + DAY };
    let short = Certificate::issue(&network, validity, subject(7));
    let validity = Validity { serial: 6, issued: TODAY + 2 * DAY, expires: TODAY + 9 * DAY };
    let later = Certificate::issue(&network, validity, subject(8));
    for clock in [None, Some(0), Some(TODAY - DAY), Some(TODAY + 10 * 365 * DAY), Some(u64::MAX)] {
        let mut authority = Authority::new([network.public()]);
        assert_eq!(authority.admit(&short, clock), Ok(()), "{clock:?}");
        assert_eq!(authority.time(clock), TODAY);
        // A node without a clock learns from what was signed later that time has passed.
        assert_eq!(authority.admit(&later, clock), Ok(()));
        assert_eq!(authority.is_valid(&short, clock), Err(Rejection::Expired), "{clock:?}");
    }
    let mut authority = Authority::new([network.public()]);
    let clock = Some(TODAY + LONGEST_AHEAD);
    assert_eq!(authority.admit(&short, clock), Err(Rejection::Expired));
}

#[test]
fn a_signature_is_for_one_purpose_only() {
    let key = key(1);
    let signature = key.sign(Purpose::Certificate, b"abc");
    assert!(key.public().has_signed(Purpose::Certificate, b"abc", &signature));
    assert!(!key.public().has_signed(Purpose::Revocations, b"abc", &signature));
    assert!(!key.public().has_signed(Purpose::LinkState, b"abc", &signature));
    assert!(!key.public().has_signed(Purpose::Certificate, b"abd", &signature));
    assert!(!key.public().has_signed(Purpose::Certificate, b"abc", &Signature([0; 64])));
}

#[test]
fn a_node_may_announce_parts_of_what_it_was_given() {
    let certificate = certificate(&key(1), 1);
    for (prefix, may) in [
        ("10.7.0.0/16", true),
        ("10.7.3.4/32", true),
        ("10.0.0.0/8", false),
        ("0.0.0.0/1", false),
        ("fd01::/64", true),
        ("::/0", false),
    ] {
        assert_eq!(certificate.permits(&prefix.parse().unwrap()), may, "{prefix}");
    }
}

#[test]
fn a_full_list_fits_into_a_frame() {
    let list = Revocations::issue(&key(1), 1, TODAY, (0..MAX_REVOKED as u32).collect());
    let mut out = Vec::new();
    list.write(&mut out);
    assert!(out.len() <= 1_400, "{}", out.len());
    assert_eq!(Revocations::parse(&out), Ok(list));
    // One more is malformed.
    out[20..22].copy_from_slice(&(MAX_REVOKED as u16 + 1).to_be_bytes());
    out.extend([0; 4]);
    assert_eq!(Revocations::parse(&out), Err(Malformed));
}

proptest! {
    /// Whatever bit of a certificate changes, it is malformed or does not count.
    #[test]
    fn a_changed_certificate_does_not_count(at in 0usize..1000, bit in 0u8..8) {
        let network = key(1);
        let mut bytes = written(&certificate(&network, 3));
        let at = at % bytes.len();
        bytes[at] ^= 1 << bit;
        if let Ok(changed) = Certificate::parse(&bytes) {
            // Bits beyond the length of a prefix say nothing.
            let is_same = changed == certificate(&network, 3);
            let admitted = Authority::new([network.public()]).admit(&changed, None).is_ok();
            prop_assert_eq!(admitted, is_same);
        }
    }

    #[test]
    fn random_bytes_are_no_certificate(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let mut authority = Authority::new([key(1).public()]);
        if let Ok(certificate) = Certificate::parse(&bytes) {
            prop_assert!(authority.admit(&certificate, None).is_err());
            prop_assert!(written(&certificate).len() == bytes.len());
        }
        if let Ok(list) = Revocations::parse(&bytes) {
            prop_assert!(authority.revoke(list).is_err());
        }
    }
}
