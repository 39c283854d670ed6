//! Trees from a directory to an inbox, through restarts, and trees that lie.

use crate::config::SpaceLimits;
use crate::root::Root;
use crate::store::delivery::deliver;
use crate::store::naming::Naming;
use crate::store::placing::{Placed, place_whole};
use crate::store::reception::{Prepared, discard, prepare};
use crate::store::{FileStorage, space};
use crate::tree::format::MAGIC;
use crate::tree::pack::{Filter, PackError, Pattern, pack};
use ncmesh_engine::file::merkle::{self, MerkleTree};
use ncmesh_engine::file::{GenerationSet, Geometry, Manifest, Refusal};
use ncmesh_engine::storage::Storage;
use ncmesh_host::files::Obstacle;
use ncmesh_wire::{FlowId, NodeId};
use std::fs::{self, File, Permissions};
use std::io::Read;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use tempfile::TempDir;

const LIMITS: SpaceLimits = SpaceLimits { max_bytes: None, reserve: Some(0) };
/// A time that no file gets by itself.
const LONG_AGO: Duration = Duration::from_secs(1_000_000_000);

/// A tree that is received into an inbox.
struct Transfer {
    inbox: TempDir,
    bytes: Vec<u8>,
    manifest: Manifest,
}

impl Transfer {
    fn new(bytes: Vec<u8>, serial: u32) -> Self {
        let geometry = Geometry::new(bytes.len() as u64, 8, 100).unwrap();
        let digest = merkle::digest(bytes.as_slice(), &geometry).unwrap();
        let root = MerkleTree::new(digest.leaves, geometry.depth()).root();
        let flow = FlowId { source: NodeId(1), serial };
        let name = "photos/".into();
        let manifest = Manifest { flow, name, geometry, root, hash: digest.whole };
        Self { inbox: tempfile::tempdir().unwrap(), bytes, manifest }
    }

    /// Receives these generations. Returns what is there.
    fn receive(&self, generations: impl Iterator<Item = u32>) -> (FileStorage, GenerationSet) {
        let Manifest { flow, geometry, .. } = self.manifest;
        let mut storage = FileStorage::new(LIMITS);
        let prepared = prepare(self.inbox.path(), &self.manifest, &LIMITS, Naming::Announced);
        let Prepared::Receiving(incoming, mut have) = prepared.unwrap() else {
            panic!("a tree that was not delivered is received")
        };
        storage.receive(flow, incoming);
        for generation in generations {
            let begin = geometry.offset(generation);
            let data = &self.bytes[begin as usize..][..geometry.data_len(generation)];
            storage.write(flow, generation, begin, data, &merkle::leaf(data)).unwrap();
            have.insert(generation);
        }
        (storage, have)
    }

    fn all(&self) -> impl Iterator<Item = u32> + use<> {
        0..self.manifest.geometry.generations()
    }

    fn deliver(&self) -> Result<PathBuf, Obstacle> {
        deliver(self.inbox.path(), &self.manifest, &LIMITS)
    }
}

/// Makes a directory with files, one of them with a hole.
fn photos() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let at = |path: &str| dir.path().join(path);
    fs::create_dir_all(at("2026/may")).unwrap();
    fs::create_dir(at("empty")).unwrap();
    fs::write(at("a.jpg"), vec![1; 3000]).unwrap();
    fs::write(at("2026/may/b.raw"), vec![2; 5000]).unwrap();
    fs::write(at("2026/.hidden"), "").unwrap();
    let hole = File::create(at("2026/hole")).unwrap();
    hole.set_len(1 << 20).unwrap();
    hole.write_all_at(b"end", (1 << 20) - 3).unwrap();
    fs::set_permissions(at("a.jpg"), Permissions::from_mode(0o4777)).unwrap();
    let old = SystemTime::UNIX_EPOCH + LONG_AGO;
    File::open(at("a.jpg")).unwrap().set_modified(old).unwrap();
    File::open(at("2026")).unwrap().set_modified(old).unwrap();
    symlink("/etc/passwd", at("link")).unwrap();
    dir
}

fn packed(dir: &Path, filter: &Filter) -> Vec<u8> {
    let mut bytes = Vec::new();
    pack(&[dir.to_owned()], filter).unwrap().read_to_end(&mut bytes).unwrap();
    bytes
}

/// Returns the paths below a directory.
fn found(dir: &Path) -> Vec<String> {
    let mut paths = Vec::new();
    let mut dirs = vec![dir.to_owned()];
    while let Some(next) = dirs.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            paths.push(path.strip_prefix(dir).unwrap().display().to_string());
            if path.is_dir() {
                dirs.push(path);
            }
        }
    }
    paths.sort();
    paths
}

const ALL: [&str; 7] =
    ["2026", "2026/.hidden", "2026/hole", "2026/may", "2026/may/b.raw", "a.jpg", "empty"];

