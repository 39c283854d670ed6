import type { Page } from "@playwright/test";
import { readFileSync } from "node:fs";
import { expect, test } from "./fixtures";

const cross = (page: Page) => page.getByRole("region", { name: "Two flows cross at a relay" });

test("the demo shows the gain, which is the quotient of both sides", async ({ page, open }) => {
  await open("demo/");
  const section = cross(page);
  await expect(section.locator(".number")).toHaveText(/^\d\.\d\d×$/);
  const [first = 0, second = 0] = (
    await section.locator(".side header .figure").allInnerTexts()
  ).map((text) => parseFloat(text) * (text.includes("kbit") ? 1e3 : 1e6));
  const gain = parseFloat(await section.locator(".number").innerText());
  expect(gain).toBeCloseTo(second / first, 1);
});

test("the demo plays at once, and another loss or seed is another run", async ({ page, open }) => {
  const wishes: unknown[] = [];
  page.on("request", (request) => {
    // Others run once they come into sight.
    const wish = request.postDataJSON() as { demonstration: string } | null;
    if (wish?.demonstration === "cross") wishes.push(wish);
  });
  await open("demo/");
  const section = cross(page);
  await expect(section.getByRole("button", { name: "Pause" })).toBeVisible();
  const before = await section.locator(".from").innerText();
  await section.getByRole("slider").fill("40");
  await expect(section.locator(".from")).not.toHaveText(before);
  await expect(section.getByText("40 %")).toBeVisible();
  await section.getByRole("button", { name: "Another seed" }).click();
  await expect(section.getByText("seed 2")).toBeVisible();
  expect(wishes).toEqual([
    { demonstration: "cross", loss: 0.2, seed: 1 },
    { demonstration: "cross", loss: 0.4, seed: 1 },
    { demonstration: "cross", loss: 0.4, seed: 2 },
  ]);
});

test("only the last of many wishes runs after the one under way", async ({ page, open }) => {
  const losses: number[] = [];
  let answer = () => {};
  const isHeld = new Promise<void>((done) => (answer = done));
  await page.route("**/demo/run", async (route) => {
    const wish = route.request().postDataJSON() as { demonstration: string; loss: number };
    if (wish.demonstration === "cross") {
      losses.push(wish.loss);
      if (losses.length === 2) await isHeld;
    }
    await route.continue();
  });
  await open("demo/");
  const slider = cross(page).getByRole("slider");
  for (const loss of ["21", "22", "23", "24"]) await slider.fill(loss);
  await expect.poll(() => losses.length).toBe(2);
  answer();
  await expect.poll(() => losses).toEqual([0.2, 0.21, 0.24]);
});

test("the other demonstrations run once they are seen", async ({ page, open }) => {
  await open("demo/");
  const file = page.getByRole("region", { name: "One file, many receivers" });
  await file.scrollIntoViewIfNeeded();
  await expect(file.locator(".what")).toHaveText(/sooner/);
  await expect(file.getByText("n05").first()).toBeVisible();
});

test("nothing moves by itself for who wants less motion", async ({ page, open }) => {
  await page.emulateMedia({ reducedMotion: "reduce" });
  await open("demo/");
  await expect(cross(page).locator(".number")).toHaveText(/×/);
  await expect(cross(page).getByRole("button", { name: "Play" })).toBeVisible();
});

test("a simulator that fails says why", async ({ page, address }) => {
  await page.route("**/demo/run", (route) =>
    route.fulfill({ status: 422, body: "loss 0.2: the scenario has no links" }),
  );
  await page.goto(`${address}/demo/`);
  await expect(cross(page).getByRole("alert")).toContainText("the scenario has no links");
});

test("both sides race to one goal, and each clock stops there", async ({ page, open }) => {
  await open("demo/#building");
  const file = page.getByRole("region", { name: "One file, many receivers" });
  await expect(file.locator(".traffic")).toHaveText("n01 sends 2.30 MB to n05, n09, n14 and n20");
  await expect(file.locator(".race b")).toHaveText([/^\d+\.\d s/, /^\d+\.\d s/]);

  // Coded, the packets of the slower side arrive long before its end.
  const section = cross(page);
  await section.scrollIntoViewIfNeeded();
  await section.getByRole("combobox", { name: "Speed" }).selectOption("5×");
  const clocks = section.locator(".race b");
  await expect(clocks).toHaveText([/^\d+\.\d s$/, /^\d\.\d\d s ✓$/]);
  await expect(clocks).toHaveText([/✓$/, /✓$/]);
});

test("a mesh stays as high as it is, whatever is written beside it", async ({ page, open }) => {
  await open("demo/#building");
  const file = page.getByRole("region", { name: "One file, many receivers" });
  const canvas = file.locator("canvas").first();
  await expect(canvas).toBeVisible();
  const height = async () => (await canvas.boundingBox())!.height;
  const before = await height();
  await file.getByRole("combobox", { name: "Speed" }).selectOption("10×");
  const percents = file.locator(".bars b");
  await expect(percents.first()).toHaveText("100.0 %", { timeout: 15_000 });
  const lines = await percents.evaluateAll((all) => all.map((b) => b.getClientRects().length));
  expect(new Set(lines)).toEqual(new Set([1]));
  expect(await height()).toBe(before);
  // After a wider and a narrower window it is as before.
  await page.setViewportSize({ width: 1440, height: 1400 });
  await page.setViewportSize({ width: 1440, height: 900 });
  expect(await height()).toBe(before);
});

test("a link has seed and loss, and leads to the same runs", async ({ page, open, context }) => {
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  await open("demo/#cross?loss=0.35&seed=7");
  const section = cross(page);
  await expect(section.getByText("35 %")).toBeVisible();
  await expect(section.getByText("seed 7")).toBeVisible();
  await section.getByRole("button", { name: "Another seed" }).click();
  await expect(page).toHaveURL(/#cross\?loss=0\.35&seed=8$/);
  await section.getByRole("button", { name: "Copy link" }).click();
  await expect(section.getByRole("status")).toHaveText("Copied.");
  const link = await page.evaluate(() => navigator.clipboard.readText());
  expect(link).toBe(page.url());
});

test("both runs are saved as a page that needs no server", async ({ page, open }, info) => {
  await open("demo/");
  const section = cross(page);
  const saved = page.waitForEvent("download");
  await section.getByRole("button", { name: "Save as page" }).click();
  const file = await saved;
  expect(file.suggestedFilename()).toBe("ncmesh-cross-loss20-seed1.html");
  const path = info.outputPath("saved.html");
  await file.saveAs(path);
  expect(readFileSync(path, "utf8")).not.toContain("NCMESH_RECORDINGS");
  await page.goto(`file://${path}#/coding`);
  await expect(page.getByRole("row", { name: /s1 → d1/ })).toContainText("×");
});

test("the last card says how to go on", async ({ page, open }) => {
  await open("demo/");
  const yours = page.getByRole("region", { name: "Now yours" });
  await expect(yours.getByRole("listitem")).toHaveCount(3);
});
