//! The daemon's API as the command line uses it: one request per connection.

use crate::args::Remote;
use crate::failure::{Failure, Kind};
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::{Method, Request, header};
use hyper_util::rt::TokioIo;
use ncmesh_node::api::types::{ApiError, Transfer};
use ncmesh_node::config::default_state_dir;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::path::PathBuf;
use tokio::net::UnixStream;
use tokio::runtime::{Builder, Runtime};

/// A daemon to talk to.
pub(crate) struct Client {
    socket: PathBuf,
    runtime: Runtime,
}

impl Client {
    pub(crate) fn new(remote: &Remote) -> Result<Self, Failure> {
        let socket = remote.api.clone().unwrap_or_else(|| default_state_dir().join("api.sock"));
        let runtime = Builder::new_current_thread().enable_all().build()?;
        Ok(Self { socket, runtime })
    }

    pub(crate) fn read<T: DeserializeOwned>(&self, path: &str) -> Result<T, Failure> {
        self.call(Method::GET, path, Vec::new())
    }

    pub(crate) fn delete<T: DeserializeOwned>(&self, path: &str) -> Result<T, Failure> {
        self.call(Method::DELETE, path, Vec::new())
    }

    pub(crate) fn send<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, Failure> {
        self.call(method, path, serde_json::to_vec(body).map_err(|e| strange(&e.to_string()))?)
    }

    pub(crate) fn transfer(&self, id: &str) -> Result<Transfer, Failure> {
        self.read(&format!("/v1/transfers/{id}"))
    }

    fn call<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Vec<u8>,
    ) -> Result<T, Failure> {
        let (ok, answer) = self.runtime.block_on(self.exchange(method, path, body))?;
        if ok {
            return serde_json::from_slice(&answer).map_err(|e| strange(&e.to_string()));
        }
        let error: ApiError =
            serde_json::from_slice(&answer).map_err(|e| strange(&e.to_string()))?;
        Err(error.into())
    }

    /// One request and its answer: whether it went well, and the body.
    async fn exchange(
        &self,
        method: Method,
        path: &str,
        body: Vec<u8>,
    ) -> Result<(bool, Bytes), Failure> {
        let failed = |e: hyper::Error| strange(&e.to_string());
        let stream = UnixStream::connect(&self.socket).await.map_err(|e| self.unreachable(&e))?;
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(failed)?;
        let driven = tokio::spawn(connection);
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::HOST, "ncmesh")
            .header(header::CONTENT_TYPE, "application/json")
            .body(Full::new(Bytes::from(body)))
            .map_err(|e| Failure::new(Kind::Usage, format!("not a possible request: {e}")))?;
        let answer = sender.send_request(request).await.map_err(failed)?;
        let ok = answer.status().is_success();
        let body = answer.into_body().collect().await.map_err(failed)?.to_bytes();
        driven.abort();
        Ok((ok, body))
    }

    fn unreachable(&self, e: &std::io::Error) -> Failure {
        let message = format!(
            "no daemon answers on {} ({e}); start one with `ncmesh node --config node.toml`, or name its socket with --api",
            self.socket.display()
        );
        Failure::new(Kind::NoDaemon, message)
    }
}

fn strange(e: &str) -> Failure {
    Failure::new(
        Kind::NoDaemon,
        format!("the daemon gave no usable answer ({e}); is it the same version?"),
    )
}
