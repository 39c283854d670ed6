//! `ncmesh fleet`: makes, signs and checks releases of router images. Only roll-outs need a daemon.

use crate::failure::{Failure, Kind};
use crate::fleet_args::{
    EupgradeArgs, ExportCommand, FleetCommand, GluonArgs, KeyArgs, PackArgs, SignArgs, VerifyArgs,
};
use crate::remote_args::Remote;
use crate::show::{self, Table};
use ncmesh_fleet::eupgrade::{self, Announcement};
use ncmesh_fleet::gluon::{GluonManifest, Schedule};
use ncmesh_fleet::usign::UsignKey;
use ncmesh_fleet::{
    Digests, Head, Image, Known, MAX_BYTES, Manifest, Release, Station, Trust, Version,
};
use ncmesh_node::identity;
use ncmesh_wire::hex;
use ncmesh_wire::identity::{PublicKey, SecretKey};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fmt::Display;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// Longest key or signature of usign that is read, bytes.
const MAX_USIGN_BYTES: usize = 4096;

/// Runs a command.
pub(crate) fn run(remote: Remote, command: FleetCommand) -> Result<(), Failure> {
    let is_json = remote.json;
    match command {
        FleetCommand::Rollout(command) => super::rollout::run(remote, command),
        FleetCommand::Keygen(args) => keygen(is_json, &args),
        FleetCommand::Key(args) => key(is_json, &args),
        FleetCommand::Pack(args) => pack(is_json, args),
        FleetCommand::Sign(args) => sign(is_json, &args),
        FleetCommand::Verify(args) => verify(is_json, args),
        FleetCommand::Export(ExportCommand::Gluon(args)) => export_gluon(is_json, args),
        FleetCommand::Export(ExportCommand::Eupgrade(args)) => export_eupgrade(is_json, &args),
    }
}

fn keygen(is_json: bool, KeyArgs { file }: &KeyArgs) -> Result<(), Failure> {
    let mut seed = zeroize::Zeroizing::new([0; 32]);
    getrandom::fill(&mut *seed).map_err(|e| Failure::new(Kind::Other, e.to_string()))?;
    let key = SecretKey::new(&seed);
    // Nodes trust a key in use: one that replaced it could sign nothing for them.
    identity::write_secret(file, &key).map_err(|e| cannot("written", file, &e))?;
    show_key(is_json, &key.public())
}

fn key(is_json: bool, KeyArgs { file }: &KeyArgs) -> Result<(), Failure> {
    show_key(is_json, &secret(file)?.public())
}

fn show_key(is_json: bool, key: &PublicKey) -> Result<(), Failure> {
    let text = key.to_string();
    if is_json {
        return show::json(&json!({ "key": text, "fingerprint": key.fingerprint() }));
    }
    show::line(&text)
}

fn pack(is_json: bool, args: PackArgs) -> Result<(), Failure> {
    let PackArgs { name, mut release, mut channel, replaces, image, gluon, eupgrade, .. } = args;
    let mut images = Vec::new();
    for given in image {
        // A model whose file has a name that no manifest can hold is told by its flaw below.
        let file = given.file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        images.push(read_image(given.model, &given.file, file)?);
    }

    // The new manifest promises the images that a router's own updater would install, so the
    // hashes of the files must be those of the other manifest.
    if let Some(file) = gluon {
        let manifest =
            GluonManifest::parse(&read(&file, MAX_BYTES)?).map_err(|e| refused(&file, &e))?;
        let version = manifest.version().map_err(|e| refused(&file, &e))?;
        release.get_or_insert_with(|| version.clone());
        if let [branch] = manifest.branches() {
            channel.get_or_insert_with(|| branch.clone());
        }
        let dir = args.images.clone().unwrap_or_else(|| directory(&file));
        for (model, listed) in manifest.images() {
            let path = dir.join(&listed.file);
            let found = read_image(model.clone(), &path, listed.file.clone())?;
            if (found.size, found.digests.sha256) != (listed.size, listed.sha256) {
                return Err(unlisted(&path, &file));
            }
            images.push(found);
        }
    }

    let usign = args.usign_key.as_deref().map(usign_key).transpose()?;
    for file in eupgrade {
        let text = read(&file, eupgrade::MAX_BYTES)?;
        if let Some(key) = &usign {
            let mut signature = file.clone().into_os_string();
            signature.push(".sig");
            let signature = read(Path::new(&signature), MAX_USIGN_BYTES)?;
            key.check(&text, &signature).map_err(|e| refused(&file, &e))?;
        }
        let announcement = Announcement::parse(&text).map_err(|e| refused(&file, &e))?;
        let listed = announcement.image().map_err(|e| refused(&file, &e))?;
        let sha256 = listed.digest().map_err(|e| refused(&file, &e))?;
        // Announcements lie in `latest`, and images usually elsewhere.
        let dir = args.images.clone().unwrap_or_else(|| directory(&file));
        let path = dir.join(&listed.name);
        let found = read_image(announcement.board.clone(), &path, listed.name.clone())?;
        if found.digests.sha256 != sha256 {
            return Err(unlisted(&path, &file));
        }
        images.push(found);
    }

    let Some(version) = release else {
        return Err(Failure::new(Kind::Usage, "name the version behind the name"));
    };
    let channel = channel.unwrap_or_else(|| "stable".into());
    let head = Head { name, version, channel, replaces };
    let release =
        Release::new(head, images).map_err(|e| Failure::new(Kind::Usage, e.to_string()))?;
    let manifest = Manifest::new(release);
    write_new(&args.out, &manifest.to_string())?;
    summarise(is_json, &manifest, &json!({}))
}

