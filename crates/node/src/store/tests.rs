//! Receptions through crashes: whatever is left of the journal and the part file, no generation is
//! claimed whose data is missing.

mod trees;

use super::delivery::deliver;
use super::naming::Naming;
use super::parts::collect;
use super::places::{DIR, Places};
use super::reception::{Prepared, check_inbox, discard, prepare};
use super::*;
use ncmesh_engine::file::merkle::{self, MerkleTree};
use ncmesh_engine::file::{GenerationSet, Geometry, Manifest, Refusal};
use ncmesh_host::files::Obstacle;
use ncmesh_wire::NodeId;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::time::{Duration, SystemTime};
use tempfile::TempDir;

/// No limits on space.
const LIMITS: SpaceLimits = SpaceLimits { max_bytes: None, reserve: Some(0) };

/// A file with its manifest, and an inbox to receive it in.
struct Fixture {
    inbox: TempDir,
    data: Vec<u8>,
    manifest: Manifest,
}

impl Fixture {
    /// Returns another file of the same contents in the same inbox, not yet announced.
    fn another(&self, serial: u32) -> Manifest {
        let flow = FlowId { serial, ..self.manifest.flow };
        Manifest { flow, ..self.manifest.clone() }
    }

    /// Makes a file of `length` bytes in generations of about 500.
    fn new(length: usize) -> Self {
        let data: Vec<u8> = (0..length).map(|i| (i * 7 + i / 251) as u8).collect();
        let geometry = Geometry::new(length as u64, 8, 100).unwrap();
        let digest = merkle::digest(data.as_slice(), &geometry).unwrap();
        let root = MerkleTree::new(digest.leaves, geometry.depth()).root();
        let flow = FlowId { source: NodeId(1), serial: 5 };
        let manifest =
            Manifest { flow, name: "file.bin".into(), geometry, root, hash: digest.whole };
        Self { inbox: tempfile::tempdir().unwrap(), data, manifest }
    }

    fn places(&self) -> Places {
        let Places { part, journal, aside } = Places::new(self.manifest.flow);
        let inbox = self.inbox.path();
        Places { part: inbox.join(part), journal: inbox.join(journal), aside: inbox.join(aside) }
    }

    fn generation(&self, generation: u32) -> &[u8] {
        let start = self.manifest.geometry.offset(generation) as usize;
        &self.data[start..start + self.manifest.geometry.data_len(generation)]
    }

    fn prepare(&self) -> (FileStorage, GenerationSet) {
        match prepare(self.inbox.path(), &self.manifest, &LIMITS, Naming::Announced) {
            Ok(Prepared::Receiving(incoming, have)) => {
                let mut storage = FileStorage::new(LIMITS);
                storage.receive(self.manifest.flow, incoming);
                (storage, have)
            }
            other => panic!("{other:?}"),
        }
    }

    fn write(&self, storage: &mut FileStorage, generation: u32) {
        let data = self.generation(generation);
        let offset = self.manifest.geometry.offset(generation);
        storage.write(self.manifest.flow, generation, offset, data, &merkle::leaf(data)).unwrap();
    }

    fn write_all(&self, storage: &mut FileStorage) {
        (0..self.manifest.geometry.generations())
            .for_each(|generation| self.write(storage, generation));
    }

    /// Resumes, checks that claimed generations are there, and returns them.
    fn resume(&self) -> GenerationSet {
        let (_, have) = self.prepare();
        let part = fs::read(self.places().part).unwrap();
        assert_eq!(part.len(), self.data.len());
        for generation in have.iter() {
            let start = self.manifest.geometry.offset(generation) as usize;
            let there = &part[start..start + self.generation(generation).len()];
            assert_eq!(there, self.generation(generation), "generation {generation} is not there");
        }
        have
    }
}

#[test]
fn a_file_is_received_resumed_and_named() {
    let fixture = Fixture::new(3000);
    let (mut storage, have) = fixture.prepare();
    assert!(have.is_empty());
    fixture.write(&mut storage, 2);
    fixture.write(&mut storage, 0);
    drop(storage);
    let (mut storage, have) = fixture.prepare();
    assert_eq!(have.iter().collect::<Vec<_>>(), [0, 2]);
    fixture.write_all(&mut storage);
    let path = deliver(fixture.inbox.path(), &fixture.manifest, &LIMITS).unwrap();
    assert_eq!(path, fixture.inbox.path().join("file.bin"));
    assert_eq!(fs::read(path).unwrap(), fixture.data);
    discard(fixture.inbox.path(), fixture.manifest.flow).unwrap();
    assert_eq!(fs::read_dir(fixture.inbox.path().join(DIR)).unwrap().count(), 0);
}