#[test]
fn a_directory_arrives_as_it_was() {
    let dir = photos();
    let tree = pack(&[dir.path().to_owned()], &Filter::default()).unwrap();
    assert_eq!(tree.left_out(), [dir.path().join("link")]);

    let transfer = Transfer::new(packed(dir.path(), &Filter::default()), 1);
    assert!(transfer.bytes.len() < 40_000, "a hole is not sent");
    drop(transfer.receive(transfer.all()));
    let path = transfer.deliver().unwrap();
    assert_eq!(path, transfer.inbox.path().join("photos"));
    assert_eq!(found(&path), ALL);
    for file in ["a.jpg", "2026/may/b.raw", "2026/.hidden", "2026/hole"] {
        assert_eq!(fs::read(path.join(file)).unwrap(), fs::read(dir.path().join(file)).unwrap());
    }

    // Times and modes are kept, except that others may not write, and nobody gets another's rights.
    let old = SystemTime::UNIX_EPOCH + LONG_AGO;
    for file in ["a.jpg", "2026"] {
        assert_eq!(fs::metadata(path.join(file)).unwrap().modified().unwrap(), old, "{file}");
    }
    assert_eq!(fs::metadata(path.join("a.jpg")).unwrap().mode() & 0o7777, 0o755);
    let hole = fs::metadata(path.join("2026/hole")).unwrap();
    assert!(hole.blocks() * 512 < 1 << 19, "{} blocks", hole.blocks());

    // The part goes once it is noted that the directory is there. Then it counts as the inbox's.
    discard(transfer.inbox.path(), transfer.manifest.flow).unwrap();
    assert_eq!(found(&transfer.inbox.path().join(".ncmesh")), ["trees"]);
    let inbox = Root::open_strict(transfer.inbox.path()).unwrap();
    let limits = SpaceLimits { max_bytes: Some(1), ..LIMITS };
    assert!(space::used(&inbox, &limits).unwrap() >= 8000);
}

#[test]
fn files_are_placed_as_soon_as_they_are_whole_and_once() {
    let dir = photos();
    let transfer = Transfer::new(packed(dir.path(), &Filter::default()), 1);
    let inbox = transfer.inbox.path();

    // The last bytes are not there, and so one file is not.
    let most = transfer.manifest.geometry.generations() - 1;
    let (mut storage, _) = transfer.receive(0..most);
    let mut grown = storage.take_grown().pop().unwrap();
    place_whole(inbox, &transfer.manifest, &grown.have, &mut grown.placed, &LIMITS).unwrap();
    let without_last: Vec<&str> = ALL.into_iter().filter(|path| *path != "a.jpg").collect();
    assert_eq!(found(&inbox.join("photos")), without_last);
    assert!(storage.take_grown().is_empty(), "somebody places");
    storage.put_placed(transfer.manifest.flow, grown.placed);
    assert!(storage.take_grown().is_empty(), "nothing has come since");

    // The user takes one away and changes one; another program takes a name. After a restart
    // nothing is written over.
    let b = inbox.join("photos/2026/may/b.raw");
    fs::write(&b, "mine").unwrap();
    fs::write(inbox.join("photos/a.jpg"), "another's").unwrap();
    drop(storage);
    drop(transfer.receive(transfer.all()));
    assert_eq!(transfer.deliver(), Ok(inbox.join("photos")));
    assert_eq!(fs::read(&b).unwrap(), b"mine");
    assert_eq!(fs::read(inbox.join("photos/2026/may/b (2).raw")).unwrap(), vec![2; 5000]);
    assert_eq!(fs::read(inbox.join("photos/a (2).jpg")).unwrap(), vec![1; 3000]);

    // A crash before it was noted finishes it again, in the same place.
    let before = found(inbox);
    assert_eq!(transfer.deliver(), Ok(inbox.join("photos")));
    assert_eq!(found(inbox), before);
    discard(inbox, transfer.manifest.flow).unwrap();

    // Another transfer gets a directory of its own, also one of the same id.
    drop(transfer.receive(transfer.all()));
    assert_eq!(transfer.deliver(), Ok(inbox.join("photos (2)")));
}

#[test]
fn patterns_choose_files() {
    let dir = photos();
    let all = |patterns: &[&str]| patterns.iter().map(|p| Pattern::new(p).unwrap()).collect();
    let paths = |include: &[&str], exclude: &[&str]| -> Vec<String> {
        let filter = Filter { include: all(include), exclude: all(exclude) };
        let transfer = Transfer::new(packed(dir.path(), &filter), 1);
        drop(transfer.receive(transfer.all()));
        found(&transfer.deliver().unwrap())
    };
    assert_eq!(paths(&["*.jpg"], &[]), ["a.jpg"]);
    assert_eq!(paths(&["*.raw"], &[]), ["2026", "2026/may", "2026/may/b.raw"]);
    assert_eq!(paths(&[], &["2026"]), ["a.jpg", "empty"]);
    assert_eq!(paths(&[], &["2026/*", "empty"]), ["2026", "a.jpg"]);
    assert_eq!(paths(&["*"], &[".*", "may"]), ["2026", "2026/hole", "a.jpg"]);

    let nothing = Filter { include: all(&["*.png"]), exclude: Vec::new() };
    let packed = pack(&[dir.path().to_owned()], &nothing);
    assert!(matches!(packed, Err(PackError::Empty)));
}

