//! Radio of the channel emulator, as the lab's daemons have.

use super::{Radio, RadioEvent};
use crate::config::AirConfig;
use crate::etherd::client::{EtherClient, EtherClientError, EtherEvent};
use crate::etherd::datagram::{Access, Outcome};
use ncmesh_engine::time::Duration;
use ncmesh_engine::{TxReport, TxResult};
use ncmesh_wire::NodeId;
use std::collections::HashMap;
use std::io;

/// Radio of the channel emulator.
pub struct AirRadio {
    client: EtherClient,
    /// Radio index of each node heard.
    indices: HashMap<NodeId, u32>,
}

impl AirRadio {
    /// Attaches to the emulator.
    ///
    /// # Errors
    /// [`EtherClientError`]: there is no emulator, or it refuses this radio.
    pub async fn attach(config: &AirConfig) -> Result<Self, EtherClientError> {
        let client = EtherClient::attach(config.ether, config.token, config.index).await?;
        Ok(Self { client, indices: HashMap::new() })
    }
}

impl Radio for AirRadio {
    type Address = u32;

    fn describe(&self) -> String {
        format!("air, radio {} of {}", self.client.radio(), self.client.radios())
    }

    fn hints(&self) -> Vec<String> {
        Vec::new()
    }

    fn learn(&mut self, node: NodeId, address: u32) {
        self.indices.insert(node, address);
    }

    async fn request(&mut self) -> io::Result<()> {
        self.client.request().await.map_err(io::Error::other)
    }

    async fn transmit(&mut self, frame: &[u8], to: Option<NodeId>) -> io::Result<()> {
        let index = to.and_then(|node| self.indices.get(&node));
        let access = index.map_or(Access::Broadcast, |index| Access::Unicast(*index));
        self.client.answer(access, frame).await.map_err(io::Error::other)
    }

    async fn decline(&mut self) -> io::Result<()> {
        self.client.decline().await.map_err(io::Error::other)
    }

    async fn event(&mut self, buffer: &mut Vec<u8>) -> io::Result<RadioEvent<u32>> {
        Ok(match self.client.event().await.map_err(io::Error::other)? {
            EtherEvent::Grant => RadioEvent::Grant,
            EtherEvent::Received { from, bytes } => {
                *buffer = bytes;
                RadioEvent::Received { from }
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
