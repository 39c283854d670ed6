//! Radio of the channel emulator, as the lab's daemons have.

use super::{Radio, RadioEvent};
use crate::config::{AirConfig, PortEntry, PortPlace, RadioConfig};
use crate::etherd::client::{EtherClient, EtherClientError, EtherEvent};
use crate::etherd::datagram::{Access, Outcome};
use ncmesh_engine::time::Duration;
use ncmesh_engine::{TxReport, TxResult};
use ncmesh_wire::{RadioAddress, ShortAddress};
use std::io;

/// Radio of the channel emulator.
pub struct AirRadio {
    client: EtherClient,
}

impl Radio for AirRadio {
    type Settings = AirConfig;
    type Error = EtherClientError;

    fn settings(entry: &PortEntry) -> Option<&AirConfig> {
        match &entry.radio {
            RadioConfig::Air(air) => Some(air),
            RadioConfig::Port(_) => None,
        }
    }

    /// Attaches to the emulator.
    async fn open(air: &AirConfig, _: PortPlace) -> Result<Self, EtherClientError> {
        Ok(Self { client: EtherClient::attach(air.ether, air.token, air.index).await? })
    }

    fn describe(&self) -> String {
        format!("air, radio {} of {}", self.client.radio(), self.client.radios())
    }

    fn hints(&self) -> Vec<String> {
        Vec::new()
    }

    fn address(&self) -> Option<RadioAddress> {
        Some(RadioAddress::Short(ShortAddress(self.client.radio().to_be_bytes())))
    }

    async fn request(&mut self) -> io::Result<()> {
        self.client.request().await.map_err(io::Error::other)
    }

    async fn transmit(&mut self, frame: &[u8], to: Option<RadioAddress>) -> io::Result<()> {
        let access = match to.and_then(RadioAddress::short) {
            Some(ShortAddress(index)) => Access::Unicast(u32::from_be_bytes(index)),
            None => Access::Broadcast,
        };
        self.client.answer(access, frame).await.map_err(io::Error::other)
    }

    async fn decline(&mut self) -> io::Result<()> {
        self.client.decline().await.map_err(io::Error::other)
    }

    async fn event(&mut self, buffer: &mut Vec<u8>) -> io::Result<RadioEvent> {
        Ok(match self.client.event().await.map_err(io::Error::other)? {
            EtherEvent::Grant => RadioEvent::Grant,
            EtherEvent::Received { bytes, .. } => {
                *buffer = bytes;
                RadioEvent::Received
            }
            EtherEvent::Report { outcome, airtime_ns, .. } => RadioEvent::Report(TxReport {
                result: match outcome {
                    Outcome::Sent => TxResult::Sent,
                    Outcome::Acked => TxResult::Acked,
                    Outcome::Failed => TxResult::Failed,
                },
                airtime: Duration::from_nanos(airtime_ns),
                heard_by: None,
            }),
        })
    }
}
