//! Judges certificates: what a node knows of its network.
//!
//! Many routers have no clock that runs while they are off. So a certificate's end is compared with
//! the newest time that the network's holder signed, in any certificate or list of revocations, and
//! with the own clock only if that can be right: if it is later than the signed time, by at most
//! [`LONGEST_AHEAD`]. A clock at 1970 or ten years ahead changes nothing.

use super::certificate::{Certificate, NetworkId, Revocations};
use super::key::PublicKey;

/// Most networks whose certificates count at once: the one before and the one after a change of
/// the network's key.
pub const MAX_NETWORKS: usize = 2;
/// Distance of a clock above the newest signed time up to which it is believed, s: three years.
pub const LONGEST_AHEAD: u64 = 3 * 365 * 86_400;

/// Reason why a certificate or a list does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    /// It is of another network.
    #[error("it is of another network")]
    OtherNetwork,
    /// The network's key did not sign it.
    #[error("its signature is false")]
    Signature,
    /// Its end is over.
    #[error("it has expired")]
    Expired,
    /// The network's holder revoked it.
    #[error("it was revoked")]
    Revoked,
    /// A newer one is known.
    #[error("a newer one is known")]
    Old,
}

/// The network of a node, as the node knows it.
#[derive(Clone, Debug)]
pub struct Authority {
    networks: Vec<PublicKey>,
    /// The latest list of each network.
    revocations: Vec<Revocations>,
    /// Newest time that a holder signed, seconds since 1970.
    signed_at: u64,
}

impl Authority {
    /// Returns the authority of networks with these keys, at most [`MAX_NETWORKS`].
    #[must_use]
    pub fn new(networks: impl IntoIterator<Item = PublicKey>) -> Self {
        let networks = networks.into_iter().take(MAX_NETWORKS).collect();
        Self { networks, revocations: Vec::new(), signed_at: 0 }
    }

    /// Returns the latest lists of revocations.
    #[must_use]
    pub fn revocations(&self) -> &[Revocations] {
        &self.revocations
    }

    /// Returns the time by which certificates are judged, if the own clock says `clock`; seconds
    /// since 1970.
    #[must_use]
    pub fn time(&self, clock: Option<u64>) -> u64 {
        let latest = self.signed_at.saturating_add(LONGEST_AHEAD);
        clock.filter(|clock| *clock <= latest).map_or(self.signed_at, |c| c.max(self.signed_at))
    }

    /// Checks a certificate that was heard, and takes note of the time at which it was signed.
    ///
    /// # Errors
    /// A [`Rejection`] if it does not count.
    pub fn admit(
        &mut self,
        certificate: &Certificate,
        clock: Option<u64>,
    ) -> Result<(), Rejection> {
        // A network that is not trusted costs no check of a signature.
        let network = self.network(certificate.network).ok_or(Rejection::OtherNetwork)?;
        if !certificate.is_signed_by(&network) {
            return Err(Rejection::Signature);
        }

        // An expired certificate still tells the time: its signature is as good as it was.
        self.signed_at = self.signed_at.max(certificate.issued);
        self.is_valid(certificate, clock)
    }

    /// Takes note of a certificate that this node admitted in an earlier run. Returns whether it is
    /// of a network that still counts.
    pub fn recall(&mut self, certificate: &Certificate) -> bool {
        let is_known = self.network(certificate.network).is_some();
        if is_known {
            self.signed_at = self.signed_at.max(certificate.issued);
        }
        is_known
    }

    /// Checks a certificate whose signature was checked before.
    ///
    /// # Errors
    /// [`Rejection::Revoked`] or [`Rejection::Expired`].
    pub fn is_valid(&self, certificate: &Certificate, clock: Option<u64>) -> Result<(), Rejection> {
        // A serial number says nothing without the network that gave it.
        let is_revoked = |list: &&Revocations| {
            list.network == certificate.network && list.serials.contains(&certificate.serial)
        };
        if self.revocations.iter().any(|list| is_revoked(&list)) {
            return Err(Rejection::Revoked);
        }

        if certificate.expires <= self.time(clock) {
            return Err(Rejection::Expired);
        }

        Ok(())
    }

    /// Takes a list of revocations if it is newer than the one known of its network.
    ///
    /// # Errors
    /// A [`Rejection`] if it does not count.
    pub fn revoke(&mut self, list: Revocations) -> Result<(), Rejection> {
        let network = self.network(list.network).ok_or(Rejection::OtherNetwork)?;

        // The number is compared first: a list that is repeated costs no check of a signature.
        let known = self.revocations.iter().position(|known| known.network == list.network);
        if known.is_some_and(|at| self.revocations[at].number >= list.number) {
            return Err(Rejection::Old);
        }
        if !list.is_signed_by(&network) {
            return Err(Rejection::Signature);
        }

        // Only one list of each trusted network is kept, so senders cannot make this grow.
        self.signed_at = self.signed_at.max(list.issued);
        match known {
            Some(at) => self.revocations[at] = list,
            None => self.revocations.push(list),
        }

        Ok(())
    }

    /// Returns the ids of the networks whose certificates count.
    pub fn ids(&self) -> impl Iterator<Item = NetworkId> + '_ {
        self.networks.iter().map(NetworkId::of)
    }

    fn network(&self, id: [u8; 8]) -> Option<PublicKey> {
        self.networks.iter().find(|key| NetworkId::of(key) == NetworkId(id)).copied()
    }
}
