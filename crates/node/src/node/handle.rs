//! How other threads and tasks reach the node: they send it a call, the loop makes it.

use super::Node;
use crate::api::types::{ApiError, ErrorCode};
use tokio::sync::{mpsc, oneshot};

/// A call on the node.
pub type Command = Box<dyn FnOnce(&mut Node) + Send>;

/// Sends calls to the node's loop.
#[derive(Clone, Debug)]
pub struct Handle {
    commands: mpsc::UnboundedSender<Command>,
}

impl Handle {
    /// A handle, and where its calls come out.
    #[must_use]
    pub fn new() -> (Self, mpsc::UnboundedReceiver<Command>) {
        let (commands, calls) = mpsc::unbounded_channel();
        (Self { commands }, calls)
    }

    /// Makes `call` on the node and waits for its answer.
    ///
    /// # Errors
    /// [`ErrorCode::Stopping`] where the daemon has stopped.
    pub async fn call<R: Send + 'static>(
        &self,
        call: impl FnOnce(&mut Node) -> R + Send + 'static,
    ) -> Result<R, ApiError> {
        let stopping = || ApiError::new(ErrorCode::Stopping, "the daemon is stopping");
        let (answer, answered) = oneshot::channel();
        let command: Command = Box::new(move |node| {
            // The task that asked may be gone.
            let _ = answer.send(call(node));
        });

        self.commands.send(command).map_err(|_| stopping())?;
        answered.await.map_err(|_| stopping())
    }

    /// Does `work` in a task of its own, then makes `then` on the node with its result.
    pub(super) fn task<R: Send + 'static>(
        &self,
        work: impl Future<Output = R> + Send + 'static,
        then: impl FnOnce(&mut Node, R) + Send + 'static,
    ) {
        let commands = self.commands.clone();
        tokio::spawn(async move {
            let result = work.await;
            // Nobody wants to know where the daemon has stopped.
            let _ = commands.send(Box::new(move |node| then(node, result)));
        });
    }

    /// Does `work` on a thread that may block, then makes `then` on the node with its result.
    pub(super) fn work<R: Send + 'static>(
        &self,
        work: impl FnOnce() -> R + Send + 'static,
        then: impl FnOnce(&mut Node, R) + Send + 'static,
    ) {
        let commands = self.commands.clone();
        tokio::task::spawn_blocking(move || {
            let result = work();
            // A daemon that has stopped finds out at its next start.
            let _ = commands.send(Box::new(move |node| then(node, result)));
        });
    }
}