/// Returns the failure for an image that differs from what another updater's file lists.
fn unlisted(image: &Path, list: &Path) -> Failure {
    refused(image, &format!("it is not the image that {} lists", list.display()))
}

fn sign(is_json: bool, SignArgs { manifest: file, key }: &SignArgs) -> Result<(), Failure> {
    let key = secret(key)?;
    let mut manifest = manifest(file)?;
    manifest.sign(&key).map_err(|e| refused(file, &e))?;

    // Whole or not at all: the signatures of others are in the same file.
    let mut draft = file.clone().into_os_string();
    draft.push(".new");
    let draft = PathBuf::from(draft);
    write_new(&draft, &manifest.to_string())?;
    fs::rename(&draft, file).map_err(|e| cannot("written", file, &e))?;
    summarise(is_json, &manifest, &json!({}))
}

fn verify(is_json: bool, args: VerifyArgs) -> Result<(), Failure> {
    let file = &args.manifest;
    let keys: BTreeSet<PublicKey> = args.key.into_iter().collect();
    let trusted = keys.len();
    let need = args.need.unwrap_or(trusted);
    let trust =
        Trust::new(keys, need).map_err(|e| Failure::new(Kind::Usage, format!("--need: {e}")))?;

    let bytes = read(file, MAX_BYTES)?;
    // A manifest of Gluon has another kind of signature: to say that it is signed would be a lie.
    if bytes.starts_with(b"BRANCH=") && GluonManifest::parse(&bytes).is_ok() {
        let problem = "its signatures are of Gluon's ecdsautils, which ncmesh cannot check; \
                       Gluon's autoupdater does, and \"ncmesh fleet pack --gluon\" makes a release \
                       of it to be signed here";
        return Err(refused(file, &problem));
    }
    let manifest = Manifest::parse(&bytes).map_err(|e| refused(file, &e))?;
    let signers = trust.check(&manifest).map_err(|e| refused(file, &e))?;

    // The newest known release must count as well, or anybody could block an update by a file.
    let newest = match &args.known {
        Some(known) => {
            let newest = self::manifest(known)?;
            trust.check(&newest).map_err(|e| refused(known, &e))?;
            Some(Known::of(&newest))
        }
        None => None,
    };
    let station = Station {
        name: args.name,
        channel: args.channel,
        model: args.model,
        running: args.running,
        newest,
        may_downgrade: args.downgrade,
    };
    station.judge(&manifest).map_err(|e| refused(file, &e))?;

    if let Some(dir) = &args.images {
        for image in manifest.release().images() {
            let path = dir.join(&image.file);
            let opened = File::open(&path).map_err(|e| cannot("read", &path, &e))?;
            if !image.is(opened).map_err(|e| cannot("read", &path, &e))? {
                return Err(refused(&path, &format!("it is not the image for {}", image.model)));
            }
        }
    }

    let signers: Vec<String> = signers.iter().map(ToString::to_string).collect();
    if !is_json {
        let good = signers.len();
        show::line(&format!("good: {good} of {trusted} trusted keys signed, {need} are needed"))?;
    }
    let checked =
        json!({ "signers": signers, "need": need, "images_checked": args.images.is_some() });
    summarise(is_json, &manifest, &checked)
}

fn export_gluon(is_json: bool, args: GluonArgs) -> Result<(), Failure> {
    let GluonArgs { manifest: file, date, priority, out } = args;
    let release = manifest(&file)?;
    let written = GluonManifest::of(release.release(), Schedule { date, priority });
    // The longest of our lines is within the autoupdater's limit of a line.
    write_new(&out, &written.to_string())?;
    exported(is_json, &[out])
}

