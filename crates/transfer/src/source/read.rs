//! How a source reads its file: a generation at a time, checked against what was announced.

use super::FileSource;
use super::state::CloseReason;
use ncmesh_code::Encoder;
use ncmesh_engine::file::check::{GenerationId, Nonce, probe};
use ncmesh_engine::file::{SendFailure, merkle};
use ncmesh_engine::storage::StorageError;
use ncmesh_engine::time::Duration;
use ncmesh_engine::toolkit::backoff::Backoff;
use ncmesh_engine::{Context, Event};

/// Pauses between attempts to read a file that cannot be read for now.
const REREAD_PAUSES: Backoff =
    Backoff { first: Duration::from_secs(1), longest: Duration::from_secs(64) };

/// Why a generation cannot be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LoadError {
    /// It cannot be read for now.
    Later,
    /// The file cannot be sent any more.
    Failed(SendFailure),
}

impl FileSource {
    /// Returns an encoder of a generation; `used` is one of another generation, whose memory serves
    /// again. Returns `None` if the generation cannot be read for now, or cannot be sent any more:
    /// then the transfer is closed.
    pub fn encoder(
        &mut self,
        cx: &mut Context<'_>,
        generation: u32,
        used: Option<Encoder>,
    ) -> Option<Encoder> {
        match self.load(generation, used, cx) {
            Ok(encoder) => Some(encoder),
            Err(LoadError::Later) => {
                self.reread_at = cx.now + REREAD_PAUSES.pause(self.read_failures);
                self.read_failures = self.read_failures.saturating_add(1);
                None
            }
            Err(LoadError::Failed(failure)) => {
                self.close(CloseReason::Failed(failure), cx.now);
                cx.events.push_back(Event::SendFailed(self.manifest.flow, failure));
                None
            }
        }
    }

    /// Returns the sums of a generation by the probe of a nonce, `columns` bytes for each packet.
    pub(crate) fn sums(
        &mut self,
        cx: &mut Context<'_>,
        of: GenerationId,
        nonce: Nonce,
        columns: usize,
    ) -> Option<Vec<u8>> {
        let encoder = self.encoder(cx, of.generation, None)?;
        let probe = probe(of, nonce, encoder.shape(), columns)?;
        let symbols = (0..encoder.shape().generation_size()).filter_map(|i| encoder.symbol(i));
        probe.sums(&symbols.collect::<Vec<_>>().concat()).ok()
    }

    /// Reads a generation into an encoder. Fails if it is not what was announced: receivers would
    /// find it forged, again and again.
    fn load(
        &mut self,
        generation: u32,
        used: Option<Encoder>,
        cx: &mut Context<'_>,
    ) -> Result<Encoder, LoadError> {
        let g = self.manifest.geometry;
        self.scratch.resize(g.data_len(generation), 0);

        // A disk that is busy now may answer later. Any other error ends the transfer.
        cx.storage.read(self.manifest.flow, g.offset(generation), &mut self.scratch).map_err(
            |e| match e {
                StorageError::Busy => LoadError::Later,
                _ => LoadError::Failed(SendFailure::Unreadable),
            },
        )?;
        self.read_failures = 0;

        // The file may have changed since it was announced.
        if self.tree.leaf(generation) != Some(&merkle::leaf(&self.scratch)) {
            return Err(LoadError::Failed(SendFailure::Changed));
        }

        // The generation proves itself: its branch of the hash tree travels with it.
        self.tree.write_branch(generation, &mut self.scratch);
        let shape = g.shape(generation);
        let fitting = used.filter(|encoder| encoder.shape() == shape);
        let mut encoder = fitting.unwrap_or_else(|| Encoder::new(shape));
        let failed = |_| LoadError::Failed(SendFailure::Changed);
        encoder.load(&self.scratch).map_err(failed)?;
        Ok(encoder)
    }
}
