/** Real daemons: a lab in a directory of its own, which ends with the test. */
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { expect, test } from "@playwright/test";

const ROOT = join(import.meta.dirname, "../../..");
const PROGRAM = process.env["NCMESH"] ?? join(ROOT, "target/debug/ncmesh");

/** Port of the first daemon's console; other workers have other ones. */
export const PORT = 17300 + 100 * Number(process.env["TEST_PARALLEL_INDEX"] ?? 0);

interface Lab {
  /** Waits for a line of that kind on its standard error. */
  line: (kind: RegExp) => Promise<RegExpMatchArray>;
  /** Writes a file into the directory. Returns its path. */
  file: (name: string, content: string | Buffer) => string;
}

/** Returns tests with a lab, whose arguments may name files. */
export function labOf(argumentsOf: (file: Lab["file"]) => string[]) {
  return test.extend<{ lab: Lab }>({
    lab: async ({}, use) => {
      const directory = mkdtempSync(join(tmpdir(), "ncmesh-console-"));
      const file: Lab["file"] = (name, content) => {
        const path = join(directory, name);
        writeFileSync(path, content, { mode: 0o600 });
        return path;
      };
      const web = ["--web", "--listen", `127.0.0.1:${PORT}`];
      const lab: ChildProcess = spawn(PROGRAM, ["lab", ...argumentsOf(file), ...web]);

      const said: string[] = [];
      createInterface({ input: lab.stderr! }).on("line", (text) => said.push(text));
      const ended = once(lab, "exit");
      const line = async (kind: RegExp) => {
        let found: RegExpMatchArray | null = null;
        const look = () => (found = said.map((text) => kind.exec(text)).find(Boolean) ?? null);
        await expect.poll(look, { timeout: 120_000 }).not.toBeNull();
        return found!;
      };
      await use({ line, file });

      lab.kill("SIGINT");
      await ended;
      rmSync(directory, { recursive: true });
    },
  });
}