fn export_eupgrade(is_json: bool, args: &EupgradeArgs) -> Result<(), Failure> {
    let EupgradeArgs { manifest: file, description, out } = args;
    let manifest = manifest(file)?;
    let head = manifest.release().head();
    let description =
        description.clone().unwrap_or_else(|| format!("{} {}", head.name, head.version));

    // Everything is made before anything is written.
    let mut files: Vec<(PathBuf, String)> = Vec::new();
    for image in manifest.release().images() {
        let announcement = Announcement::of(image, &description);
        let path = out.join(announcement.file_name());
        if files.iter().any(|(known, _)| *known == path) {
            let problem = format!("two models have their announcement in {}", path.display());
            return Err(refused(file, &problem));
        }
        let text = announcement.to_json().map_err(|e| Failure::new(Kind::Other, e.to_string()))?;
        files.push((path, text));
    }
    fs::create_dir_all(out).map_err(|e| cannot("made", out, &e))?;
    for (path, text) in &files {
        write_new(path, text)?;
    }
    exported(is_json, &files.into_iter().map(|(path, _)| path).collect::<Vec<_>>())
}

fn exported(is_json: bool, files: &[PathBuf]) -> Result<(), Failure> {
    let files: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
    if is_json { show::json(&json!({ "files": files })) } else { show::line(&files.join("\n")) }
}

/// Shows a release. `checked` are further fields of the JSON document.
fn summarise(is_json: bool, manifest: &Manifest, checked: &Value) -> Result<(), Failure> {
    let release = manifest.release();
    let Head { name, version, channel, replaces } = release.head();
    let keys: Vec<String> = manifest.claimed().iter().map(ToString::to_string).collect();
    if is_json {
        let row = |image: &Image| {
            json!({
                "model": image.model, "file": image.file, "size": image.size,
                "sha256": hex(&image.digests.sha256), "blake3": hex(&image.digests.blake3),
            })
        };
        let replaces: Vec<&str> = replaces.iter().map(Version::as_str).collect();
        let mut document = json!({
            "id": release.id().to_string(), "name": name, "version": version.as_str(),
            "channel": channel, "replaces": replaces, "keys": keys,
            "images": release.images().iter().map(row).collect::<Vec<_>>(),
        });
        if let (Some(all), Some(more)) = (document.as_object_mut(), checked.as_object()) {
            all.extend(more.clone());
        }
        return show::json(&document);
    }

    let mut table = Table::new(["MODEL", "SIZE", "FILE"]);
    for image in release.images() {
        table.row([image.model.clone(), show::bytes(image.size), image.file.clone()]);
    }
    show::line(&format!("{name} {version} ({channel}), signatures: {}\n\n{table}", keys.len()))
}

fn manifest(file: &Path) -> Result<Manifest, Failure> {
    Manifest::parse(&read(file, MAX_BYTES)?).map_err(|e| refused(file, &e))
}

fn read_image(model: String, path: &Path, file: String) -> Result<Image, Failure> {
    let read = File::open(path).and_then(Digests::read);
    let (size, digests) = read.map_err(|e| cannot("read", path, &e))?;
    Ok(Image { model, file, size, digests })
}

fn usign_key(file: &Path) -> Result<UsignKey, Failure> {
    UsignKey::parse(&read(file, MAX_USIGN_BYTES)?).map_err(|e| refused(file, &e))
}

fn secret(file: &Path) -> Result<SecretKey, Failure> {
    identity::secret(file).map_err(|e| Failure::new(Kind::File, e.to_string()))
}

/// Reads a file, but one byte more than allowed at most: the parser then says that it is too long.
fn read(file: &Path, longest: usize) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    File::open(file)
        .and_then(|opened| opened.take(longest as u64 + 1).read_to_end(&mut bytes))
        .map_err(|e| cannot("read", file, &e))?;
    Ok(bytes)
}

/// Writes a file that must not exist yet, to the disk.
fn write_new(file: &Path, text: &str) -> Result<(), Failure> {
    let opened = OpenOptions::new().write(true).create_new(true).open(file);
    opened
        .and_then(|mut opened| {
            opened.write_all(text.as_bytes())?;
            opened.sync_all()
        })
        .map_err(|e| cannot("written", file, &e))
}

fn directory(file: &Path) -> PathBuf {
    file.parent().unwrap_or(Path::new(".")).to_owned()
}

fn cannot(what: &str, file: &Path, e: &io::Error) -> Failure {
    let hint = match e.kind() {
        io::ErrorKind::AlreadyExists => "; remove it first",
        _ => "",
    };
    Failure::new(Kind::File, format!("{} cannot be {what}: {e}{hint}", file.display()))
}

fn refused(file: &Path, why: &impl Display) -> Failure {
    Failure::new(Kind::Refused, format!("{}: {why}", file.display()))
}