#[test]
fn several_paths_are_one_transfer() {
    let dir = photos();
    let at = |path: &str| dir.path().join(path);
    let mut bytes = Vec::new();
    let tree = pack(&[at("a.jpg"), at("2026/may")], &Filter::default());
    tree.unwrap().read_to_end(&mut bytes).unwrap();
    let transfer = Transfer::new(bytes, 1);
    drop(transfer.receive(transfer.all()));
    assert_eq!(found(&transfer.deliver().unwrap()), ["a.jpg", "may", "may/b.raw"]);

    let twice = pack(&[at("a.jpg"), at("2026/../a.jpg")], &Filter::default());
    assert!(matches!(twice, Err(PackError::SameName(name)) if name == "a.jpg"));
    let absent = pack(&[at("absent"), at("a.jpg")], &Filter::default());
    assert!(matches!(absent, Err(PackError::Unreadable { .. })));
}

#[test]
fn a_file_that_becomes_shorter_ends_the_packing() {
    let dir = photos();
    let mut tree = pack(&[dir.path().to_owned()], &Filter::default()).unwrap();
    fs::write(dir.path().join("a.jpg"), "short").unwrap();
    let error = tree.read_to_end(&mut Vec::new()).unwrap_err().to_string();
    assert!(error.contains("a.jpg: it became shorter"), "{error}");
}

/// Returns a tree with this index and these bytes behind it.
fn forged(index: &str, contents: &[u8]) -> Vec<u8> {
    [MAGIC, &(index.len() as u32).to_be_bytes(), index.as_bytes(), contents].concat()
}

fn entry(path: &str, file: &str) -> String {
    format!(r#"{{"path":{path:?},"mode":511,"modified":null,"file":{file}}}"#)
}

#[test]
fn trees_that_lie_place_nothing_outside() {
    let one = r#"{"size":1,"extents":[{"at":0,"len":1}]}"#;
    let index = |entries: &[String]| format!(r#"{{"entries":[{}]}}"#, entries.join(","));
    let bad = [
        forged(&index(&[entry("../out", one)]), b"x"),
        forged(&index(&[entry("/out", one)]), b"x"),
        forged(&index(&[entry("a/../../out", one)]), b"x"),
        forged(&index(&[entry(".", "null")]), b""),
        forged(&index(&[entry("", one)]), b"x"),
        forged(&index(&[entry("a/b", one)]), b"x"),
        forged(&index(&[entry("a", one), entry("a", one)]), b"xy"),
        forged(&index(&[entry("a", one), entry("a/b", one)]), b"xy"),
        forged(&index(&[entry(&"a/".repeat(40), one)]), b"x"),
        forged(&index(&[entry("a", one)]), b"xy"),
        forged(&index(&[entry("a", one)]), b""),
        forged(&index(&[entry("a", r#"{"size":1,"extents":[{"at":1,"len":1}]}"#)]), b"x"),
        forged(
            &index(&[entry("a", r#"{"size":2,"extents":[{"at":1,"len":1},{"at":0,"len":1}]}"#)]),
            b"xy",
        ),
        forged(&index(&[entry("a", &format!(r#"{{"size":{},"extents":[]}}"#, u64::MAX))]), b""),
        forged(
            &index(&[entry("a", r#"{"size":9,"extents":[{"at":2,"len":18446744073709551615}]}"#)]),
            b"x",
        ),
        forged(r#"{"entries":[],"more":1}"#, b""),
        forged("{", b""),
        [MAGIC, &u32::MAX.to_be_bytes()].concat(),
        b"ncmesh".to_vec(),
        vec![0; 1000],
    ];
    for bytes in bad {
        let shown = String::from_utf8_lossy(&bytes).into_owned();
        let transfer = Transfer::new(bytes, 1);
        drop(transfer.receive(transfer.all()));
        let refused = Err(Obstacle::Refused(Refusal::Corrupt));
        assert_eq!(transfer.deliver(), refused, "{shown}");
        let around: Vec<_> = fs::read_dir(transfer.inbox.path()).unwrap().collect();
        assert_eq!(around.len(), 1, "only the parts are there: {shown}");
    }
}

#[test]
fn nothing_is_placed_through_a_link() {
    let dir = photos();
    let transfer = Transfer::new(packed(dir.path(), &Filter::default()), 1);
    let inbox = transfer.inbox.path();
    let outside = tempfile::tempdir().unwrap();

    // Somebody who may write to the inbox puts a link in the place of a directory.
    let most = transfer.manifest.geometry.generations() - 1;
    let (storage, have) = transfer.receive(0..most);
    let mut placed = Placed::default();
    place_whole(inbox, &transfer.manifest, &have, &mut placed, &LIMITS).unwrap();
    drop(storage);
    fs::remove_dir_all(inbox.join("photos/2026")).unwrap();
    symlink(outside.path(), inbox.join("photos/2026")).unwrap();
    drop(transfer.receive(transfer.all()));
    assert!(transfer.deliver().is_err());
    assert_eq!(found(outside.path()), [""; 0]);
}
