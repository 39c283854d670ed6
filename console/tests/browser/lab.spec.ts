/** The console of a real daemon: one of the 22 of `ncmesh lab`, while it sends a file. */
import { expect } from "@playwright/test";
import { labOf, PORT } from "./lab";

const test = labOf((file) => [
  ...["building", "--from", "n01", "--to", "n05,n09,n14,n20"],
  ...["--send", file("map.bin", Buffer.alloc(700_000, "a file of some length. "))],
]);

test("a transfer of 22 daemons is followed, and a killed node is grey", async ({ page, lab }) => {
  test.setTimeout(300_000);
  await lab.line(/22 daemons are up/);
  await page.goto(`http://127.0.0.1:${PORT}/#/transfers`);

  // The source knows what each receiver has.
  const bars = page.getByRole("progressbar", { name: /map\.bin at n/ });
  await expect(bars).toHaveCount(4, { timeout: 60_000 });
  const shares = () =>
    bars.evaluateAll((all) => all.map((bar) => Number(bar.getAttribute("aria-valuenow"))));
  await expect.poll(async () => Math.max(...(await shares()))).toBeGreaterThan(0);
  expect(Math.min(...(await shares()))).toBeLessThan(100);
  await expect.poll(shares, { timeout: 180_000 }).toEqual([100, 100, 100, 100]);

  // Its neighbours say within ten seconds that a node is gone, and all others stay.
  const [, victim] = await lab.line(/# n03, process (\d+)/);
  await page.getByRole("link", { name: "Security" }).click();
  await expect(page.getByText("22 of 22 members are up")).toBeVisible();
  process.kill(Number(victim), "SIGKILL");
  await expect(page.getByText("21 of 22 members are up")).toBeVisible({ timeout: 10_000 });
  await expect(page.locator(".members .down")).toContainText("n03");
  await lab.line(/the daemon of n03 has ended/);

  // The past is still there.
  await page.keyboard.press("Home");
  await expect(page.getByText("21 of 22 members are up")).toBeHidden();
});
