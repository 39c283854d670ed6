//! `ncmesh network`: makes networks and signs certificates. It needs no daemon.

use crate::failure::{Failure, Kind};
use crate::network_args::{AdmitArgs, CreateArgs, KeyArgs, NetworkCommand, RevokeArgs};
use crate::show::{self, Table};
use ncmesh_node::identity::{self, IdentityError, unhex};
use ncmesh_node::{NodeConfig, NodeError};
use ncmesh_wire::NodeId;
use ncmesh_wire::hex;
use ncmesh_wire::identity::{Certificate, MAX_REVOKED, Revocations, SecretKey, Subject, Validity};
use ncmesh_wire::prefix::{MAX_PREFIXES, Prefixes};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Seconds of a day.
const DAY_S: u64 = 86_400;

/// Record of what a network's key has signed. Without it numbers would be used twice.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Ledger {
    /// Number of the last certificate, and of the last list of revocations.
    serial: u32,
    list: u32,
    /// When something was signed last, seconds since 1970.
    signed_at: u64,
    /// All certificates, in hexadecimal digits.
    certificates: Vec<String>,
    /// Numbers of those that were revoked.
    revoked: Vec<u32>,
}

/// A network with its record.
struct Network {
    key: SecretKey,
    ledger: Ledger,
    file: PathBuf,
}

/// Runs a command.
pub(crate) fn run(is_json: bool, command: NetworkCommand) -> Result<(), Failure> {
    match command {
        NetworkCommand::Create(args) => create(is_json, &args),
        NetworkCommand::Key(args) => key(is_json, &args),
        NetworkCommand::Admit(args) => admit(args),
        NetworkCommand::Revoke(args) => revoke(&args),
        NetworkCommand::Show(args) => show(is_json, &args),
    }
}

fn create(is_json: bool, CreateArgs { network: file }: &CreateArgs) -> Result<(), Failure> {
    let mut seed = zeroize::Zeroizing::new([0; 32]);
    getrandom::fill(&mut *seed).map_err(|e| Failure::new(Kind::Other, e.to_string()))?;
    let key = SecretKey::new(&seed);
    // Nodes trust the key of a network in use: one that replaced it would shut all of them out.
    identity::write_secret(file, &key).map_err(|e| {
        let hint = match e.kind() {
            io::ErrorKind::AlreadyExists => "; a network in use is not overwritten",
            _ => "",
        };
        Failure::new(Kind::File, format!("{} cannot be written: {e}{hint}", file.display()))
    })?;
    let network = Network { key, ledger: Ledger::default(), file: file.clone() };
    network.save()?;

    let public = network.key.public().to_string();
    if is_json { show::json(&json!({ "key": public })) } else { show::line(&public) }
}

fn key(is_json: bool, KeyArgs { config }: &KeyArgs) -> Result<(), Failure> {
    // A node makes its key at its first start. Here it may be made before, so that a node can be
    // admitted before it runs.
    let dir = NodeConfig::state_dir(config).map_err(NodeError::from)?;
    fs::create_dir_all(&dir).map_err(|e| cannot("made", &dir, &e))?;
    let key = identity::identity(&dir).map_err(|e| failure(&e))?.public();
    let text = key.to_string();
    if is_json {
        return show::json(&json!({ "key": text, "fingerprint": key.fingerprint() }));
    }
    show::line(&text)
}

fn admit(args: AdmitArgs) -> Result<(), Failure> {
    let AdmitArgs { network, id, name, key, prefix, days, out } = args;
    let mut network = Network::open(&network)?;
    let issued = network.now()?;

    // A name stands for one node, so two valid certificates must not share it. The same node may
    // have a new one for its name.
    let others = network.valid(issued);
    if let Some(other) = others.into_iter().find(|c| c.name == name && c.node.0 != id) {
        let problem = format!("node {} is named {name} in this network", other.node);
        return Err(Failure::new(Kind::Usage, problem));
    }

    // A certificate has room for `MAX_PREFIXES` of each address family.
    let v4 = prefix.iter().filter(|prefix| prefix.addr().is_ipv4()).count();
    if v4.max(prefix.len() - v4) > MAX_PREFIXES {
        let problem = format!("--prefix: up to {MAX_PREFIXES} of IPv4 and of IPv6");
        return Err(Failure::new(Kind::Usage, problem));
    }

    // Host bits of a prefix would make different prefixes of one network, so they are cleared.
    let prefixes = Prefixes(prefix.iter().map(ipnet::IpNet::trunc).collect());
    let serial = network.ledger.serial + 1;
    let validity = Validity { serial, issued, expires: issued + u64::from(days) * DAY_S };
    let subject = Subject { node: NodeId(id), key, name, prefixes };

    let certificate = Certificate::issue(&network.key, validity, subject);
    let mut bytes = Vec::new();
    certificate.write(&mut bytes);

    network.ledger.serial = serial;
    network.ledger.signed_at = issued;
    network.ledger.certificates.push(hex(&bytes));
    // The record first: a number that is on no certificate harms nobody.
    network.save()?;
    give(out.as_deref(), &hex(&bytes))
}

