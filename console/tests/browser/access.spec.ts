/** Every page for everybody: axe finds nothing, and nothing is wider than a phone. */
import { violations } from "./axe";
import { expect, test } from "./fixtures";

const PAGES = [
  "campus/#/map",
  "campus/#/transfers",
  "cross/#/flows",
  "pair/#/coding",
  "broadcast/#/streams",
  "campus/#/air",
  "rollout/#/rollouts",
  "rollout/#/map",
  "campus/#/security",
  "campus/#/health",
  "pair/#/map",
  "cut/#/map",
  "daemon/#/transfers",
  "town/#/map",
  "empty/",
  "demo/",
];

for (const path of PAGES) {
  for (const colorScheme of ["light", "dark"] as const) {
    test(`axe finds nothing in ${path}, ${colorScheme}`, async ({ page, open }) => {
      await page.emulateMedia({ colorScheme });
      await open(path);
      if (path === "demo/") await expect(page.locator(".number").first()).toBeVisible();
      await page.keyboard.press("End");
      expect(await violations(page)).toEqual([]);
    });
  }
}

test("the help is accessible", async ({ page, open }) => {
  await open("campus/#/map");
  await page.keyboard.press("?");
  expect(await violations(page)).toEqual([]);
});

test("no page is wider than a phone", async ({ page, open }) => {
  await page.setViewportSize({ width: 390, height: 844 });
  for (const path of PAGES) {
    await open(path);
    if (path === "demo/") await expect(page.locator(".number").first()).toBeVisible();
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    expect(width, path).toBeLessThanOrEqual(390);
  }
});
