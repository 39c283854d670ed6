//! Paths of the HTTP API, with one handler for each path and method.
//!
//! A handler checks its input, runs a closure on the node's loop through the [`Handle`], and
//! answers with JSON.

use super::answers::{self, BandwidthRequest, EchoRequest, Measured, Reloaded};
use super::blocking::{blocking, check_usable};
use super::fleet::{ApplyRequest, FleetEvents, FleetStatus, PushRequest};
use super::measure;
use super::reload::reload;
use super::roll_out;
use super::send::send;
use super::spool;
use super::types::{
    ApiError, ErrorCode, Inbox, JoinedGroup, Peer, SendRequest, Spooled, Started, Status, Stream,
    Transfer, TunnelChange,
};
use crate::node::{Handle, METRICS_TYPE, Node, no_such_transfer};
use crate::root::without_links;
use crate::stream::{ReceiveStream, SendStream};
use axum::body::Body;
use axum::extract::rejection::JsonRejection;
use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post, put};
use axum::{Json, Router};
use ncmesh_engine::wording::in_words;
use ncmesh_wire::FlowId;
use serde_json::Value;

type Answer<T> = Result<Json<T>, ApiError>;

/// Returns the paths of the API, with an answer to all others.
pub(super) fn router(handle: Handle) -> Router {
    let spool = Router::new().route("/v1/spool", post(keep_contents)).with_state(handle.clone());
    let fleet = fleet_commands(handle.clone());
    commands(handle.clone()).merge(spool).merge(fleet).merge(metrics(handle)).fallback(async || {
        ApiError::new(ErrorCode::NotFound, "no such path; see docs/reference/api.md")
    })
}

/// Returns the paths of the API.
pub(crate) fn commands(handle: Handle) -> Router {
    Router::new()
        .route("/v1/status", get(status))
        .route("/v1/peers", get(peers))
        .route("/v1/paths/{node}", get(path_to).post(echo_path))
        .route("/v1/bandwidth", post(bandwidth))
        .route("/v1/topology", get(topology))
        .route("/v1/device", get(device))
        .route("/v1/inbox", get(inbox).put(set_inbox))
        .route("/v1/tunnel", put(change_tunnel))
        .route("/v1/reload", post(reload_configuration))
        .route("/v1/transfers", get(transfers).post(start))
        .route("/v1/transfers/{id}", get(transfer).delete(cancel))
        .route("/v1/streams", get(streams))
        .route("/v1/streams/sent", put(send_stream))
        .route("/v1/streams/sent/{group}", delete(stop_sending))
        .route("/v1/streams/received", get(joined_groups).put(receive_stream))
        .route("/v1/streams/received/{group}", delete(stop_receiving))
        .with_state(handle)
}

/// Returns the paths of roll-outs. They are for this host alone: browsers have none of them.
fn fleet_commands(handle: Handle) -> Router {
    Router::new()
        .route("/v1/fleet", get(fleet_status))
        .route("/v1/fleet/events", get(fleet_events))
        .route("/v1/fleet/push", post(push_fleet))
        .route("/v1/fleet/apply", post(apply_fleet))
        .route("/v1/fleet/confirm", post(confirm_fleet))
        .route("/v1/fleet/abort", post(abort_fleet))
        .route("/v1/fleet/rollback", post(rollback_fleet))
        .with_state(handle)
}

/// Returns the path that programs read counters from.
pub(crate) fn metrics(handle: Handle) -> Router {
    Router::new().route("/metrics", get(show_metrics)).with_state(handle)
}

async fn show_metrics(State(handle): State<Handle>) -> Result<Response, ApiError> {
    let text = handle.call(|node| node.metrics()).await?;
    Ok(match text {
        Ok(text) => ([(header::CONTENT_TYPE, METRICS_TYPE)], text).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    })
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let status = match self.code {
            ErrorCode::BadRequest => StatusCode::BAD_REQUEST,
            ErrorCode::NotFound => StatusCode::NOT_FOUND,
            ErrorCode::Ended | ErrorCode::Busy => StatusCode::CONFLICT,
            ErrorCode::Stopping => StatusCode::SERVICE_UNAVAILABLE,
            ErrorCode::File
            | ErrorCode::Refused
            | ErrorCode::Inbox
            | ErrorCode::Port
            | ErrorCode::UnknownReceiver
            | ErrorCode::UnreachableReceiver => StatusCode::UNPROCESSABLE_ENTITY,
        };
        (status, Json(self)).into_response()
    }
}

async fn status(State(handle): State<Handle>) -> Answer<Status> {
    handle.call(|node| node.status()).await.map(Json)
}

async fn peers(State(handle): State<Handle>) -> Answer<Vec<Peer>> {
    handle.call(|node| node.peers()).await.map(Json)
}

async fn path_to(State(handle): State<Handle>, Path(node): Path<String>) -> Answer<answers::Path> {
    handle.call(move |own| own.path_to(&node)).await?.map(Json)
}

