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
 * Name of the file scheme. `auto` if absent: the first one of the registry.
 */
scheme?: string, };

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
export type ErrorCode = "bad_request" | "not_found" | "file" | "unknown_receiver" | "unreachable_receiver" | "inbox" | "port" | "ended" | "busy" | "stopping";
