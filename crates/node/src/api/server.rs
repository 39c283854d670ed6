//! Connections of the API, and what each may take.
//!
//! Clients are local, but a script that leaks connections must not take the descriptors that the
//! daemon needs for files. So connections are few, and each must send its request within some
//! seconds. A connection beyond the limit waits in the socket's queue until another one ends.

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::UnixListener;
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

use super::types::{ApiError, ErrorCode};

/// Most connections that are served at once.
const MAX_CONNECTIONS: usize = 32;
/// Longest time for the header of a request, counted from the connection or the answer before.
const HEADER_TIME: Duration = Duration::from_secs(5);
/// Longest time for the body of a request.
const BODY_TIME: Duration = Duration::from_secs(5);
/// Length of the largest body, bytes: a list of many receivers by name.
const MAX_BODY: usize = 1 << 20;
/// Pause after a connection could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(500);

/// Answers requests until the runtime ends.
pub(super) async fn serve(listener: UnixListener, router: Router) {
    let free = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let mut refused = false;
    loop {
        // The semaphore is never closed.
        let Ok(permit) = free.clone().acquire_owned().await else { return };
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(e) => {
                note_refusal(&e, &mut refused);
                sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        refused = false;
        let router = router.clone();
        tokio::spawn(async move {
            let _permit = permit;
            serve_connection(stream, router).await;
        });
    }
}

/// Logs once that connections cannot be accepted, for instance because no descriptor is left.
fn note_refusal(e: &io::Error, refused: &mut bool) {
    if !*refused {
        tracing::warn!("the API accepts no connections for now: {e}");
    }
    *refused = true;
}

/// Answers the requests of one connection.
pub(super) async fn serve_connection(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    router: Router,
) {
    let router = router.layer(from_fn(read_body));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIME)
        // A client may close its side after the request, as `nc -N` does.
        .half_close(true)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    // A client that sends nonsense, too slowly, or goes away concerns nobody else.
    if let Err(e) = connection.await {
        tracing::debug!("a connection of the API ended: {e}");
    }
}

/// Reads the whole body before a handler sees the request.
async fn read_body(request: Request, next: Next) -> Response {
    let refused =
        |status, why: &str| (status, axum::Json(ApiError::new(ErrorCode::BadRequest, why)));
    let (head, body) = request.into_parts();
    match timeout(BODY_TIME, to_bytes(body, MAX_BODY)).await {
        Ok(Ok(body)) => next.run(Request::from_parts(head, Body::from(body))).await,
        Ok(Err(_)) => refused(StatusCode::PAYLOAD_TOO_LARGE, "the body is too long or was cut off")
            .into_response(),
        Err(_) => {
            refused(StatusCode::REQUEST_TIMEOUT, "the body did not arrive in time").into_response()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::routing::post;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::UnixStream;

    /// Sends `request` and returns the answer.
    async fn answer(socket: &std::path::Path, request: &[u8]) -> String {
        let mut stream = UnixStream::connect(socket).await.unwrap();
        // The answer may come before all was sent.
        let _ = stream.write_all(request).await;
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        String::from_utf8_lossy(&answer).into_owned()
    }

    #[tokio::test]
    async fn connections_beyond_the_limit_wait_and_long_bodies_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("api.sock");
        let listener = UnixListener::bind(&socket).unwrap();
        let router = Router::new().route("/", post(async |body: String| body));
        tokio::spawn(serve(listener, router));

        let request = |length: usize, body: &str| {
            format!(
                "POST / HTTP/1.1\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
            )
        };
        assert!(answer(&socket, request(5, "hello").as_bytes()).await.ends_with("hello"));
        let long = request(MAX_BODY + 1, &"x".repeat(MAX_BODY + 1));
        let refused = answer(&socket, long.as_bytes()).await;
        assert!(
            refused.starts_with("HTTP/1.1 413") && refused.contains("bad_request"),
            "{refused}"
        );
        let nonsense = answer(&socket, b"\0\xFF\r\n\r\n").await;
        assert!(nonsense.starts_with("HTTP/1.1 400"), "{nonsense}");

        // As many idle clients as are served: the next one is served when one of them leaves.
        let mut idle = Vec::new();
        for _ in 0..MAX_CONNECTIONS {
            idle.push(UnixStream::connect(&socket).await.unwrap());
        }
        let hello = request(5, "hello");
        let waiting = answer(&socket, hello.as_bytes());
        tokio::pin!(waiting);
        for _ in 0..100 {
            tokio::task::yield_now().await;
            assert!(is_pending(waiting.as_mut()).await);
        }
        idle.pop();
        assert!(waiting.await.ends_with("hello"));
    }

    /// Polls a future once. Returns whether it is not done.
    async fn is_pending<F: Future>(mut future: std::pin::Pin<&mut F>) -> bool {
        std::future::poll_fn(|cx| std::task::Poll::Ready(future.as_mut().poll(cx).is_pending()))
            .await
    }
}