async fn echo_path(
    State(handle): State<Handle>,
    Path(node): Path<String>,
    request: Result<Json<EchoRequest>, JsonRejection>,
) -> Answer<answers::Path> {
    measure::echo_path(&handle, node, body(request)?).await.map(Json)
}

async fn bandwidth(
    State(handle): State<Handle>,
    request: Result<Json<BandwidthRequest>, JsonRejection>,
) -> Answer<Measured> {
    measure::bandwidth(&handle, body(request)?).await.map(Json)
}

async fn topology(State(handle): State<Handle>) -> Answer<Value> {
    handle.call(|node| node.topology()).await.map(Json)
}

async fn device(State(handle): State<Handle>) -> Answer<Value> {
    handle.call(|node| node.device_monitoring()).await.map(Json)
}

async fn inbox(State(handle): State<Handle>) -> Answer<Inbox> {
    handle.call(|node| Inbox { dir: node.inbox().cloned() }).await.map(Json)
}

async fn set_inbox(
    State(handle): State<Handle>,
    request: Result<Json<Inbox>, JsonRejection>,
) -> Answer<Inbox> {
    let Inbox { dir } = body(request)?;
    let Some(dir) = dir.filter(|dir| dir.is_absolute()) else {
        return Err(ApiError::new(ErrorCode::BadRequest, "dir must be an absolute path"));
    };

    // Links are followed now, while the user names the directory, and never again.
    let dir = blocking(move || without_links(&dir)).await?;
    check_usable(dir.clone()).await?;
    handle
        .call(move |node| {
            node.use_inbox(dir);
            Inbox { dir: node.inbox().cloned() }
        })
        .await
        .map(Json)
}

async fn change_tunnel(
    State(handle): State<Handle>,
    request: Result<Json<TunnelChange>, JsonRejection>,
) -> Answer<TunnelChange> {
    carry_out(&handle, request, Node::change_tunnel).await
}

async fn reload_configuration(State(handle): State<Handle>) -> Answer<Reloaded> {
    reload(&handle).await.map(Json)
}

async fn transfers(State(handle): State<Handle>) -> Answer<Vec<Transfer>> {
    handle.call(|node| node.transfers()).await.map(Json)
}

async fn transfer(State(handle): State<Handle>, Path(id): Path<String>) -> Answer<Transfer> {
    flow(&id)?;
    let all = handle.call(|node| node.transfers()).await?;
    all.into_iter().find(|t| t.id == id).map(Json).ok_or_else(|| no_such_transfer(&id))
}

async fn start(
    State(handle): State<Handle>,
    request: Result<Json<SendRequest>, JsonRejection>,
) -> Result<(StatusCode, Json<Started>), ApiError> {
    let flow = send(&handle, body(request)?).await?;
    Ok((StatusCode::CREATED, Json(Started { id: flow.to_string() })))
}

async fn keep_contents(State(handle): State<Handle>, body: Body) -> Answer<Spooled> {
    spool::keep(&handle, body).await.map(Json)
}

async fn cancel(State(handle): State<Handle>, Path(id): Path<String>) -> Answer<Started> {
    let flow = flow(&id)?;
    handle.call(move |node| node.cancel(flow)).await??;
    Ok(Json(Started { id }))
}

async fn fleet_status(State(handle): State<Handle>) -> Answer<FleetStatus> {
    handle.call(|node| node.fleet_status()).await.map(Json)
}

async fn fleet_events(State(handle): State<Handle>) -> Answer<FleetEvents> {
    handle.call(|node| node.fleet_events()).await.map(Json)
}

async fn push_fleet(
    State(handle): State<Handle>,
    request: Result<Json<PushRequest>, JsonRejection>,
) -> Answer<FleetStatus> {
    roll_out::push(&handle, body(request)?).await.map(Json)
}

async fn apply_fleet(
    State(handle): State<Handle>,
    request: Result<Json<ApplyRequest>, JsonRejection>,
) -> Answer<FleetStatus> {
    let request = body(request)?;
    handle.call(move |node| roll_out::apply(node, &request)).await?.map(Json)
}

async fn confirm_fleet(State(handle): State<Handle>) -> Answer<FleetStatus> {
    handle.call(roll_out::confirm).await?.map(Json)
}

async fn abort_fleet(State(handle): State<Handle>) -> Answer<FleetStatus> {
    handle.call(roll_out::abort).await?.map(Json)
}

async fn rollback_fleet(State(handle): State<Handle>) -> Answer<FleetStatus> {
    handle.call(roll_out::rollback).await?.map(Json)
}

async fn streams(State(handle): State<Handle>) -> Answer<Vec<Stream>> {
    handle.call(|node| node.streams()).await.map(Json)
}

async fn joined_groups(State(handle): State<Handle>) -> Answer<Vec<JoinedGroup>> {
    handle.call(|node| node.joined_groups()).await.map(Json)
}

