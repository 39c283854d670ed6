/** Joins the messages of several connections to one mesh. */
import { Run } from "../model/run";
import type { Message, Meta } from "../schema/messages";

/** Parts that a message changed. */
export type Change = "begun" | "grown" | "nothing";

/**
 * Makes a run of messages. A server that is reached again repeats some of them, and names the run
 * that they are of: after its restart it is another one.
 */
export class Joiner {
  run: Run | null = null;
  /** Name of the run; empty before the first message. */
  id = "";
  /** The meta whose key has not come yet. */
  private pending: Meta | null = null;
  /** Whether messages may be known already. */
  private isRepeating = false;

  constructor(private readonly name: string) {}

  /** Notes that the next message is the first one of a connection. */
  connected(): void {
    this.isRepeating = this.run !== null;
  }

  /** Takes a message of the run `id`. Throws `BadMessage` if it is not one that may come. */
  take(message: Message, id: string): Change {
    if (id !== this.id) {
      this.id = id;
      this.run = null;
      this.isRepeating = false;
    }
    if (message.type === "meta") {
      // It is known with its key whether it is new.
      this.pending = message;
      return "nothing";
    }
    if (!this.run && message.type === "key") {
      this.run = new Run(this.name);
      this.push(message);
      return "begun";
    }
    const isKnown = message.time_s <= (this.run?.timeline.end ?? -Infinity);
    if (this.isRepeating && isKnown && !this.isEnd(message)) {
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
