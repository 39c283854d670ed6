/** Every page for everybody: axe finds nothing, and nothing is wider than a phone. */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Page } from "@playwright/test";
import type axe from "axe-core";
import { expect, test } from "./fixtures";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const PAGES = [
  "campus/#/map",
  "campus/#/transfers",
  "cross/#/flows",
  "pair/#/coding",
  "broadcast/#/streams",
  "campus/#/air",
  "campus/#/security",
  "campus/#/health",
  "pair/#/map",
  "cut/#/map",
  "empty/",
  "demo/",
];

/** Returns the rules that the page breaks, with the parts that break them. */
async function violations(page: Page): Promise<string[]> {
  await page.evaluate(AXE);
  const results = await page.evaluate(() =>
    (window as unknown as { axe: typeof axe }).axe.run(document),
  );
  return results.violations.flatMap(({ id, nodes }) =>
    nodes.map(({ target, failureSummary }) => `${id}: ${target.join(" ")}: ${failureSummary}`),
  );
}

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
