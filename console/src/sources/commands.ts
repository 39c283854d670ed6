/** Commands to a daemon: requests of its HTTP API, with the token. */
import type { ApiError, EchoRequest, Path, Reloaded, SendRequest, Started } from "../schema/api";

/** Why a command was not carried out. The message says what to do. */
export class Refused extends Error {}

/** The daemon does not take the token. */
export class WrongToken extends Refused {}

const WRONG_TOKEN =
  "The daemon does not take this token: it is the first line of the file that token_file names " +
  "in the daemon's configuration, section [web].";

/** Checks that the daemon takes a token. Throws `Refused` if it does not. */
export async function checkToken(token: string): Promise<void> {
  await ask(token, "GET", "status");
}

/** Sends a file that the daemon can read. Throws `Refused` if the daemon refuses. */
export function send(token: string, request: SendRequest): Promise<Started> {
  return ask(token, "POST", "transfers", request);
}

/** Ends a transfer. Throws `Refused` if the daemon refuses. */
export function cancel(token: string, id: string): Promise<Started> {
  return ask(token, "DELETE", `transfers/${encodeURIComponent(id)}`);
}

/** Measures the path to a node. Throws `Refused` if the daemon refuses. */
export function measurePath(token: string, node: string): Promise<Path> {
  // As many as `ncmesh traceroute` sends.
  const request: EchoRequest = { count: 3 };
  return ask(token, "POST", `paths/${encodeURIComponent(node)}`, request);
}

/** Makes the daemon read its configuration again. Throws `Refused` if the daemon refuses. */
export function reload(token: string): Promise<Reloaded> {
  return ask(token, "POST", "reload");
}

async function ask<T>(token: string, method: string, path: string, body?: object): Promise<T> {
  // Nothing else can be in a header, so the daemon has no such token.
  if (!/^[\x20-\x7e]+$/.test(token)) throw new WrongToken(WRONG_TOKEN);
  const headers = new Headers({ authorization: `Bearer ${token}` });
  if (body) headers.set("content-type", "application/json");
  // The address is relative: commands go to the daemon that this page is from.
  const request = { method, headers, body: body ? JSON.stringify(body) : null };
  const answer = await fetch(`v1/${path}`, request).catch(() => {
    throw new Refused("The daemon does not answer. Is it still running?");
  });
  const said: unknown = await answer.json().catch(() => null);
  if (answer.ok && said !== null) return said as T;

  if (answer.status === 401) throw new WrongToken(WRONG_TOKEN);
  if (answer.status === 403) throw new Refused("This daemon's console is for looking only now.");
  const { error } = (said ?? {}) as Partial<ApiError>;
  throw new Refused(error ? `${error}.` : `The daemon answered with status ${answer.status}.`);
}
