//! Client of the HTTP API. Every request uses a connection of its own.

use super::types::ApiError;
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Bytes, Frame, Incoming};
use hyper::{Method, Request, Response, StatusCode, header};
use hyper_util::rt::TokioIo;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::task::{self, Poll};
use tokio::net::UnixStream;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Reason why a request failed.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// No daemon answers on the socket.
    #[error(
        "no daemon answers on {path} ({1}); start one with `ncmesh node --config node.toml`, \
         or name its configuration with --config, or its socket with --api",
        path = .0.display()
    )]
    Unreachable(PathBuf, io::Error),
    /// The daemon's socket belongs to another user.
    #[error(
        "no permission for {}: run this command as the daemon's user or as root, or set [api] \
         group = true in the daemon's configuration and join its group",
        .0.display()
    )]
    Forbidden(PathBuf),
    /// The answer is not one of this API.
    #[error("the daemon gave no usable answer ({0}); is it the same version?")]
    Strange(String),
    /// The path or body cannot be sent.
    #[error("not a possible request: {0}")]
    Impossible(String),
    /// The daemon answered with an error.
    #[error(transparent)]
    Refused(#[from] ApiError),
}

/// Client of one daemon.
#[derive(Clone, Debug)]
pub struct ApiClient {
    socket: PathBuf,
}

impl ApiClient {
    /// Returns a client of the daemon whose API is on `socket`.
    #[must_use]
    pub fn new(socket: PathBuf) -> Self {
        Self { socket }
    }

    /// Returns the path of the daemon's socket.
    #[must_use]
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Sends `GET path`.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn read<T: DeserializeOwned>(&self, path: &str) -> Result<T, ClientError> {
        self.call(Method::GET, path, Vec::new()).await
    }

    /// Sends `DELETE path`.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn delete<T: DeserializeOwned>(&self, path: &str) -> Result<T, ClientError> {
        self.call(Method::DELETE, path, Vec::new()).await
    }

    /// Sends `POST path` with a body.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, ClientError> {
        self.call(Method::POST, path, json(body)?).await
    }

    /// Sends `PUT path` with a body.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn put<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, ClientError> {
        self.call(Method::PUT, path, json(body)?).await
    }

    /// Sends `POST path` with everything that can be read from `contents`. Reads on another thread.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn upload<T: DeserializeOwned>(
        &self,
        path: &str,
        mut contents: impl Read + Send + 'static,
    ) -> Result<T, ClientError> {
        // One chunk waits at most, so a slow daemon slows the reader and memory stays small.
        let (sender, chunks) = mpsc::channel(1);
        std::thread::spawn(move || {
            loop {
                let mut chunk = vec![0; CHUNK];
                let read = match contents.read(&mut chunk) {
                    Ok(0) => return,
                    Ok(read) => Ok({
                        chunk.truncate(read);
                        Bytes::from(chunk)
                    }),
                    Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                    Err(e) => Err(e),
                };
                // The daemon has to be told of an error, or it would take the part for the whole.
                let is_over = read.is_err();
                if sender.blocking_send(read).is_err() || is_over {
                    return;
                }
            }
        });

        answer(&self.exchange(Method::POST, path, Upload { chunks }).await?)
    }

    /// Follows what the mesh does: server-sent events of `path`, each with one line of data.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn follow(&self, path: &str) -> Result<Messages, ClientError> {
        let (answer, driven) = self.request(Method::GET, path, whole(Vec::new())).await?;
        if answer.status() == StatusCode::NOT_FOUND {
            return Err(strange(&io::Error::other("it has no live messages")));
        }
        Ok(Messages { body: answer.into_body(), read: Vec::new(), driven })
    }

    async fn call<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Vec<u8>,
    ) -> Result<T, ClientError> {
        answer(&self.exchange(method, path, whole(body)).await?)
    }

    /// Sends one request, and reads the answer.
    async fn exchange<B>(&self, method: Method, path: &str, body: B) -> Result<Answer, ClientError>
    where
        B: Body<Data = Bytes, Error = io::Error> + Send + 'static,
    {
        let (answer, driven) = self.request(method, path, body).await?;
        let is_success = answer.status().is_success();
        let body = answer.into_body().collect().await.map_err(|e| strange(&e))?.to_bytes();
        driven.abort();
        Ok(Answer { is_success, body })
    }

    /// Sends one request. Returns the answer, whose body is still to come, and the task that
    /// drives the connection.
    async fn request<B>(
        &self,
        method: Method,
        path: &str,
        body: B,
    ) -> Result<(Response<Incoming>, JoinHandle<hyper::Result<()>>), ClientError>
    where
        B: Body<Data = Bytes, Error = io::Error> + Send + 'static,
    {
        let failed = |e: hyper::Error| strange(&e);
        // A daemon that is not there is another mistake than one that this user may not reach.
        let stream = UnixStream::connect(&self.socket).await.map_err(|e| match e.kind() {
            io::ErrorKind::PermissionDenied => ClientError::Forbidden(self.socket.clone()),
            _ => ClientError::Unreachable(self.socket.clone(), e),
        })?;
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(failed)?;
        // hyper drives the connection in a task of its own. One request is all it carries.
        let driven = tokio::spawn(connection);

        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::HOST, "ncmesh")
            .header(header::CONTENT_TYPE, "application/json")
            .body(body)
            .map_err(|e| ClientError::Impossible(e.to_string()))?;

        Ok((sender.send_request(request).await.map_err(failed)?, driven))
    }
}

