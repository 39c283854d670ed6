//! Identity of a node on disk: its key, its certificate, and the keys of others.
//!
//! | file in the state directory | contents |
//! | --- | --- |
//! | `identity` | secret key, 64 hexadecimal digits |
//! | `certificate` | certificate of this node, in hexadecimal digits |
//! | `pins` | a line for each node: id, public key, name |
//! | `certificates`, `revocations` | those known of the network, a line each |

use crate::config::{NodeConfig, TrustSettings};
use crate::state::StateDir;
use ncmesh_engine::name::is_node_name;
use ncmesh_stack::Stack;
use ncmesh_stack::trust::{FirstUse, Membership, Pin, TrustConfig, TrustMode};
use ncmesh_wire::NodeId;
use ncmesh_wire::hex;
use ncmesh_wire::identity::{Authority, Certificate, Rejection, Revocations, SecretKey};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// Name of the file with the secret key.
const IDENTITY: &str = "identity";
/// Length of the longest file read, bytes: a line for each of 20,000 nodes.
const LONGEST_FILE: u64 = 32 << 20;

/// Reason why a node has no identity.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// A file cannot be read or written.
    #[error("{}: {}", .0.display(), .1)]
    Io(PathBuf, io::Error),
    /// Others can read a secret key.
    #[error(
        "{file} holds a secret key and others can read it: chmod 600 {file}",
        file = .0.display()
    )]
    Shared(PathBuf),
    /// A file does not hold what it should.
    #[error("{}: {}", .0.display(), .1)]
    Damaged(PathBuf, String),
    /// There is no network.
    #[error(
        "mode = \"network\" needs networks = [\"KEY\"], with the public key that \
         `ncmesh network show` prints"
    )]
    NoNetwork,
    /// There is no certificate.
    #[error(
        "{} is missing: get a certificate from the network's holder (`ncmesh network admit`) for \
         the key that `ncmesh network key` prints here",
        .0.display()
    )]
    NoCertificate(PathBuf),
    /// The certificate does not count.
    #[error("the certificate in {} does not count: {}", .0.display(), .1)]
    Certificate(PathBuf, Rejection),
    /// The certificate is another node's.
    #[error("the certificate in {} is not of this node: it has another {}", .0.display(), .1)]
    OtherNode(PathBuf, &'static str),
    /// The node announces what its certificate does not permit.
    #[error("the certificate in {} does not permit to announce {}", .0.display(), .1)]
    Prefix(PathBuf, ipnet::IpNet),
    /// The list of revocations does not count.
    #[error("the list in {} does not count: {}", .0.display(), .1)]
    Revocations(PathBuf, Rejection),
}

/// Returns the secret key that a directory holds. Makes one if it has none.
///
/// # Errors
/// [`IdentityError`] if it cannot be made, is damaged, or others can read it.
pub fn identity(dir: &Path) -> Result<SecretKey, IdentityError> {
    let file = dir.join(IDENTITY);
    match secret(&file) {
        Err(IdentityError::Io(_, e)) if e.kind() == io::ErrorKind::NotFound => {}
        found => return found,
    }

    let failed = |e| IdentityError::Io(file.clone(), e);

    // The file is made exclusively, so that two processes cannot end with two keys.
    let mut seed = Zeroizing::new([0; 32]);
    getrandom::fill(&mut *seed).map_err(|e| failed(e.into()))?;
    let key = SecretKey::new(&seed);
    match write_secret(&file, &key) {
        // Another process has just made one.
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => secret(&file),
        written => written.map(|()| key).map_err(failed),
    }
}

/// Reads a secret key that its owner alone can read.
///
/// # Errors
/// [`IdentityError`].
pub fn secret(file: &Path) -> Result<SecretKey, IdentityError> {
    let failed = |e| IdentityError::Io(file.to_owned(), e);
    let mode = std::fs::metadata(file).map_err(failed)?.permissions().mode();
    // As ssh does: a key that others can read is not used, however it came about.
    if mode & 0o077 != 0 {
        return Err(IdentityError::Shared(file.to_owned()));
    }

    let text = ncmesh_engine::text::read(file).map(Zeroizing::new).map_err(failed)?;
    text.parse().map_err(|e: ncmesh_wire::identity::IdentityError| {
        IdentityError::Damaged(file.to_owned(), e.to_string())
    })
}

/// Writes a secret key to a new file that its owner alone can read. It is there whole or not at
/// all, also after a loss of power.
///
/// # Errors
/// The file exists, or cannot be written.
pub fn write_secret(file: &Path, key: &SecretKey) -> io::Result<()> {
    let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty());
    let parent = parent.unwrap_or(Path::new("."));
    let name = file.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    // A link fails if the file exists, and the file is complete when the link appears.
    let draft = parent.join(format!(".{}.{}", name.display(), std::process::id()));
    let written = write_draft(&draft, key).and_then(|()| std::fs::hard_link(&draft, file));
    let removed = std::fs::remove_file(&draft);
    // The draft is removed in either case, before the first error is told.
    written?;
    removed?;
    File::open(parent)?.sync_all()
}

