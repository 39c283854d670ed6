import type { Page } from "@playwright/test";
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
    if (request.method() === "POST") wishes.push(request.postDataJSON());
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
    losses.push((route.request().postDataJSON() as { loss: number }).loss);
    if (losses.length === 2) await isHeld;
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