/// A member announces another file under the id of one that is being received.
#[test]
fn another_file_of_the_same_id_does_not_replace_what_was_received() {
    let fixture = Fixture::new(3000);
    let prepare_other = |root| {
        let other = Manifest { root, ..fixture.manifest.clone() };
        prepare(fixture.inbox.path(), &other, &LIMITS, Naming::Announced)
    };
    let (mut storage, _) = fixture.prepare();
    // Nothing is lost yet.
    assert!(matches!(prepare_other([1; 32]), Ok(Prepared::Receiving(..))));
    let (mut again, _) = fixture.prepare();
    fixture.write(&mut again, 2);
    fixture.write(&mut again, 0);
    drop(again);
    storage.close(fixture.manifest.flow);
    let refused = prepare_other([2; 32]).unwrap_err();
    assert!(matches!(&refused, Obstacle::Temporary(why) if why.contains("another file")));
    assert_eq!(fixture.resume().iter().collect::<Vec<_>>(), [0, 2]);
}

#[test]
fn an_empty_file_needs_no_data() {
    let fixture = Fixture::new(0);
    let (_, have) = fixture.prepare();
    assert!(have.is_full());
    let path = deliver(fixture.inbox.path(), &fixture.manifest, &LIMITS).unwrap();
    assert_eq!(fs::read(path).unwrap(), b"");
}

#[test]
fn a_journal_cut_anywhere_claims_only_what_is_there() {
    let fixture = Fixture::new(2600);
    let (mut storage, _) = fixture.prepare();
    fixture.write_all(&mut storage);
    let whole = fs::read(fixture.places().journal).unwrap();
    let generations = fixture.manifest.geometry.generations();
    let head = whole.len() - 44 * generations as usize;
    for length in 0..=whole.len() {
        fs::write(fixture.places().journal, &whole[..length]).unwrap();
        let whole_records = length.saturating_sub(head) / 44;
        assert_eq!(fixture.resume().count() as usize, whole_records, "cut at {length}");
        // A record written after a torn one was cut off is read again.
        let (mut storage, _) = fixture.prepare();
        fixture.write(&mut storage, generations - 1);
        assert!(fixture.resume().contains(generations - 1), "cut at {length}");
    }
}

