/**
 * Takes a picture of every view in both themes, for a person to look at, into the folder that
 * PICTURES names. RECORDINGS names one with the recordings that the cases name. AT is the time that
 * is shown, s.
 */
import { test } from "./fixtures";

const FOLDER = process.env["PICTURES"];
const AT = process.env["AT"] ?? "15";
const CASES: [string, string][] = [
  ["map", "building-cascade/#/map"],
  ["transfers", "building-cascade/#/transfers"],
  ["two-transfers", "building-tree_flood+building-cascade/#/transfers"],
  ["flows", "cross-braid/#/flows"],
  ["coding", "cross-forward+cross-braid/#/coding"],
  ["streams", "stream/#/streams"],
  ["air", "building-cascade/#/air"],
  ["rollouts", "rollout/#/rollouts"],
  ["rollout-map", "rollout/#/map"],
  ["security", "campus/#/security"],
  ["health", "campus/#/health"],
  ["two", "cross-forward+cross-braid/#/map"],
  ["crowd", "crowd/#/map"],
  ["fleet", "fleet/#/map"],
  ["fleet-table", "fleet/#/rollouts"],
  ["start", "empty/"],
  ["demo", "demo/"],
];

for (const [name, path] of CASES) {
  for (const theme of ["light", "dark"] as const) {
    for (const [size, width, height] of [
      ["wide", 1440, 900],
      ["phone", 390, 844],
    ] as const) {
      test(`${name} ${theme} ${size}`, async ({ page, open }) => {
        await page.setViewportSize({ width, height });
        await page.emulateMedia({ colorScheme: theme });
        await open(path);
        const slider = page.getByRole("slider", { name: "Time" });
        if (await slider.count()) await slider.fill(name === "crowd" ? "3" : AT);
        // Charts and frames need a moment.
        await page.waitForTimeout(name === "demo" ? 2000 : 400);
        const isLong = name === "demo";
        for (const id of isLong ? ["building", "hub"] : []) {
          await page.locator(`#${id}`).scrollIntoViewIfNeeded();
          await page.waitForTimeout(1500);
        }
        await page.screenshot({ path: `${FOLDER}/${name}-${theme}-${size}.png`, fullPage: isLong });
      });
    }
  }
}
