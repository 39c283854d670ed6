//! `[trust]`: whose link states the node believes.

use ncmesh_engine::settings::{Kind, Mismatch, Toml, Value};
use ncmesh_stack::trust::TrustMode;
use ncmesh_wire::identity::{MAX_NETWORKS, PublicKey};
use std::path::PathBuf;

/// Public keys of networks, as a setting.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct NetworkKeys(pub(super) Vec<PublicKey>);

impl Value for NetworkKeys {
    const KINDS: &'static [Kind] = &[Kind::List];

    fn from_toml(value: Toml) -> Result<Self, Mismatch> {
        let texts = Vec::<String>::from_toml(value)?;
        let keys: Result<Vec<PublicKey>, _> = texts.iter().map(|text| text.parse()).collect();
        let keys = keys.map_err(|e| Mismatch::Value(format!("public keys of networks: {e}")))?;
        if keys.len() > MAX_NETWORKS {
            return Err(Mismatch::Value(format!("up to {MAX_NETWORKS} public keys of networks")));
        }
        Ok(Self(keys))
    }

    fn to_toml(&self) -> Option<Toml> {
        Some(Toml::Array(self.0.iter().map(|key| key.to_string().into()).collect()))
    }
}

ncmesh_engine::settings! {
    /// Section `[trust]` as it is written.
    #[derive(Clone, Debug, PartialEq)]
    pub(super) struct TrustSection {
        /// Whose link states, names and prefixes are believed, see [Trust](../guide/trust.md):
        /// those of all nodes with the shared key, those that bear the key which the node had
        /// first, or those of nodes with a certificate. This node has a key of its own in the last
        /// two.
        pub(super) mode: TrustMode = TrustMode::Key;
        /// Public keys of the network, from `ncmesh network create`; two while its key is changed.
        /// `mode = "network"` needs one.
        pub(super) networks: NetworkKeys = NetworkKeys::default(),
            allowed "a list of one or two public keys";
        /// Certificate of this node, from `ncmesh network admit`.
        pub(super) certificate: Option<PathBuf> = None, allowed "a file",
            absent "`certificate` in `state_dir`";
        /// List of certificates that are not valid any more, from `ncmesh network revoke`. It is
        /// read at the start and by `ncmesh reload`, and told to the mesh; one node is enough.
        pub(super) revocations: Option<PathBuf> = None, allowed "a file";
    }
}

/// `[trust]`, with absolute paths.
#[derive(Clone, Debug, PartialEq)]
pub struct TrustSettings {
    /// Whose link states are believed.
    pub mode: TrustMode,
    /// Public keys of the network.
    pub networks: Vec<PublicKey>,
    /// File with the certificate of this node.
    pub certificate: PathBuf,
    /// File with a list of revocations.
    pub revocations: Option<PathBuf>,
}
