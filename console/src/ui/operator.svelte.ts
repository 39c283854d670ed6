/** Right to give commands from this page: it takes the daemon's token. */
import { checkToken, Refused, WrongToken } from "../sources/commands";

const KEPT = "ncmesh-token";

class Operator {
  /** Whether this server takes commands; null if it is no live mesh. */
  isOffered = $state<boolean | null>(null);
  /** The token, once the daemon has taken it. The tab keeps it, and forgets it when it closes. */
  token = $state<string | null>(null);
  isBusy = $state(false);
  /** Outcome of the last command. */
  said = $state.raw<{ text: string; isBad: boolean } | null>(null);

  /** Begins at a live mesh, with the token of before if the page was loaded again. */
  begin(isOffered: boolean): void {
    this.isOffered = isOffered;
    if (isOffered) this.token = kept();
  }

  /** Takes a token if the daemon does. Returns what is wrong; nothing if it was taken. */
  async enter(token: string): Promise<string> {
    try {
      await checkToken(token);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      return error.message;
    }
    this.token = token;
    this.said = null;
    keep(token);
    return "";
  }

  forget(): void {
    this.token = null;
    this.said = null;
    keep(null);
  }

  /** Gives a command. `say` returns what is said of its answer, if anything; a refusal is said. */
  async give<T>(command: (token: string) => Promise<T>, say: (answer: T) => string): Promise<void> {
    if (this.token === null || this.isBusy) return;
    this.isBusy = true;
    this.said = null;
    try {
      const answer = await command(this.token);
      const text = say(answer);
      if (text) this.said = { text, isBad: false };
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      // It may be another one since the daemon's restart.
      if (error instanceof WrongToken) this.forget();
      this.said = { text: error.message, isBad: true };
    } finally {
      this.isBusy = false;
    }
  }
}

export const operator = new Operator();

/** Storage may be forbidden; the token then lasts as long as the page. */
function kept(): string | null {
  try {
    return sessionStorage.getItem(KEPT);
  } catch {
    return null;
  }
}

function keep(token: string | null): void {
  try {
    if (token === null) sessionStorage.removeItem(KEPT);
    else sessionStorage.setItem(KEPT, token);
  } catch {
    // See `kept`.
  }
}
