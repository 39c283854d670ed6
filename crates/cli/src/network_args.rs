//! Command line of `ncmesh network`. The doc comments are the texts of `--help`.

use clap::{Args, Subcommand, ValueHint};
use ncmesh_engine::name::{NODE_NAMES, is_node_name};
use ncmesh_wire::identity::PublicKey;
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(crate) enum NetworkCommand {
    /// Make a network: a key that signs certificates of nodes. Keep its file off the nodes
    #[command(after_help = "Example:\n  ncmesh network create town.network")]
    Create(CreateArgs),
    /// Print the public key of a node, which is made if there is none yet
    #[command(after_help = "Example:\n  ncmesh network key --config /etc/ncmesh/node.toml")]
    Key(KeyArgs),
    /// Sign a certificate for a node
    #[command(after_help = "Example:\n  ncmesh network admit town.network --id 7 --name gate \
                            --key KEY \\\n      --prefix 10.7.0.0/16 --out gate.certificate")]
    Admit(AdmitArgs),
    /// Revoke all certificates of a node, and write the list for `[trust] revocations`
    #[command(
        after_help = "Example:\n  ncmesh network revoke town.network gate --out revoked.list"
    )]
    Revoke(RevokeArgs),
    /// Show a network's public key and its certificates
    Show(CreateArgs),
}

#[derive(Debug, Args)]
pub(crate) struct CreateArgs {
    /// File of the network: its secret key. A record of all signatures is in FILE.json beside it
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) network: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct KeyArgs {
    /// The node's configuration file
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) config: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct AdmitArgs {
    /// File of the network
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) network: PathBuf,
    /// Id of the node, as in its configuration
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=65_534))]
    pub(crate) id: u16,
    /// Name of the node, as in its configuration
    #[arg(long, value_parser = name)]
    pub(crate) name: String,
    /// Public key of the node: `ncmesh network key` prints it there
    #[arg(long)]
    pub(crate) key: PublicKey,
    /// Addresses that the node may announce, and any part of them: those of `[tunnel] address` and
    /// `announce`. May be given several times
    #[arg(long, value_name = "PREFIX")]
    pub(crate) prefix: Vec<ipnet::IpNet>,
    /// Days until the certificate ends
    #[arg(long, default_value_t = 365, value_parser = clap::value_parser!(u16).range(1..=3_650))]
    pub(crate) days: u16,
    /// File for the certificate [default: standard output]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct RevokeArgs {
    /// File of the network
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) network: PathBuf,
    /// Id or name of the node
    pub(crate) node: String,
    /// File for the list [default: standard output]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) out: Option<PathBuf>,
}

fn name(text: &str) -> Result<String, String> {
    if is_node_name(text) { Ok(text.to_owned()) } else { Err(format!("allowed are {NODE_NAMES}")) }
}
