//! Messages between operators and members.

use crate::hex::unhex;
use crate::judge::Refusal;
use crate::release::ReleaseId;
use crate::version::Version;
use core::fmt;
use core::time::Duration;
use ncmesh_wire::identity::{PublicKey, Purpose, SecretKey, Signature};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Id of a node, as [`ncmesh_wire::NodeId`], in a form that can be saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Node(pub u16);

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Number of an order. An operator's numbers only grow, so an old order that somebody repeats is
/// known as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Number {
    /// Number of the roll-out: seconds since 1970 when it began, or any that is larger than before.
    pub rollout: u64,
    /// Number of the order within it.
    pub sequence: u64,
}

/// Task of the members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Get the image and check it.
    Stage,
    /// Members that are named install it, others stage it.
    Apply {
        /// Members that install the image.
        apply: BTreeSet<Node>,
        /// Members that keep the image that they try.
        keep: BTreeSet<Node>,
        /// Time within which a member must be named in `keep` after it runs the new image.
        within: Duration,
    },
    /// Install nothing more, and end trials.
    Abort,
    /// Go back to the image before.
    Rollback,
}

/// Order of an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// The operator.
    pub operator: PublicKey,
    /// Its number.
    pub number: Number,
    /// The release.
    pub release: ReleaseId,
    /// Whether the version may be older than the one that runs.
    pub may_downgrade: bool,
    /// Task of the members.
    pub step: Step,
}

impl Order {
    /// Signs the order.
    #[must_use]
    pub fn sign(self, key: &SecretKey) -> SignedOrder {
        let signature = key.sign(Purpose::Order, self.text().as_bytes());
        SignedOrder { order: self, signature }
    }

    /// Returns the text that is signed. Each order has one.
    fn text(&self) -> String {
        let Self { operator, number, release, may_downgrade, step } = self;
        let Number { rollout, sequence } = number;
        let list = |nodes: &BTreeSet<Node>| {
            nodes.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
        };
        let step = match step {
            Step::Stage => "stage".to_owned(),
            Step::Apply { apply, keep, within } => {
                let within = within.as_millis();
                format!("apply {}\nkeep {}\nwithin {within}", list(apply), list(keep))
            }
            Step::Abort => "abort".to_owned(),
            Step::Rollback => "rollback".to_owned(),
        };

        // Fields are separated by characters that none of them contains, so no two orders share a
        // text.
        format!("{operator} {rollout} {sequence}\n{release} {may_downgrade}\n{step}\n")
    }
}

/// Order with its signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedOrder {
    /// The order.
    pub order: Order,
    /// Signature of its operator.
    pub signature: Signature,
}

impl SignedOrder {
    /// Returns whether its operator signed it.
    #[must_use]
    pub fn is_signed(&self) -> bool {
        let text = self.order.text();
        self.order.operator.has_signed(Purpose::Order, text.as_bytes(), &self.signature)
    }
}

/// How far a member is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// It has not got the image, or not checked it.
    Staging,
    /// It has the image.
    Staged,
    /// It installs the image.
    Applying,
    /// It runs the image and waits for being named.
    Trial,
    /// It runs the image for good.
    Kept,
    /// It goes back.
    RollingBack,
    /// It runs the image before.
    RolledBack,
    /// It does not take the release.
    Refused,
    /// It could not install the image or could not go back.
    Failed,
    /// The operator ended the roll-out before it had installed anything.
    Aborted,
    /// It takes part in no roll-outs.
    NoFleet,
}

impl Standing {
    /// All, in the order of their declaration.
    pub(super) const ALL: [Self; 11] = [
        Self::Staging,
        Self::Staged,
        Self::Applying,
        Self::Trial,
        Self::Kept,
        Self::RollingBack,
        Self::RolledBack,
        Self::Refused,
        Self::Failed,
        Self::Aborted,
        Self::NoFleet,
    ];

