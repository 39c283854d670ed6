/** Saves recordings as a page that is one file: it needs no server, and shows every number. */
import { BadMessage } from "../model/check";

/** Text of the page in whose place the recordings are. It must be in a page once, so not here. */
const PLACE = /NCMESH_[A-Z]+/;

/** Returns the page with recordings in it. Throws `BadMessage` if the server has none. */
export async function pageWith(recordings: Uint8Array[]): Promise<Blob> {
  const answer = await fetch("standalone.html").catch(() => null);
  const page = answer?.ok ? await answer.text() : "";
  if (!PLACE.test(page)) throw new BadMessage("The server does not answer with a page.");
  const text = recordings.map(base64).join("\n");
  return new Blob([page.replace(PLACE, () => text)], { type: "text/html" });
}

function base64(bytes: Uint8Array): string {
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text);
}

/** Lets the browser save a file. */
export function save(file: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(file);
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}