fn revoke(args: &RevokeArgs) -> Result<(), Failure> {
    let mut network = Network::open(&args.network)?;
    let issued = network.now()?;
    let is_meant = |c: &Certificate| c.name == args.node || c.node.0.to_string() == args.node;
    let meant: Vec<u32> =
        network.certificates().into_iter().filter(is_meant).map(|c| c.serial).collect();
    if meant.is_empty() {
        let problem = format!("no certificate of {} in this network", args.node);
        return Err(Failure::new(Kind::Usage, problem));
    }

    // Expired certificates need no place in the list.
    let certificates = network.certificates();
    let is_open =
        |serial: &u32| certificates.iter().any(|c| c.serial == *serial && c.expires > issued);

    let ledger = &mut network.ledger;
    ledger.revoked.extend(meant);
    ledger.revoked.sort_unstable();
    ledger.revoked.dedup();
    ledger.revoked.retain(is_open);

    // The list travels in one frame, which bounds its length.
    if ledger.revoked.len() > MAX_REVOKED {
        let problem = format!(
            "a list has room for {MAX_REVOKED} certificates; make another network, trust both \
             while nodes get new certificates, then leave this one out"
        );
        return Err(Failure::new(Kind::Other, problem));
    }

    // Lists are numbered, so that nodes can tell a newer one.
    ledger.list += 1;
    ledger.signed_at = issued;
    let list = Revocations::issue(&network.key, ledger.list, issued, ledger.revoked.clone());
    // The record goes first here, too: a list that was given out must not be numbered twice.
    network.save()?;

    let mut bytes = Vec::new();
    list.write(&mut bytes);
    give(args.out.as_deref(), &hex(&bytes))
}

fn show(is_json: bool, args: &CreateArgs) -> Result<(), Failure> {
    let network = Network::open(&args.network)?;
    let key = network.key.public().to_string();
    let now = identity::unix_s();
    // A revoked certificate stays revoked after it expires, so this is looked at first.
    let state = |c: &Certificate| match c {
        c if network.ledger.revoked.contains(&c.serial) => "revoked".to_owned(),
        c if c.expires <= now => "expired".to_owned(),
        c => format!("{} days", (c.expires - now) / DAY_S),
    };

    let certificates = network.certificates();
    if is_json {
        let row = |c: &Certificate| {
            json!({
                "serial": c.serial, "node": c.node.0, "name": c.name, "key": c.key.to_string(),
                "fingerprint": c.key.fingerprint(), "issued": c.issued, "expires": c.expires,
                "prefixes": c.prefixes.0.iter().map(ToString::to_string).collect::<Vec<_>>(),
                "revoked": network.ledger.revoked.contains(&c.serial),
            })
        };
        let rows: Vec<_> = certificates.iter().map(row).collect();
        return show::json(&json!({ "key": key, "certificates": rows }));
    }

    let mut table = Table::new(["SERIAL", "ID", "NAME", "KEY", "VALID", "PREFIXES"]);
    for c in &certificates {
        let prefixes: Vec<String> = c.prefixes.0.iter().map(ToString::to_string).collect();
        table.row([
            c.serial.to_string(),
            c.node.to_string(),
            c.name.clone(),
            c.key.fingerprint(),
            state(c),
            show::or_dash(Some(prefixes.join(", ")).filter(|text| !text.is_empty())),
        ]);
    }

    // The first line is one of a node's configuration, with which it trusts this network.
    show::line(&format!("networks = [\"{key}\"]\n\n{table}"))
}

impl Network {
    fn open(file: &Path) -> Result<Self, Failure> {
        // A key without its record is of no use: numbers of certificates would be used twice.
        let key = identity::secret(file).map_err(|e| failure(&e))?;
        let record = ledger_file(file);
        let text = fs::read(&record).map_err(|e| cannot("read", &record, &e))?;
        let ledger = serde_json::from_slice(&text).map_err(|e| {
            Failure::new(Kind::File, format!("{} is damaged: {e}", record.display()))
        })?;
        Ok(Self { key, ledger, file: file.to_owned() })
    }

    /// Writes the record, whole or not at all.
    fn save(&self) -> Result<(), Failure> {
        let record = ledger_file(&self.file);
        let draft = record.with_extension("json.new");
        let text = serde_json::to_vec_pretty(&self.ledger)
            .map_err(|e| Failure::new(Kind::Other, e.to_string()))?;

        // The text is on the disk before the name points to it, so a crash leaves one of the two
        // records.
        let written = fs::File::create(&draft).and_then(|mut file| {
            io::Write::write_all(&mut file, &text)?;
            file.sync_all()
        });
        written
            .and_then(|()| fs::rename(&draft, &record))
            .map_err(|e| cannot("written", &record, &e))
    }

    /// Returns the time for a signature.
    fn now(&self) -> Result<u64, Failure> {
        let now = identity::unix_s();
        // Nodes take what was signed for the time. One that jumps back shows a wrong clock.
        if now < self.ledger.signed_at {
            let problem = "the clock of this machine is behind what the network signed before; \
                           set it right first";
            return Err(Failure::new(Kind::Other, problem));
        }
        Ok(now)
    }

    fn certificates(&self) -> Vec<Certificate> {
        let bytes = self.ledger.certificates.iter().filter_map(|text| unhex(text));
        bytes.filter_map(|bytes| Certificate::parse(&bytes).ok()).collect()
    }

    fn valid(&self, now: u64) -> Vec<Certificate> {
        let mut all = self.certificates();
        all.retain(|c| c.expires > now && !self.ledger.revoked.contains(&c.serial));
        all
    }
}

fn ledger_file(network: &Path) -> PathBuf {
    let mut name = network.as_os_str().to_owned();
    name.push(".json");
    name.into()
}

/// Writes what was signed to a file, or to standard output.
fn give(out: Option<&Path>, text: &str) -> Result<(), Failure> {
    let Some(file) = out else { return show::line(text) };
    fs::write(file, format!("{text}\n")).map_err(|e| cannot("written", file, &e))
}

fn cannot(what: &str, file: &Path, e: &io::Error) -> Failure {
    Failure::new(Kind::File, format!("{} cannot be {what}: {e}", file.display()))
}

fn failure(e: &IdentityError) -> Failure {
    Failure::new(Kind::File, e.to_string())
}