    /// Returns the name for people.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Staging => "staging",
            Self::Staged => "staged",
            Self::Applying => "applying",
            Self::Trial => "on trial",
            Self::Kept => "kept",
            Self::RollingBack => "rolling back",
            Self::RolledBack => "rolled back",
            Self::Refused => "refused",
            Self::Failed => "failed",
            Self::Aborted => "aborted",
            Self::NoFleet => "has no fleet",
        }
    }
}

/// Reason for how far a member is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// It waits for the manifest.
    #[error("waits for the manifest")]
    Manifest,
    /// It waits for the image.
    #[error("waits for the image")]
    Image,
    /// Its disk is full.
    #[error("no space for the image")]
    Space,
    /// The release is not for it.
    #[error("{0}")]
    Release(String),
    /// The file that it has is not the image.
    #[error("the file is not the image")]
    Damaged,
    /// A hook refused.
    #[error("the hook refused with exit code {0}")]
    Hook(i32),
    /// A hook asked for time.
    #[error("the hook asks to try again later")]
    Later,
    /// A hook did not end in time.
    #[error("the hook did not end")]
    Endless,
    /// It came back with its old version.
    #[error("it came back with version {0}")]
    OldVersion(Version),
    /// It did not restart.
    #[error("it did not restart")]
    NoRestart,
    /// No order named it during its trial.
    #[error("no order reached it in time")]
    Unconfirmed,
    /// The operator ended the roll-out.
    #[error("the operator ended it")]
    Ended,
    /// Another roll-out is under way there.
    #[error("roll-out {rollout} of operator {operator} is under way there")]
    Busy {
        /// The other operator, as digits.
        operator: String,
        /// Number of its roll-out.
        rollout: u64,
    },
}

impl From<Refusal> for Why {
    fn from(refusal: Refusal) -> Self {
        Self::Release(refusal.to_string())
    }
}

/// Answer of a member to an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The member.
    pub node: Node,
    /// Operator of the order.
    pub operator: PublicKey,
    /// Number of its roll-out.
    pub rollout: u64,
    /// How far it is.
    pub standing: Standing,
    /// Why, if there is more to say.
    pub why: Option<Why>,
    /// Version that it runs.
    pub running: Version,
}

/// Public key as text in saved states.
pub(super) mod saved_key {
    use ncmesh_wire::identity::PublicKey;
    use serde::{Deserialize, Deserializer, Serializer, de};

    pub(crate) fn serialize<S: Serializer>(key: &PublicKey, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(key)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<PublicKey, D::Error> {
        String::deserialize(d)?.parse().map_err(de::Error::custom)
    }
}

impl Serialize for ReleaseId {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ReleaseId {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = String::deserialize(d)?;
        let wrong = || serde::de::Error::custom("a release's id is 64 digits");
        unhex(&text).map(Self).ok_or_else(wrong)
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.rollout, self.sequence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_counts_unchanged_only() {
        let key = SecretKey::new(&[1; 32].into());
        let order = Order {
            operator: key.public(),
            number: Number { rollout: 1, sequence: 1 },
            release: ReleaseId([0; 32]),
            may_downgrade: false,
            step: Step::Stage,
        };
        let signed = order.clone().sign(&key);
        assert!(signed.is_signed());
        let nodes = BTreeSet::from([Node(1)]);
        let within = Duration::from_secs(1);
        let apply = Step::Apply { apply: nodes.clone(), keep: BTreeSet::new(), within };
        let keep = Step::Apply { apply: BTreeSet::new(), keep: nodes, within };
        assert_ne!(
            Order { step: apply.clone(), ..order.clone() }.text(),
            Order { step: keep, ..order.clone() }.text()
        );
        for order in [
            Order { step: apply, ..order.clone() },
            Order { step: Step::Rollback, ..order.clone() },
            Order { may_downgrade: true, ..order.clone() },
            Order { release: ReleaseId([1; 32]), ..order.clone() },
            Order { number: Number { rollout: 1, sequence: 2 }, ..order.clone() },
            Order { operator: SecretKey::new(&[2; 32].into()).public(), ..order },
        ] {
            assert!(!SignedOrder { order, ..signed.clone() }.is_signed());
        }
    }
}
