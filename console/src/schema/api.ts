// Generated; do not edit: cargo run -p ncmesh-node --example api_types

/**
 * Body of `POST /v1/transfers`.
 */
export type SendRequest = {
/**
 * Absolute path of a file that the daemon can read.
 */
path: string,
/**
 * Receivers.
 */
to: Recipients,
/**
 * Name of the file at the receivers. The file's own name if absent.
 */
name?: string,
/**
 * Name of the file scheme; `auto`, the default one, if absent.
 */
scheme?: string,
/**
 * Sends the file in the background, where it gives way to all else at once: the most of the
 * airtime around a node that it takes, also alone, 1 to 100 percent.
 */
background?: number,
/**
 * The most of the file's data that the source sends, at least 1,000 bit/s. What is sent again
 * counts, too.
 */
limit_bps?: number,
/**
 * Its turn among the files that wait, if many are sent at once: 0 to 9, the highest first; 5
 * if absent.
 */
priority?: number, };

/**
 * Receivers of a file.
 */
export type Recipients = All | Array<string>;

/**
 * The word `all`.
 */
export type All = "all";

/**
 * Answer to `POST /v1/transfers`.
 */
export type Started = {
/**
 * Id of the transfer.
 */
id: string, };

/**
 * Body of `POST /v1/paths/{node}`.
 */
export type EchoRequest = {
/**
 * Echo requests to each hop, 0 to 20.
 */
count: number, };

/**
 * Answer to `GET /v1/paths/{node}`: the best path from this node to another.
 */
export type Path = {
/**
 * Id of the node that it leads to.
 */
id: number,
/**
 * Name of that node.
 */
name: string,
/**
 * Expected number of transmissions along the path (ETX).
 */
etx: number,
/**
 * The hops, the nearest first.
 */
hops: Array<Hop>, };

/**
 * A hop of a path.
 */
export type Hop = {
/**
 * Id of the node that the hop leads to.
 */
id: number,
/**
 * Name of that node.
 */
name: string,
/**
 * Share of broadcasts that it receives of the node before it, 0 to 1.
 */
delivery: number,
/**
 * Share of its broadcasts that the node before it receives, 0 to 1.
 */
delivery_back: number,
/**
 * Expected number of transmissions of this hop, with the MAC's acknowledgment.
 */
etx: number,
/**
 * Median of measured round trips from this node to the end of the hop, s. Absent if none was
 * measured, or nothing came back.
 */
rtt_s: number | null,
/**
 * Name of the port by which this node sends to it. Only of the first hop of a node with
 * several ports: other nodes do not tell theirs.
 */
port?: string, };

/**
 * Answer to `POST /v1/reload`: what became of the settings that differ.
 */
export type Reloaded = {
/**
 * Settings that were changed.
 */
changed: Array<string>,
/**
 * Settings and sections that hold from the next start on.
 */
restart: Array<string>, };

/**
 * Body of every error answer.
 */
export type ApiError = {
/**
 * One line that says what is wrong and what to do.
 */
error: string,
/**
 * Kind of the error.
 */
code: ErrorCode, };

/**
 * Kind of an error, for programs.
 */
export type ErrorCode = "bad_request"
  | "not_found"
  | "file"
  | "refused"
  | "unknown_receiver"
  | "unreachable_receiver"
  | "inbox"
  | "port"
  | "ended"
  | "busy"
  | "stopping";
