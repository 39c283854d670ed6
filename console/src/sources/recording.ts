/** Recordings: from the server, from a file that the user chose, or from the page itself. */
import { BadMessage } from "../model/check";
import type { Run } from "../model/run";
import { readRecording } from "./lines";

/** A recording that the server offers. */
export interface Offer {
  name: string;
  url: string;
}

/** Fetches a recording. Throws `BadMessage` if it cannot be had or read. */
export async function fetchRecording(offer: Offer): Promise<Run> {
  const body = (await fetchAnswer(offer)).body;
  return readRecording(offer.name, body as ReadableStream<Uint8Array>);
}

/** Fetches a recording as it is. Throws `BadMessage` if it cannot be had. */
export async function fetchFile(offer: Offer): Promise<Uint8Array<ArrayBuffer>> {
  return new Uint8Array(await (await fetchAnswer(offer)).arrayBuffer());
}

async function fetchAnswer({ url }: Offer): Promise<Response> {
  const answer = await fetch(url).catch(() => {
    throw new BadMessage("The server does not answer. Is ncmesh still running?");
  });
  if (!answer.ok || !answer.body) {
    throw new BadMessage(`The server has no recording at ${url} (status ${answer.status}).`);
  }
  return answer;
}

/** Reads a recording in memory. Throws `BadMessage` if it is none. */
export function openBytes(bytes: Uint8Array<ArrayBuffer>, name: string): Promise<Run> {
  return readRecording(name, new Blob([bytes]).stream() as ReadableStream<Uint8Array>);
}

/** Reads a file that the user chose. Throws `BadMessage` if it is no recording. */
export function openFile(file: File): Promise<Run> {
  return readRecording(file.name, file.stream() as ReadableStream<Uint8Array>);
}

/** Id of the element with the recordings of a page that is one file. */
const INLINE = "recordings";

/**
 * Returns the recordings inside the page, in base64 and separated by white space; null if the page
 * is one that a server gives.
 */
export function inlineRecordings(): string[] | null {
  const element = document.getElementById(INLINE);
  return element ? (element.textContent ?? "").split(/\s+/).filter(Boolean) : null;
}

/** Reads a recording inside the page. Throws `BadMessage` if it is damaged. */
export function openInline(base64: string, name: string): Promise<Run> {
  let text: string;
  try {
    text = atob(base64);
  } catch {
    throw new BadMessage("The recording in this page is damaged: make the page again.");
  }
  return openBytes(
    Uint8Array.from(text, (character) => character.charCodeAt(0)),
    name,
  );
}