/// Most bytes of contents that are sent at once.
const CHUNK: usize = 64 << 10;

/// Body of a request whose length is not known.
struct Upload {
    chunks: mpsc::Receiver<io::Result<Bytes>>,
}

impl Body for Upload {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut task::Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        self.chunks.poll_recv(cx).map(|chunk| chunk.map(|chunk| chunk.map(Frame::data)))
    }
}

/// Answer of a daemon.
struct Answer {
    is_success: bool,
    body: Bytes,
}

/// Returns a body that is known as a whole.
fn whole(body: Vec<u8>) -> impl Body<Data = Bytes, Error = io::Error> + Send + 'static {
    Full::new(Bytes::from(body)).map_err(|never| match never {})
}

/// Reads the answer of a daemon.
fn answer<T: DeserializeOwned>(answer: &Answer) -> Result<T, ClientError> {
    if answer.is_success {
        return serde_json::from_slice(&answer.body).map_err(|e| strange(&e));
    }
    let error: ApiError = serde_json::from_slice(&answer.body).map_err(|e| strange(&e))?;
    Err(error.into())
}

/// Longest line of a daemon's messages, bytes: several times that of a mesh of 65,536 links.
const LONGEST_LINE: usize = 32 << 20;

/// Server-sent events of a daemon.
#[derive(Debug)]
pub struct Messages {
    body: Incoming,
    /// Beginning of a line that is not complete.
    read: Vec<u8>,
    driven: JoinHandle<hyper::Result<()>>,
}

impl Messages {
    /// Waits for the data of the next event. Returns `None` when the daemon has ended.
    ///
    /// # Errors
    /// [`ClientError`] if the answer breaks off.
    pub async fn next(&mut self) -> Result<Option<String>, ClientError> {
        loop {
            // A frame of the body may hold several lines, or a part of one.
            while let Some(end) = self.read.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.read.drain(..=end).collect();
                // Other lines are comments and ends of events.
                if let Some(data) = line.strip_prefix(b"data: ") {
                    return Ok(Some(String::from_utf8_lossy(data).trim_end().to_owned()));
                }
            }

            match self.body.frame().await {
                Some(frame) => {
                    let bytes = frame.map_err(|e| strange(&e))?.into_data();
                    self.read.extend_from_slice(&bytes.unwrap_or_default());
                    // Bounded, in case the other end of the socket is no daemon.
                    if self.read.len() > LONGEST_LINE {
                        return Err(ClientError::Strange("a message without an end".into()));
                    }
                }
                None => return Ok(None),
            }
        }
    }
}

impl Drop for Messages {
    fn drop(&mut self) {
        self.driven.abort();
    }
}

fn json(body: &impl Serialize) -> Result<Vec<u8>, ClientError> {
    serde_json::to_vec(body).map_err(|e| ClientError::Impossible(e.to_string()))
}

fn strange(e: &dyn std::error::Error) -> ClientError {
    ClientError::Strange(e.to_string())
}
