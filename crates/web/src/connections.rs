//! Connections of a server, and what each may take.
//!
//! A client that leaks connections or sends nothing must not take the descriptors and the memory
//! that the rest of the program needs. So connections are few, each must send its request within
//! some seconds, and bodies are short. A connection beyond the limit waits in the kernel's queue
//! until another one ends.

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::StatusCode;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

/// Pause after a connection could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(500);

/// What the clients of a server may take.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Name of the server in the log, such as "the console".
    pub server: &'static str,
    /// Most connections that are served at once.
    pub connections: usize,
    /// Longest time for the header of a request, counted from the connection or the answer before.
    pub header_time: Duration,
    /// Longest time for the body of a request.
    pub body_time: Duration,
    /// Length of the largest body, bytes.
    pub body: usize,
}

impl Limits {
    /// Serves each connection that `accept` polls from a listener, until the runtime ends.
    pub async fn serve<S>(
        self,
        mut accept: impl FnMut(&mut Context<'_>) -> Poll<io::Result<S>>,
        router: Router,
    ) where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let free = Arc::new(Semaphore::new(self.connections));
        let mut refuses = false;
        loop {
            // The semaphore is never closed.
            let Ok(permit) = free.clone().acquire_owned().await else { return };
            match poll_fn(&mut accept).await {
                Ok(stream) => {
                    refuses = false;
                    let router = router.clone();
                    tokio::spawn(async move {
                        let _permit = permit;
                        self.serve_connection(stream, router).await;
                    });
                }
                // For instance, no descriptor is left. One line is enough until it works again.
                Err(e) => {
                    if !std::mem::replace(&mut refuses, true) {
                        tracing::warn!("{} accepts no connections for now: {e}", self.server);
                    }
                    sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    /// Answers the requests of one connection.
    pub async fn serve_connection(
        self,
        stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
        router: Router,
    ) {
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.header_time)
            // A client may close its side after the request, as `nc -N` does.
            .half_close(true)
            .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
        // A client that sends nonsense, too slowly, or goes away concerns nobody else.
        if let Err(e) = connection.await {
            tracing::debug!("a connection of {} ended: {e}", self.server);
        }
    }

    /// Reads the whole body, so that a handler never waits for it.
    ///
    /// # Errors
    /// The status to answer with: the body is too long or cut off, or did not arrive in time.
    pub async fn read_body(self, request: Request) -> Result<Request, StatusCode> {
        let (head, body) = request.into_parts();
        match timeout(self.body_time, to_bytes(body, self.body)).await {
            Ok(Ok(body)) => Ok(Request::from_parts(head, Body::from(body))),
            Ok(Err(_)) => Err(StatusCode::PAYLOAD_TOO_LARGE),
            Err(_) => Err(StatusCode::REQUEST_TIMEOUT),
        }
    }
}
