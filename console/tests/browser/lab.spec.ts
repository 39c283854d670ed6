/** The console of a real daemon: one of the 22 of `ncmesh lab`, while it sends a file. */
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { expect, test as base } from "@playwright/test";

const ROOT = join(import.meta.dirname, "../../..");
const PROGRAM = process.env["NCMESH"] ?? join(ROOT, "target/debug/ncmesh");
const PORT = 17300;
const SOURCE = `http://127.0.0.1:${PORT}`;

interface Lab {
  /** Waits for a line of that kind on its standard error. */
  line: (kind: RegExp) => Promise<RegExpMatchArray>;
}

/** A lab in a directory of its own, which ends with the test. */
const test = base.extend<{ lab: Lab }>({
  lab: async ({}, use) => {
    const directory = mkdtempSync(join(tmpdir(), "ncmesh-console-"));
    const file = join(directory, "map.bin");
    writeFileSync(file, Buffer.alloc(600_000, "a file of some length. "));
    const traffic = ["--from", "n01", "--to", "n05,n09,n14,n20", "--send", file];
    const web = ["--web", "--listen", `127.0.0.1:${PORT}`];
    const lab: ChildProcess = spawn(PROGRAM, ["lab", "building", ...traffic, ...web]);

    const said: string[] = [];
    createInterface({ input: lab.stderr! }).on("line", (text) => said.push(text));
    const ended = once(lab, "exit");
    const line = async (kind: RegExp) => {
      let found: RegExpMatchArray | null = null;
      const look = () => (found = said.map((text) => kind.exec(text)).find(Boolean) ?? null);
      await expect.poll(look, { timeout: 120_000 }).not.toBeNull();
      return found!;
    };
    await use({ line });

    lab.kill("SIGINT");
    await ended;
    rmSync(directory, { recursive: true });
  },
});

test("a transfer of 22 daemons is followed, and a killed node is grey", async ({ page, lab }) => {
  test.setTimeout(180_000);
  await lab.line(/22 daemons are up/);
  await page.goto(`${SOURCE}/#/transfers`);

  // The source knows what each receiver has.
  const bars = page.getByRole("progressbar", { name: /map\.bin at n/ });
  await expect(bars).toHaveCount(4, { timeout: 60_000 });
  const shares = () =>
    bars.evaluateAll((all) => all.map((bar) => Number(bar.getAttribute("aria-valuenow"))));
  await expect.poll(async () => Math.max(...(await shares()))).toBeGreaterThan(0);
  expect(Math.min(...(await shares()))).toBeLessThan(100);
  await expect.poll(shares, { timeout: 90_000 }).toEqual([100, 100, 100, 100]);

  // Its neighbours say within ten seconds that a node is gone, and all others stay.
  const [, victim] = await lab.line(/# n03, process (\d+)/);
  await page.getByRole("link", { name: "Security" }).click();
  await expect(page.getByText("22 of 22 members are up")).toBeVisible();
  process.kill(Number(victim), "SIGKILL");
  await expect(page.getByText("21 of 22 members are up")).toBeVisible({ timeout: 10_000 });
  await expect(page.locator(".members .down")).toContainText("n03");
  await lab.line(/the daemon of n03 has ended/);

  // What was is still there.
  await page.keyboard.press("Home");
  await expect(page.getByText("21 of 22 members are up")).toBeHidden();
});
