/** Joins the messages of several connections to one mesh. */
import { Run } from "../model/run";
import type { Message, Meta } from "../schema/messages";

/**
 * Seconds before the end of what is known in which a connection may begin: keys come every 5 s. A
 * connection that begins earlier is to another run, as after a restart.
 */
const OVERLAP_S = 10;

/** Parts that a message changed. */
export type Change = "begun" | "grown" | "nothing";

/** Makes a run of messages. A server that is reached again repeats some of them. */
export class Joiner {
  run: Run | null = null;
  /** The meta whose key has not come yet. */
  private pending: Meta | null = null;
  /** Whether messages may be known already. */
  private isRepeating = false;

  constructor(private readonly name: string) {}

  /** Notes that the next message is the first one of a connection. */
  connected(): void {
    this.isRepeating = this.run !== null;
  }

  /** Takes a message. Throws `BadMessage` if it is not one that may come. */
  take(message: Message): Change {
    if (message.type === "meta") {
      // It is known with its key whether it is new.
      this.pending = message;
      return "nothing";
    }
    const end = this.run?.timeline.end ?? -Infinity;
    const time = message.time_s;
    if (message.type === "key" && (!this.run || time < end - OVERLAP_S)) {
      this.run = new Run(this.name);
      this.isRepeating = false;
      this.push(message);
      return "begun";
    }
    if (this.isRepeating && time <= end && !this.isEnd(message)) {
      if (message.type === "key") this.pending = null;
      return "nothing";
    }
    this.isRepeating = false;
    this.push(message);
    return "grown";
  }

  private push(message: Message): void {
    if (this.pending) this.run?.push({ ...this.pending, type: "meta" });
    this.pending = null;
    this.run?.push(message);
  }

  private isEnd(message: Message): boolean {
    return message.type === "event" && message.what.kind === "end";
  }
}