fn write_draft(draft: &Path, key: &SecretKey) -> io::Result<()> {
    // Created with its mode, not changed afterwards: at no moment can others read it.
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(draft)?;
    writeln!(file, "{}", *key.to_hex())?;
    file.sync_all()
}

/// Returns what the node remembers in a file of its state directory; nothing if there is none. A
/// file that cannot be read is an error: the node would believe anybody, and write over it.
fn remembered(state: &StateDir, dir: &Path, name: &str) -> Result<Vec<u8>, IdentityError> {
    state.try_read(name, LONGEST_FILE).map_err(|e| IdentityError::Io(dir.join(name), e))
}

/// Returns how a node trusts others, as its configuration and its state directory say.
///
/// # Errors
/// [`IdentityError`] if it lacks what its mode needs.
pub fn trust(config: &NodeConfig, state: &StateDir) -> Result<TrustConfig, IdentityError> {
    // In this mode the network's key alone counts, so the node needs no identity.
    let TrustSettings { mode, networks, certificate: file, .. } = &config.trust;
    if *mode == TrustMode::Key {
        return Ok(TrustConfig::Key);
    }

    let key = identity(&config.state_dir)?;
    if *mode == TrustMode::FirstUse {
        let pins = lines(&remembered(state, &config.state_dir, "pins")?, parse_pin);
        return Ok(TrustConfig::FirstUse(Box::new(FirstUse { key, pins })));
    }

    if networks.is_empty() {
        return Err(IdentityError::NoNetwork);
    }

    // Lists come before certificates, so that a revoked one is not admitted.
    let mut authority = Authority::new(networks.iter().copied());
    let stored = remembered(state, &config.state_dir, "revocations")?;
    for list in lines(&stored, |line| Revocations::parse(&unhex(line)?).ok()) {
        // One of a network that is not trusted any more.
        let _ = authority.revoke(list);
    }

    // The list of the file may be older than one that was heard: that is no mistake.
    if let Some(list) = revocations(config)? {
        let file = config.trust.revocations.clone().unwrap_or_default();
        match authority.revoke(list) {
            Ok(()) | Err(Rejection::Old) => {}
            Err(why) => return Err(IdentityError::Revocations(file, why)),
        }
    }

    // A missing certificate is the common mistake after an installation, and has an error of its
    // own.
    let certificate = match read_line(file) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            return Err(IdentityError::NoCertificate(file.clone()));
        }
        read => read.map_err(|e| IdentityError::Io(file.clone(), e))?,
    };
    let certificate = unhex(&certificate).and_then(|bytes| Certificate::parse(&bytes).ok());
    let Some(certificate) = certificate else {
        return Err(IdentityError::Damaged(file.clone(), "it is no certificate".into()));
    };

    // A certificate of another node would be refused by all neighbours without a word.
    let difference = [
        (certificate.node != config.id, "id"),
        (certificate.name != config.name, "name"),
        (certificate.key != key.public(), "key"),
    ];
    if let Some((_, what)) = difference.into_iter().find(|(differs, _)| *differs) {
        return Err(IdentityError::OtherNode(file.clone(), what));
    }

    // The clock may be wrong here. The authority knows how far it can be trusted.
    authority
        .admit(&certificate, Some(unix_s()))
        .map_err(|why| IdentityError::Certificate(file.clone(), why))?;

    // Other nodes refuse a state with a prefix that the certificate does not permit.
    let announced = config.profile().prefixes;
    if let Some(prefix) = announced.into_iter().find(|prefix| !certificate.permits(prefix)) {
        return Err(IdentityError::Prefix(file.clone(), prefix));
    }

    // Certificates of other nodes, so that a restart does not wait to hear them.
    let stored = state.read("certificates", LONGEST_FILE);
    let mut known = lines(&stored, |line| Certificate::parse(&unhex(line)?).ok());
    known.retain(|certificate| authority.recall(certificate));
    let membership = Membership { key, certificate, authority, known };
    Ok(TrustConfig::Network(Box::new(membership)))
}

/// Returns the list of revocations that a configuration names.
///
/// # Errors
/// [`IdentityError`] if the file is no list.
pub fn revocations(config: &NodeConfig) -> Result<Option<Revocations>, IdentityError> {
    let Some(file) = &config.trust.revocations else { return Ok(None) };
    let line = read_line(file).map_err(|e| IdentityError::Io(file.clone(), e))?;
    let list = unhex(&line).and_then(|bytes| Revocations::parse(&bytes).ok());
    let problem = || IdentityError::Damaged(file.clone(), "it is no list of revocations".into());
    list.map(Some).ok_or_else(problem)
}

/// Returns the time of the system's clock, seconds since 1970.
#[must_use]
pub fn unix_s() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.unwrap_or_default().as_secs()
}

/// Keys, certificates and revocations that must survive a restart, as files.
pub(crate) struct Remembered {
    pins: String,
    certificates: String,
    revocations: String,
}