#[test]
fn a_part_cut_anywhere_is_made_whole_again_and_claims_nothing_lost() {
    let fixture = Fixture::new(1300);
    let (mut storage, _) = fixture.prepare();
    fixture.write_all(&mut storage);
    let journal = fs::read(fixture.places().journal).unwrap();
    for length in (0..fixture.data.len()).step_by(13) {
        fs::write(fixture.places().journal, &journal).unwrap();
        fs::write(fixture.places().part, &fixture.data[..length]).unwrap();
        let kept = length / fixture.generation(0).len();
        assert_eq!(fixture.resume().count() as usize, kept, "cut at {length}");
    }
    fs::remove_file(fixture.places().part).unwrap();
    assert!(fixture.resume().is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn damage_is_never_taken_for_data(
        journal_at in any::<prop::sample::Index>(),
        part_at in any::<prop::sample::Index>(),
        flip in 1u8..,
    ) {
        let fixture = Fixture::new(2600);
        let (mut storage, _) = fixture.prepare();
        fixture.write_all(&mut storage);
        let places = fixture.places();
        for (path, at) in [(places.journal, journal_at), (places.part, part_at)] {
            let mut bytes = fs::read(&path).unwrap();
            let at = at.index(bytes.len());
            bytes[at] ^= flip;
            fs::write(&path, bytes).unwrap();
        }
        let have = fixture.resume();
        prop_assert!(have.count() < fixture.manifest.geometry.generations());
    }
}

#[test]
fn another_file_under_the_same_flow_starts_afresh() {
    let fixture = Fixture::new(2600);
    let (_, have) = fixture.prepare();
    assert!(have.is_empty());
    let mut other = Fixture::new(2500);
    other.inbox = fixture.inbox;
    assert!(other.resume().is_empty());
}

#[test]
fn a_stop_right_after_the_rename_loses_nothing() {
    let fixture = Fixture::new(2600);
    let (mut storage, _) = fixture.prepare();
    fixture.write_all(&mut storage);
    let path = deliver(fixture.inbox.path(), &fixture.manifest, &LIMITS).unwrap();
    // State after the rename: the journal is still there, the part file is not.
    let again = prepare(fixture.inbox.path(), &fixture.manifest, &LIMITS, Naming::Announced);
    assert!(matches!(again, Ok(Prepared::Delivered)), "{again:?}");
    assert_eq!(deliver(fixture.inbox.path(), &fixture.manifest, &LIMITS), Ok(path));
    assert!(!fixture.inbox.path().join("file (2).bin").exists());
}

#[test]
fn a_stop_right_before_the_rename_loses_nothing() {
    let fixture = Fixture::new(2600);
    let (mut storage, _) = fixture.prepare();
    fixture.write_all(&mut storage);
    drop(storage);
    assert!(fixture.resume().is_full());
    assert!(deliver(fixture.inbox.path(), &fixture.manifest, &LIMITS).is_ok());
}

#[test]
fn other_files_are_never_overwritten_and_the_same_is_not_kept_twice() {
    let fixture = Fixture::new(2600);
    let taken = fixture.inbox.path().join("file.bin");
    fs::write(&taken, "mine").unwrap();
    for _ in 0..2 {
        let (mut storage, _) = fixture.prepare();
        fixture.write_all(&mut storage);
        let path = deliver(fixture.inbox.path(), &fixture.manifest, &LIMITS).unwrap();
        assert_eq!(path, fixture.inbox.path().join("file (2).bin"));
        discard(fixture.inbox.path(), fixture.manifest.flow).unwrap();
    }
    assert_eq!(fs::read(taken).unwrap(), b"mine");
    assert!(!fixture.inbox.path().join("file (3).bin").exists());
}

#[test]
fn a_file_that_is_not_what_was_announced_is_not_delivered() {
    let fixture = Fixture::new(2600);
    let (mut storage, _) = fixture.prepare();
    fixture.write_all(&mut storage);
    let mut bytes = fixture.data.clone();
    bytes[1234] ^= 1;
    fs::write(fixture.places().part, bytes).unwrap();
    assert_eq!(
        deliver(fixture.inbox.path(), &fixture.manifest, &LIMITS),
        Err(Obstacle::Refused(Refusal::Corrupt))
    );
    assert!(!fixture.inbox.path().join("file.bin").exists());
}

#[test]
fn a_place_that_cannot_be_written_is_refused() {
    let fixture = Fixture::new(100);
    fs::write(fixture.inbox.path().join(".ncmesh"), "no directory").unwrap();
    let refused =
        prepare(fixture.inbox.path(), &fixture.manifest, &LIMITS, Naming::Announced).unwrap_err();
    assert_eq!(refused, Obstacle::Refused(Refusal::Unwritable));
}

#[test]
fn a_source_that_shrank_cannot_be_read() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("file");
    fs::write(&path, "0123456789").unwrap();
    let flow = FlowId { source: NodeId(1), serial: 1 };
    let mut storage = FileStorage::new(LIMITS);
    let mut four = [0; 4];
    assert_eq!(storage.read(flow, 0, &mut four), Err(StorageError::Unreadable));
    storage.provide(flow, File::open(&path).unwrap());
    assert_eq!(storage.read(flow, 6, &mut four), Ok(()));
    assert_eq!(&four, b"6789");
    File::options().write(true).open(&path).unwrap().set_len(8).unwrap();
    assert_eq!(storage.read(flow, 6, &mut four), Err(StorageError::Unreadable));
}