async fn send_stream(
    State(handle): State<Handle>,
    request: Result<Json<SendStream>, JsonRejection>,
) -> Answer<SendStream> {
    let send = |node: &mut Node, request: &SendStream| {
        node.with_streams(|streams, moment| streams.send(request, moment))
    };
    carry_out(&handle, request, send).await
}

async fn stop_sending(
    State(handle): State<Handle>,
    Path(group): Path<String>,
) -> Answer<Vec<Stream>> {
    let stop = move |node: &mut Node| {
        node.with_streams(|streams, moment| streams.stop_sending(&group, moment))?;
        Ok(node.streams())
    };
    handle.call(stop).await?.map(Json)
}

async fn receive_stream(
    State(handle): State<Handle>,
    request: Result<Json<ReceiveStream>, JsonRejection>,
) -> Answer<ReceiveStream> {
    let receive = |node: &mut Node, request: &ReceiveStream| {
        node.with_streams(|streams, moment| streams.receive(request, moment))
    };
    carry_out(&handle, request, receive).await
}

async fn stop_receiving(
    State(handle): State<Handle>,
    Path(group): Path<String>,
) -> Answer<Vec<Stream>> {
    let stop = move |node: &mut Node| {
        node.with_streams(|streams, moment| streams.stop_receiving(&group, moment))?;
        Ok(node.streams())
    };
    handle.call(stop).await?.map(Json)
}

/// Applies a request to the node and answers with the same request.
async fn carry_out<T: Send + 'static>(
    handle: &Handle,
    request: Result<Json<T>, JsonRejection>,
    act: fn(&mut Node, &T) -> Result<(), ApiError>,
) -> Answer<T> {
    let request = body(request)?;
    handle.call(move |node| act(node, &request).map(|()| request)).await?.map(Json)
}

fn flow(id: &str) -> Result<FlowId, ApiError> {
    id.parse()
        .map_err(|e| ApiError::new(ErrorCode::BadRequest, format!("{id:?} is no transfer id: {e}")))
}

fn body<T>(request: Result<Json<T>, JsonRejection>) -> Result<T, ApiError> {
    request
        .map(|Json(body)| body)
        .map_err(|e| ApiError::new(ErrorCode::BadRequest, refused(&e.body_text())))
}

/// Ranges of the numbers in requests, by their keys.
const RANGES: [(&str, &str); 9] = [
    ("background", "1 to 100 percent"),
    ("limit_bps", "1000 or more, in whole bit/s"),
    ("priority", "0 to 9"),
    ("count", "0 to 20"),
    ("seconds", "0.1 to 60"),
    ("bytes", "1 to 65535, and what the scheme carries"),
    ("deadline_ms", "20 to 5000"),
    ("rtp", "1 to 65535"),
    ("min_rate_bps", "0 or more, in whole bit/s"),
];

/// Returns why a body is refused, with the key and what is allowed.
fn refused(problem: &str) -> String {
    // The words of axum are in front of the key, those of serde_json behind the problem.
    let place = |problem: &str| problem.rsplit_once(" at line ").map(|(said, _)| said.to_owned());
    let said = problem.split_once(" target type: ").and_then(|(_, said)| place(said));
    let Some(said) = said else { return problem.to_owned() };

    let (key, message) = match said.split_once(": ") {
        Some((key, message)) if !key.contains(' ') => (Some(key), message),
        _ => (None, said.as_str()),
    };

    // serde names a number only by its type, so the range is added here.
    let numbers = ["integer `", "floating point `", "number out of range"];
    let is_number = numbers.iter().any(|kind| message.contains(kind));
    match RANGES.iter().find(|(name, _)| Some(*name) == key) {
        Some((key, range)) if is_number => match message.split('`').nth(1) {
            Some(value) => format!("{key} = {value}: allowed is {range}"),
            None => format!("{key}: allowed is {range}"),
        },
        _ if message.starts_with("invalid ") => in_words(key, message).into_owned(),
        _ => problem.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_out_of_range_are_refused_with_key_and_range() {
        let head = "Failed to deserialize the JSON body into the target type: ";
        for (problem, said) in [
            (
                "background: invalid value: integer `300`, expected u8 at line 1 column 9",
                "background = 300: allowed is 1 to 100 percent",
            ),
            (
                "deadline_ms: invalid type: floating point `1.5`, expected u16 at line 1 column 9",
                "deadline_ms = 1.5: allowed is 20 to 5000",
            ),
            ("seconds: number out of range at line 1 column 30", "seconds: allowed is 0.1 to 60"),
            (
                "to: invalid type: integer `3`, expected a string at line 2 column 4",
                "`to` must be text in quotes such as \"a\", not the number `3`",
            ),
            (
                "invalid type: sequence, expected a map at line 1 column 0",
                "the value must be a table of keys and values, not a list",
            ),
        ] {
            assert_eq!(refused(&format!("{head}{problem}")), said);
        }
        let other = "Failed to parse the request body as JSON: expected value at line 1 column 1";
        assert_eq!(refused(other), other);
        let missing = format!("{head}missing field `to` at line 1 column 2");
        assert_eq!(refused(&missing), missing);
    }
}