impl Remembered {
    /// Returns what a node knows now.
    pub(crate) fn of(stack: &Stack) -> Self {
        // Certificates carry key and name, so a node with one needs no pin.
        let mut files =
            Self { pins: String::new(), certificates: String::new(), revocations: String::new() };
        for (node, known) in stack.identities().filter(|(node, _)| *node != stack.node()) {
            match &known.certificate {
                None => {
                    let line = format!("{} {} {}\n", node.0, known.key, known.name);
                    files.pins.push_str(&line);
                }
                Some(certificate) => {
                    let mut bytes = Vec::new();
                    certificate.write(&mut bytes);
                    files.certificates.push_str(&(hex(&bytes) + "\n"));
                }
            }
        }

        for list in stack.revocations() {
            let mut bytes = Vec::new();
            list.write(&mut bytes);
            files.revocations.push_str(&(hex(&bytes) + "\n"));
        }

        files
    }

    /// Writes the files that are not empty: the others belong to another mode.
    pub(crate) fn save(&self, state: &StateDir) -> io::Result<()> {
        for (name, contents) in [
            ("pins", &self.pins),
            ("certificates", &self.certificates),
            ("revocations", &self.revocations),
        ] {
            // A mode that is not in use must not empty what another one has learnt.
            if !contents.is_empty() {
                state.replace(name, contents.as_bytes())?;
            }
        }

        Ok(())
    }
}

/// Returns the bytes of hexadecimal digits.
#[must_use]
pub fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u32>> = text.trim().chars().map(|c| c.to_digit(16)).collect();
    let digits = digits.filter(|digits| digits.len() % 2 == 0)?;
    Some(digits.chunks_exact(2).map(|pair| (pair[0] * 16 + pair[1]) as u8).collect())
}

fn read_line(file: &Path) -> io::Result<String> {
    let text = ncmesh_engine::text::read(file)?;
    Ok(text.lines().next().unwrap_or_default().to_owned())
}

/// Parses the lines of a file. Damaged ones are skipped, with a warning.
fn lines<T>(bytes: &[u8], parse: impl Fn(&str) -> Option<T>) -> Vec<T> {
    let text = String::from_utf8_lossy(bytes);
    let parsed = text.lines().map(|line| (line, parse(line)));
    let whole = parsed.filter_map(|(line, parsed)| {
        // The rest of the list is worth reading: a crash damages one line at most.
        if parsed.is_none() {
            tracing::warn!("a damaged line of a list of identities is left out: {line:.40?}");
        }
        parsed
    });
    whole.collect()
}

fn parse_pin(line: &str) -> Option<Pin> {
    let mut words = line.splitn(3, ' ');
    let node = NodeId(words.next()?.parse().ok()?);
    let key = words.next()?.parse().ok()?;
    let name = words.next().unwrap_or_default();
    // A node whose name was another's is pinned without one.
    (name.is_empty() || is_node_name(name)).then(|| Pin { node, name: name.to_owned(), key })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_made_once_and_for_its_owner_alone() {
        let dir = tempfile::tempdir().unwrap();
        let key = identity(dir.path()).unwrap();
        assert_eq!(identity(dir.path()).unwrap().public(), key.public());
        let file = dir.path().join(IDENTITY);
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "a draft is left");
        assert_eq!(
            write_secret(&file, &key).unwrap_err().kind(),
            io::ErrorKind::AlreadyExists,
            "a key in use is not overwritten"
        );
    }

    #[test]
    fn a_key_that_others_can_read_or_that_is_damaged_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        identity(dir.path()).unwrap();
        let file = dir.path().join(IDENTITY);
        for mode in [0o640, 0o604] {
            std::fs::set_permissions(&file, PermissionsExt::from_mode(mode)).unwrap();
            let refused = identity(dir.path()).unwrap_err().to_string();
            assert!(refused.contains("chmod 600"), "{refused}");
        }
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
        std::fs::write(&file, "12ab\n").unwrap();
        let refused = identity(dir.path()).unwrap_err().to_string();
        assert!(refused.contains("64 hexadecimal digits"), "{refused}");
    }

    #[test]
    fn pins_are_read_line_by_line_and_damage_costs_a_line() {
        let key = SecretKey::new(&Zeroizing::new([1; 32])).public();
        let text = format!("7 {key} gate\nx {key} n8\n9 {key} \n10 00 n10\n11 {key} a\u{1b}b\n");
        let pins = lines(text.as_bytes(), parse_pin);
        let named: Vec<_> = pins.iter().map(|pin| (pin.node.0, pin.name.as_str())).collect();
        assert_eq!(named, [(7, "gate"), (9, "")]);
    }

    #[test]
    fn a_file_of_pins_that_cannot_be_read_is_an_error_and_stays() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::open(dir.path()).unwrap();
        assert!(remembered(&state, dir.path(), "pins").unwrap().is_empty(), "there is none yet");
        std::fs::create_dir(dir.path().join("pins")).unwrap();
        let refused = remembered(&state, dir.path(), "pins").unwrap_err().to_string();
        assert!(refused.contains("pins"), "{refused}");
    }
}
