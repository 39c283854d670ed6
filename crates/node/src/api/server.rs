//! Limits of the API's clients. They are local, but a script may leak connections.

use super::types::{ApiError, ErrorCode};
use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::{Json, Router};
use ncmesh_web::{Accepted, Limits};
use std::task::Context;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::UnixListener;

const LIMITS: Limits = Limits {
    server: "the API",
    connections: 32,
    per_client: 32,
    header_time: Duration::from_secs(5),
    body_time: Duration::from_secs(5),
    // A list of many receivers by name.
    body: 1 << 20,
};

/// Answers requests until the runtime ends.
pub(super) async fn serve(listener: UnixListener, router: Router) {
    let accept = |cx: &mut Context<'_>| {
        listener.poll_accept(cx).map_ok(|(stream, _)| Accepted { stream, from: None })
    };
    LIMITS.serve(accept, router.layer(from_fn(read_body))).await;
}

/// Answers the requests of one connection.
pub(super) async fn serve_connection(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    router: Router,
) {
    LIMITS.serve_connection(stream, router.layer(from_fn(read_body))).await;
}

/// Reads the whole body before a handler sees the request.
async fn read_body(request: Request, next: Next) -> Response {
    let status = match LIMITS.read_body(request).await {
        Ok(request) => return next.run(request).await,
        Err(status) => status,
    };
    let why = match status {
        StatusCode::REQUEST_TIMEOUT => "the body did not arrive in time",
        _ => "the body is too long or was cut off",
    };
    (status, Json(ApiError::new(ErrorCode::BadRequest, why))).into_response()
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
        let long = request(LIMITS.body + 1, &"x".repeat(LIMITS.body + 1));
        let refused = answer(&socket, long.as_bytes()).await;
        assert!(
            refused.starts_with("HTTP/1.1 413") && refused.contains("bad_request"),
            "{refused}"
        );
        let nonsense = answer(&socket, b"\0\xFF\r\n\r\n").await;
        assert!(nonsense.starts_with("HTTP/1.1 400"), "{nonsense}");

        // As many idle clients as are served: the next one is served when one of them leaves.
        let mut idle = Vec::new();
        for _ in 0..LIMITS.connections {
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
