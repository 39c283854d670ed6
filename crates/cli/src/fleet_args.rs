//! Command line of `ncmesh fleet`. The doc comments are the texts of `--help`.

use crate::airtime::airtime;
use crate::remote_args::{NoArgs, Remotely, WatchArgs};
use clap::{Args, Subcommand, ValueHint};
use ncmesh_engine::Background;
use ncmesh_fleet::Version;
use ncmesh_fleet::gluon::{Date, Priority};
use ncmesh_fleet::rollout::Batch;
use ncmesh_wire::identity::PublicKey;
use std::path::PathBuf;
use std::time::Duration;

const PACK_EXAMPLES: &str = "\
Examples:
  ncmesh fleet pack town 2026.11 --image wdr4300=a.bin --image cpe210=b.bin --out town.manifest
  ncmesh fleet pack town --gluon stable.manifest --out town.manifest

The image files are read; the manifest has their sizes and hashes.";

const PUSH_EXAMPLES: &str = "\
Examples:
  ncmesh fleet push town.manifest
  ncmesh fleet push town.manifest --images images --airtime 10% --to roof-west,barn

The roll-out goes on in the daemon; `ncmesh fleet status` shows how far it is.";

const APPLY_EXAMPLES: &str = "\
Examples:
  ncmesh fleet apply --wait
  ncmesh fleet apply --canary barn --batch 10% --without-missing
  ncmesh fleet apply --at +2h30m

A node comes after all nodes behind it, this node last. One that fails, or is not back in time,
stops the roll-out.";

/// Commands of an operator, which its daemon carries out.
#[derive(Debug, Subcommand)]
pub(crate) enum RolloutCommand {
    /// Bring a release to all nodes: each stages the image of its model, and installs nothing
    #[command(after_help = PUSH_EXAMPLES)]
    Push(Remotely<PushArgs>),
    /// Update the nodes that have staged the release, batch by batch
    #[command(after_help = APPLY_EXAMPLES)]
    Apply(Remotely<ApplyArgs>),
    /// Keep the nodes that are on trial, after `apply --by-hand`
    #[command(after_help = "Example:\n  ncmesh fleet confirm")]
    Confirm(Remotely<NoArgs>),
    /// End the roll-out: no further node is updated, and those on trial go back
    #[command(after_help = "Example:\n  ncmesh fleet abort")]
    Abort(Remotely<NoArgs>),
    /// Send all nodes that were updated back to the image before
    #[command(after_help = "Example:\n  ncmesh fleet rollback")]
    Rollback(Remotely<NoArgs>),
    /// Show the nodes of the roll-out: model, version, how far they are, and why not
    #[command(after_help = "Examples:\n  ncmesh fleet status\n  ncmesh fleet status --watch")]
    Status(Remotely<WatchArgs>),
    /// Print what happened in the roll-out, a line of JSON for each change
    #[command(after_help = "Examples:\n  ncmesh fleet events\n  ncmesh fleet events --watch")]
    Events(Remotely<EventArgs>),
}

#[derive(Debug, Args)]
pub(crate) struct EventArgs {
    /// Go on with further events until interrupted
    #[arg(long)]
    pub(crate) watch: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PushArgs {
    /// File of the manifest
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) manifest: PathBuf,
    /// Directory of the images [default: that of the manifest]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) images: Option<PathBuf>,
    /// Nodes that take part, by name or id, or `all`: also those that come up later
    #[arg(long, value_name = "NODES", value_delimiter = ',', default_value = "all")]
    pub(crate) to: Vec<String>,
    /// Most airtime that images may take around each node, 1 to 100 percent. They give way to all
    /// other traffic in any case
    #[arg(long, value_name = "PERCENT", value_parser = airtime)]
    pub(crate) airtime: Option<Background>,
    /// Seconds after which nodes that have not staged the release are listed as missing [default:
    /// a day]
    #[arg(long, value_name = "SECONDS")]
    pub(crate) within: Option<u64>,
    /// Let nodes go to an older version
    #[arg(long)]
    pub(crate) downgrade: bool,
    /// Wait until all nodes have staged the release, or cannot (exit code 7)
    #[arg(long)]
    pub(crate) wait: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ApplyArgs {
    /// Update those that have staged the release, though some have not
    #[arg(long)]
    pub(crate) without_missing: bool,
    /// Nodes that are updated at once: a number, or a share such as 10% [default: 10%]
    #[arg(long, value_name = "NODES", value_parser = batch)]
    pub(crate) batch: Option<Batch>,
    /// Nodes that are updated before all others
    #[arg(long, value_name = "NODES", value_delimiter = ',')]
    pub(crate) canary: Vec<String>,
    /// Seconds in which the nodes of a batch must be back and confirmed [default: 1200]
    #[arg(long, value_name = "SECONDS")]
    pub(crate) within: Option<u64>,
    /// Seconds after which a node that is not confirmed goes back to its old image [default: 600]
    #[arg(long, value_name = "SECONDS")]
    pub(crate) trial: Option<u64>,
    /// Time after which the first batch begins, such as +90m or +2h30m. It is told as a time from
    /// now, so no clock need be right [default: at once]
    #[arg(long, value_name = "+TIME", value_parser = after)]
    pub(crate) at: Option<Duration>,
    /// Keep nodes on trial by `ncmesh fleet confirm` alone, not as soon as they are heard
    #[arg(long)]
    pub(crate) by_hand: bool,
    /// Wait until all batches are updated, or the roll-out stops (exit code 7)
    #[arg(long)]
    pub(crate) wait: bool,
}

/// Parses a time from now on.
fn after(text: &str) -> Result<Duration, String> {
    let wrong = || "allowed are times from now such as +45s, +90m, +2h30m or +1d".to_owned();
    let mut rest = text.strip_prefix('+').filter(|rest| !rest.is_empty()).ok_or_else(wrong)?;
    let mut seconds = 0_u64;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?;
        let number: u64 = rest[..end].parse().map_err(|_| wrong())?;
        // Not a slice of text: it could end within a character.
        let unit = match rest.as_bytes()[end] {
            b's' => 1,
            b'm' => 60,
            b'h' => 3600,
            b'd' => 86_400,
            _ => return Err(wrong()),
        };
        seconds =
            number.checked_mul(unit).and_then(|n| n.checked_add(seconds)).ok_or_else(wrong)?;
        rest = &rest[end + 1..];
    }
    Ok(Duration::from_secs(seconds))
}

/// Parses the size of a batch.
fn batch(text: &str) -> Result<Batch, String> {
    // Checked here, so that a mistake is found without a daemon.
    let share = text.strip_suffix('%').map(|share| share.parse().map(Batch::Percent).ok());
    let size = share.unwrap_or_else(|| text.parse().map(Batch::Nodes).ok());
    size.filter(|size| size.is_possible())
        .ok_or_else(|| "allowed are 1 or more, or 1% to 100%".into())
}

#[derive(Debug, Subcommand)]
pub(crate) enum FleetCommand {
    #[command(flatten)]
    Rollout(RolloutCommand),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_from_now_has_units() {
        assert_eq!(after("+2h30m"), Ok(Duration::from_secs(9000)));
        assert_eq!(after("+1d"), Ok(Duration::from_secs(86_400)));
        for text in ["", "+", "90m", "22:30", "+5", "+m", "+1x", "+99999999999999999999s", "+1é"] {
            assert!(after(text).is_err(), "{text}");
        }
    }
}
