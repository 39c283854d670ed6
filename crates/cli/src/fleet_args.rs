//! Command line of `ncmesh fleet`. The doc comments are the texts of `--help`.

use clap::{Args, Subcommand, ValueHint};
use ncmesh_fleet::Version;
use ncmesh_fleet::gluon::{Date, Priority};
use ncmesh_wire::identity::PublicKey;
use std::path::PathBuf;

const PACK_EXAMPLES: &str = "\
Examples:
  ncmesh fleet pack town 2026.11 --image wdr4300=a.bin --image cpe210=b.bin --out town.manifest
  ncmesh fleet pack town --gluon stable.manifest --out town.manifest

The image files are read; the manifest has their sizes and hashes.";

#[derive(Debug, Subcommand)]
pub(crate) enum FleetCommand {
    /// Make a key that signs releases, and print its public key. Keep the file off the nodes
    #[command(after_help = "Example:\n  ncmesh fleet keygen anna.key")]
    Keygen(KeyArgs),
    /// Print the public key of a file
    Key(KeyArgs),
    /// Write the manifest of a release: which image is for which model
    #[command(after_help = PACK_EXAMPLES)]
    Pack(PackArgs),
    /// Sign a manifest
    #[command(after_help = "Example:\n  ncmesh fleet sign town.manifest --key anna.key")]
    Sign(SignArgs),
    /// Check a manifest's signatures, its images, and whether it is for a node
    #[command(after_help = "Example:\n  ncmesh fleet verify town.manifest --key ANNA --key BERT \
                            --key CARL --need 2 \\\n      --images . --running 2026.10")]
    Verify(VerifyArgs),
    /// Write the manifest for another updater, which has signatures of its own
    #[command(subcommand)]
    Export(ExportCommand),
}

#[derive(Debug, Args)]
pub(crate) struct KeyArgs {
    /// File of the secret key; only its owner may read it
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct PackArgs {
    /// Name of the firmware. Versions count within one name
    pub(crate) name: String,
    /// Version of the release [default: that of --gluon]
    pub(crate) release: Option<Version>,
    /// Channel [default: the branch of --gluon, else stable]
    #[arg(long)]
    pub(crate) channel: Option<String>,
    /// Version from which nodes may change to this one. May be given several times [default: all
    /// older ones]
    #[arg(long, value_name = "VERSION")]
    pub(crate) replaces: Vec<Version>,
    /// Image for a model. May be given several times
    #[arg(long, value_name = "MODEL=FILE", value_parser = model_file)]
    pub(crate) image: Vec<ModelFile>,
    /// Take the models from a manifest of Gluon. Its signatures are not checked
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) gluon: Option<PathBuf>,
    /// Take a model from an announcement of LibreMesh's eupgrade. May be given several times
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) eupgrade: Vec<PathBuf>,
    /// Public key of usign that must have signed each announcement, in FILE.sig beside it
    #[arg(long, value_name = "FILE", requires = "eupgrade", value_hint = ValueHint::FilePath)]
    pub(crate) usign_key: Option<PathBuf>,
    /// Directory of the images of --gluon and --eupgrade [default: that of their file]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) images: Option<PathBuf>,
    /// File for the manifest, which must not exist yet
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) out: PathBuf,
}

/// Image of a model on the command line.
#[derive(Clone, Debug)]
pub(crate) struct ModelFile {
    pub(crate) model: String,
    pub(crate) file: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct SignArgs {
    /// File of the manifest, to which the signature is added
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) manifest: PathBuf,
    /// File of the secret key: of `ncmesh fleet keygen`, or another one of ncmesh
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) key: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    /// File of the manifest
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) manifest: PathBuf,
    /// Public key of a signer. May be given several times
    #[arg(long, required = true)]
    pub(crate) key: Vec<PublicKey>,
    /// Keys that must have signed [default: all]
    #[arg(long, value_name = "N")]
    pub(crate) need: Option<usize>,
    /// Directory with the image files, which are then checked
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) images: Option<PathBuf>,
    /// Name of the firmware that the node follows
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Channel that the node follows
    #[arg(long)]
    pub(crate) channel: Option<String>,
    /// Model of the node
    #[arg(long)]
    pub(crate) model: Option<String>,
    /// Version that the node runs
    #[arg(long, value_name = "VERSION")]
    pub(crate) running: Option<Version>,
    /// Manifest of the newest release that the node knows
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) known: Option<PathBuf>,
    /// Let the version be older than --running and --known
    #[arg(long)]
    pub(crate) downgrade: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ExportCommand {
    /// For Gluon's autoupdater. Sign it with Gluon's contrib/sign.sh
    #[command(after_help = "Example:\n  ncmesh fleet export gluon town.manifest --date \
                            '2026-11-28 12:00:00+00:00' \\\n      --priority 1 --out \
                            stable.manifest")]
    Gluon(GluonArgs),
    /// For LibreMesh's eupgrade: a file for each board. Sign each with usign
    #[command(after_help = "Example:\n  ncmesh fleet export eupgrade town.manifest --out latest")]
    Eupgrade(EupgradeArgs),
}

#[derive(Debug, Args)]
pub(crate) struct GluonArgs {
    /// File of the manifest
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) manifest: PathBuf,
    /// Time of the release, from which nodes count the days
    #[arg(long, value_name = "YYYY-MM-DD HH:MM:SS+HH:MM")]
    pub(crate) date: Date,
    /// Days over which nodes update
    #[arg(long, value_name = "DAYS")]
    pub(crate) priority: Priority,
    /// File for Gluon's manifest, which must not exist yet
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) out: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct EupgradeArgs {
    /// File of the manifest
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) manifest: PathBuf,
    /// Description of the release, as routers have it in DISTRIB_DESCRIPTION [default: NAME
    /// VERSION]
    #[arg(long, value_name = "TEXT")]
    pub(crate) description: Option<String>,
    /// Directory for the files, named `latest` at the server. The images lie beside it
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) out: PathBuf,
}

fn model_file(text: &str) -> Result<ModelFile, String> {
    let (model, file) = text.split_once('=').ok_or("expected MODEL=FILE")?;
    Ok(ModelFile { model: model.to_owned(), file: file.into() })
}
