/** A mesh that is watched: messages as server-sent events. */
import { BadMessage, parseMessage } from "../model/check";
import type { Run } from "../model/run";
import { Joiner } from "./join";

/** Address of the messages: each event has one, first a meta and a key. */
const MESSAGES = "messages";

/** Waits before the first attempts to reach the server again, s. */
const BACKOFF_S = [1, 2, 4, 8, 15];

/** Receives what happens to the connection. */
export interface Watcher {
  /** Another run has begun: the server was started again, or this is the first connection. */
  begun(run: Run): void;
  /** The run has grown. */
  grown(): void;
  /** The connection is lost, or works again (empty text). */
  trouble(text: string): void;
}

/** Watches a mesh until the returned function is called. */
export function watch(name: string, watcher: Watcher): () => void {
  const joiner = new Joiner(name);
  let source: EventSource | null = null;
  let attempt = 0;
  let timer: ReturnType<typeof setTimeout> | undefined;

  const again = (text: string) => {
    source?.close();
    const wait = BACKOFF_S[Math.min(attempt, BACKOFF_S.length - 1)] ?? 15;
    attempt += 1;
    watcher.trouble(`${text} Next attempt in ${wait} s.`);
    timer = setTimeout(connect, wait * 1000);
  };

  const receive = (text: string, id: string) => {
    const change = joiner.take(parseMessage(text), id);
    const { run } = joiner;
    if (!run || change === "nothing") return;
    if (change === "begun") watcher.begun(run);
    else watcher.grown();
    if (run.timeline.isOver) {
      source?.close();
      watcher.trouble("The run is over.");
    }
  };

  function connect() {
    // The server leaves out messages that are known already.
    const known = joiner.run
      ? `?run=${encodeURIComponent(joiner.id)}&after=${joiner.run.timeline.end}`
      : "";
    source = new EventSource(MESSAGES + known);
    source.onopen = () => {
      attempt = 0;
      joiner.connected();
      watcher.trouble("");
    };
    source.onmessage = ({ data, lastEventId }) => {
      try {
        receive(String(data), lastEventId);
      } catch (error) {
        if (!(error instanceof BadMessage)) throw error;
        again(`The server sent something that cannot be shown: ${error.message}.`);
      }
    };
    source.onerror = () => again("The connection to the mesh is lost.");
  }

  connect();
  return () => {
    clearTimeout(timer);
    source?.close();
  };
}
