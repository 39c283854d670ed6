//! `[fleet]`: how the node takes part in roll-outs of router images, and whether it leads some.

use super::inbox::{BYTES, Bytes, program};
use crate::root::without_links;
use ncmesh_engine::settings::{Kind, Mismatch, Toml, Value};
use ncmesh_fleet::{Trust, check_word};
use ncmesh_wire::identity::PublicKey;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Most keys in one setting: a manifest has no more signatures.
const MAX_KEYS: usize = ncmesh_fleet::MAX_SIGNATURES;
/// Name of the directory of images in the state directory, unless `dir` says otherwise.
const DIR: &str = "fleet";

/// Public keys of people, as a setting.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Keys(Vec<PublicKey>);

impl Value for Keys {
    const KINDS: &'static [Kind] = &[Kind::List];

    fn from_toml(value: Toml) -> Result<Self, Mismatch> {
        let texts = Vec::<String>::from_toml(value)?;
        let keys: Result<Vec<PublicKey>, _> = texts.iter().map(|text| text.parse()).collect();
        let keys = keys.map_err(|e| Mismatch::Value(format!("public keys: {e}")))?;
        if keys.len() > MAX_KEYS {
            return Err(Mismatch::Value(format!("up to {MAX_KEYS} public keys")));
        }
        Ok(Self(keys))
    }

    fn to_toml(&self) -> Option<Toml> {
        Some(Toml::Array(self.0.iter().map(|key| key.to_string().into()).collect()))
    }
}

ncmesh_engine::settings! {
    /// `[fleet]` as it is written.
    pub(super) struct FleetSection {
        /// Model of this router, as releases name it. Without it the node installs nothing.
        model: Option<String> = None, allowed "a model such as `tplink,archer-c7-v2`";
        /// File whose first line is the version that runs. Required with `model`.
        version_file: Option<PathBuf> = None, allowed "a file";
        /// Firmware that the node follows, the `name` of its releases. Required with `model`.
        name: Option<String> = None, allowed "a name";
        /// Channel that the node follows.
        channel: String = "stable".to_owned();
        /// Public keys of the people who sign releases. Required with `model`.
        keys: Keys = Keys::default(), allowed "a list of public keys of `ncmesh fleet keygen`";
        /// Keys that must have signed a release.
        need: Option<u16> = None, absent "all of `keys`", within 1..=64, unit "keys";
        /// Public keys of the people who lead roll-outs. Required with `model`.
        operators: Keys = Keys::default(),
            allowed "a list of public keys of `ncmesh fleet keygen`";
        /// Directory for the image that is staged. One in memory, such as `/tmp/ncmesh-fleet`,
        /// spares the flash of a router; an image that is lost by a restart is fetched again.
        dir: Option<PathBuf> = None, allowed "a directory", absent "`fleet` in `state_dir`";
        /// Most bytes that an image may have.
        max_bytes: Option<Bytes> = None, absent "no limit", allowed BYTES;
        /// Program that says whether this router can take an image, with its arguments, see below.
        stage: Vec<String> = Vec::new(), read program,
            allowed "a list: a program and its arguments";
        /// Program that installs an image. Required with `model`.
        apply: Vec<String> = Vec::new(), read program,
            allowed "a list: a program and its arguments";
        /// Program that makes the new image permanent.
        confirm: Vec<String> = Vec::new(), read program,
            allowed "a list: a program and its arguments";
        /// Program that goes back to the image before. Required with `model`.
        rollback: Vec<String> = Vec::new(), read program,
            allowed "a list: a program and its arguments";
        /// File with the secret key of an operator, from `ncmesh fleet keygen`. With it this node
        /// leads roll-outs.
        operator_key: Option<PathBuf> = None, allowed "a file";
    }
}

/// `[fleet]`, checked and with absolute paths.
#[derive(Clone, Debug, PartialEq)]
pub struct FleetConfig {
    /// How the node takes part in roll-outs, if it does.
    pub member: Option<MemberConfig>,
    /// File with the secret key of an operator.
    pub operator_key: Option<PathBuf>,
}

/// A node that takes part in roll-outs.
#[derive(Clone, Debug, PartialEq)]
pub struct MemberConfig {
    /// Its model.
    pub model: String,
    /// File whose first line is the version that runs.
    pub version_file: PathBuf,
    /// Firmware that it follows.
    pub name: String,
    /// Channel that it follows.
    pub channel: String,
    /// Keys whose releases count.
    pub trust: Trust,
    /// Keys whose orders count.
    pub operators: BTreeSet<PublicKey>,
    /// Directory of the image.
    pub dir: PathBuf,
    /// Longest image, bytes.
    pub max_bytes: Option<u64>,
    /// Its hooks.
    pub hooks: FleetHooks,
}

/// Programs with their arguments. Empty for none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FleetHooks {
    /// Says whether the router can take an image.
    pub stage: Vec<String>,
    /// Installs it.
    pub apply: Vec<String>,
    /// Makes it permanent.
    pub confirm: Vec<String>,
    /// Goes back to the image before.
    pub rollback: Vec<String>,
}

impl FleetSection {
    /// Completes and checks the section. `resolve` makes a path absolute, `command` a program's.
    ///
    /// # Errors
    /// A setting that is missing or does not fit the others, in words.
    pub(super) fn checked(
        self,
        state_dir: &Path,
        resolve: impl Fn(&Path) -> PathBuf,
        command: impl Fn(&[String]) -> Vec<String>,
    ) -> Result<FleetConfig, String> {
        let operator_key = self.operator_key.map(|file| resolve(&file));
        let Some(model) = self.model else {
            if operator_key.is_none() {
                return Err(
                    "set model for a node that takes part in roll-outs, or operator_key for \
                            one that leads them"
                        .into(),
                );
            }
            return Ok(FleetConfig { member: None, operator_key });
        };

        // Each of these has no sensible value of its own.
        let required = |key: &str| format!("{key} is required with model");
        let version_file = self.version_file.ok_or_else(|| required("version_file"))?;
        let name = self.name.ok_or_else(|| required("name"))?;
        for (key, is_absent) in [
            ("keys", self.keys.0.is_empty()),
            ("operators", self.operators.0.is_empty()),
            ("apply", self.apply.is_empty()),
            ("rollback", self.rollback.is_empty()),
        ] {
            if is_absent {
                return Err(required(key));
            }
        }

        for (key, value) in [("model", &model), ("name", &name), ("channel", &self.channel)] {
            check_word("it", value).map_err(|e| format!("{key}: {e}"))?;
        }

        // A key that is named twice is one.
        let keys: BTreeSet<PublicKey> = self.keys.0.into_iter().collect();
        let need = self.need.map_or(keys.len(), usize::from);
        let trust = Trust::new(keys, need).map_err(|e| format!("need: {e}"))?;
        let member = MemberConfig {
            model,
            version_file: resolve(&version_file),
            name,
            channel: self.channel,
            trust,
            operators: self.operators.0.into_iter().collect(),
            dir: without_links(&self.dir.map_or_else(|| state_dir.join(DIR), |dir| resolve(&dir))),
            max_bytes: self.max_bytes.map(|bytes| bytes.0),
            hooks: FleetHooks {
                stage: command(&self.stage),
                apply: command(&self.apply),
                confirm: command(&self.confirm),
                rollback: command(&self.rollback),
            },
        };
        Ok(FleetConfig { member: Some(member), operator_key })
    }
}