#[test]
fn links_in_the_inbox_lead_nowhere() {
    let fixture = Fixture::new(2600);
    let beside = tempfile::tempdir().unwrap();
    let victim = beside.path().join("victim");
    let untouched = || assert_eq!(fs::read(&victim).unwrap(), b"untouched");
    fs::write(&victim, "untouched").unwrap();
    let hidden = fixture.inbox.path().join(DIR);
    fs::create_dir(&hidden).unwrap();

    // The probe takes the place of a link, and the inbox is usable.
    symlink(&victim, hidden.join("probe")).unwrap();
    check_inbox(fixture.inbox.path()).unwrap();
    untouched();

    // A part or journal that is a link is not written, and the file is refused.
    let Places { part, journal, .. } = fixture.places();
    let (mut storage, _) = fixture.prepare();
    fixture.write_all(&mut storage);
    drop(storage);
    for file in [&part, &journal] {
        let aside = hidden.join("aside");
        fs::rename(file, &aside).unwrap();
        symlink(&victim, file).unwrap();
        assert_eq!(
            prepare(fixture.inbox.path(), &fixture.manifest, &LIMITS, Naming::Announced)
                .unwrap_err(),
            Obstacle::Refused(Refusal::Unwritable)
        );
        untouched();
        fs::remove_file(file).unwrap();
        fs::hard_link(&victim, file).unwrap();
        assert_eq!(
            prepare(fixture.inbox.path(), &fixture.manifest, &LIMITS, Naming::Announced)
                .unwrap_err(),
            Obstacle::Refused(Refusal::Unwritable)
        );
        untouched();
        fs::rename(&aside, file).unwrap();
    }

    // A link under the file's own name is left alone, and so is its target.
    symlink(&victim, fixture.inbox.path().join("file.bin")).unwrap();
    assert!(fixture.resume().is_full());
    let path = deliver(fixture.inbox.path(), &fixture.manifest, &LIMITS).unwrap();
    assert_eq!(path, fixture.inbox.path().join("file (2).bin"));
    untouched();

    // The directory of files under way may be a link too.
    fs::remove_dir_all(&hidden).unwrap();
    symlink(beside.path(), &hidden).unwrap();
    assert!(check_inbox(fixture.inbox.path()).is_err());
    let refused =
        prepare(fixture.inbox.path(), &fixture.manifest, &LIMITS, Naming::Announced).unwrap_err();
    assert_eq!(refused, Obstacle::Refused(Refusal::Unwritable));
    assert_eq!(fs::read_dir(beside.path()).unwrap().count(), 1);
}

#[test]
fn announcements_claim_no_space_and_generations_no_more_than_is_allowed() {
    let fixture = Fixture::new(300_000);
    let limits = SpaceLimits { max_bytes: Some(1_000_000), reserve: Some(0) };
    let mut storage = FileStorage::new(limits);
    for serial in 0..60 {
        let manifest = fixture.another(serial);
        match prepare(fixture.inbox.path(), &manifest, &limits, Naming::Announced) {
            Ok(Prepared::Receiving(incoming, _)) => storage.receive(manifest.flow, incoming),
            other => panic!("file {serial}: {other:?}"),
        }
    }
    let write = |storage: &mut FileStorage, serial, generation| {
        let flow = fixture.another(serial).flow;
        let data = fixture.generation(generation);
        let offset = fixture.manifest.geometry.offset(generation);
        storage.write(flow, generation, offset, data, &merkle::leaf(data))
    };
    let generations = fixture.manifest.geometry.generations();
    for serial in [7, 8] {
        let written =
            (0..generations).try_for_each(|generation| write(&mut storage, serial, generation));
        assert_eq!(written, Ok(()), "file {serial}");
    }
    // The journals take a block each. What is left of the limit is less than a third file, and no
    // announcement holds any of it.
    let full = (0..generations).find(|generation| write(&mut storage, 9, *generation).is_err());
    let least = generations / 20;
    assert!(full.is_some_and(|generation| generation > least), "{full:?} of {generations}");
    assert_eq!(write(&mut storage, 10, 0), Err(StorageError::NoSpace));
    let refused = prepare(fixture.inbox.path(), &fixture.another(99), &limits, Naming::Announced);
    assert_eq!(refused.unwrap_err(), Obstacle::Refused(Refusal::NoSpace));

    let reserve = SpaceLimits { max_bytes: None, reserve: Some(u64::MAX) };
    let refused = prepare(fixture.inbox.path(), &fixture.another(99), &reserve, Naming::Announced);
    assert_eq!(refused.unwrap_err(), Obstacle::Refused(Refusal::NoSpace));
}

#[test]
fn parts_are_kept_while_they_are_young_and_hold_something() {
    let fixture = Fixture::new(2600);
    let inbox = fixture.inbox.path();
    let day = Duration::from_secs(24 * 3600);
    let kept = |open: &[FlowId], now| -> Vec<(FlowId, u64)> {
        let open: BTreeSet<FlowId> = open.iter().copied().collect();
        let parts = collect(inbox, &open, day, now).unwrap();
        parts.iter().map(|part| (part.manifest.flow, part.bytes)).collect()
    };
    assert_eq!(kept(&[], SystemTime::now()), [], "an inbox that was never used");

    // One with a generation, one without, one that is not open any more, one without a journal.
    let (mut storage, _) = fixture.prepare();
    fixture.write(&mut storage, 1);
    let flow = fixture.manifest.flow;
    let empty = fixture.another(6);
    drop(prepare(inbox, &empty, &LIMITS, Naming::Announced).unwrap());
    fs::write(inbox.join(DIR).join("7-00000007.part"), "stray").unwrap();
    fs::write(inbox.join(DIR).join("notes"), "mine").unwrap();

    let later = SystemTime::now() + 2 * day;
    assert_eq!(kept(&[flow], later), [], "it is being received");
    assert!(!fixture.inbox.path().join(Places::new(empty.flow).part).exists());
    assert!(fixture.places().part.exists());
    let bytes = fixture.manifest.geometry.data_len(0) as u64;
    assert_eq!(kept(&[], SystemTime::now()), [(flow, bytes)]);
    // Its journal is still open, so it is not removed, however old it is.
    assert_eq!(kept(&[], later), []);
    assert!(fixture.places().part.exists());
    drop(storage);
    assert_eq!(kept(&[], SystemTime::now()), [(flow, bytes)]);
    assert_eq!(kept(&[], later), []);
    let left: Vec<_> = fs::read_dir(inbox.join(DIR)).unwrap().map(|e| e.unwrap().path()).collect();
    assert_eq!(left, [inbox.join(DIR).join("notes")]);
}

#[test]
fn what_may_pass_is_no_reason_to_refuse() {
    let error = |errno: Errno| io::Error::from_raw_os_error(errno.raw_os_error());
    for errno in [Errno::MFILE, Errno::NFILE, Errno::IO, Errno::NOMEM, Errno::BUSY, Errno::INTR] {
        for is_there in [false, true] {
            let found = obstacle(&error(errno), is_there);
            assert!(matches!(found, Obstacle::Temporary(_)), "{errno:?}: {found:?}");
        }
    }
    assert!(matches!(obstacle(&error(Errno::NOSPC), true), Obstacle::Temporary(_)));
    for (errno, why) in [(Errno::NOSPC, Refusal::NoSpace), (Errno::ACCESS, Refusal::Unwritable)] {
        assert_eq!(obstacle(&error(errno), false), Obstacle::Refused(why));
    }
}

#[test]
fn a_file_that_was_begun_waits_for_space_and_keeps_what_it_has() {
    let fixture = Fixture::new(2600);
    let (mut storage, _) = fixture.prepare();
    fixture.write(&mut storage, 1);
    drop(storage);
    let full = SpaceLimits { max_bytes: Some(0), reserve: Some(0) };
    let waits =
        prepare(fixture.inbox.path(), &fixture.manifest, &full, Naming::Announced).unwrap_err();
    let Obstacle::Temporary(problem) = waits else { panic!("{waits:?}") };
    assert!(problem.contains("max_bytes"), "{problem}");
    assert_eq!(fixture.resume().iter().collect::<Vec<_>>(), [1]);
}

/// A name of 256 bytes stands for every name that a file system refuses: all refuse that one.
#[test]
fn a_name_that_the_file_system_refuses_is_refused_at_the_announcement_or_changed() {
    let mut fixture = Fixture::new(1300);
    fixture.manifest.name = format!("{}.bin", "n".repeat(252));
    let refused =
        prepare(fixture.inbox.path(), &fixture.manifest, &LIMITS, Naming::Announced).unwrap_err();
    assert_eq!(refused, Obstacle::Refused(Refusal::BadName));
    let Places { part, journal, .. } = fixture.places();
    assert!(!part.exists() && !journal.exists(), "nothing is kept");

    let receive = |fixture: &Fixture| {
        let place =
            prepare(fixture.inbox.path(), &fixture.manifest, &LIMITS, Naming::Adapted).unwrap();
        let Prepared::Receiving(incoming, _) = place else { panic!("{place:?}") };
        let mut storage = FileStorage::new(LIMITS);
        storage.receive(fixture.manifest.flow, incoming);
        fixture.write_all(&mut storage);
        drop(storage);
        deliver(fixture.inbox.path(), &fixture.manifest, &LIMITS).unwrap()
    };
    let path = receive(&fixture);
    let other = format!("{}.bin", "n".repeat(96));
    assert_eq!(path, fixture.inbox.path().join(&other));
    assert_eq!(fs::read(&path).unwrap(), fixture.data);

    // The other name may be taken, and a restart finds the file under it.
    assert_eq!(deliver(fixture.inbox.path(), &fixture.manifest, &LIMITS), Ok(path.clone()));
    fs::write(&path, "another").unwrap();
    let numbered = format!("{} (2).bin", "n".repeat(96));
    assert_eq!(receive(&fixture), fixture.inbox.path().join(numbered));
}
