/**
 * Takes a picture of every view in both themes, for a person to look at. Only if PICTURES names a
 * folder: `PICTURES=/tmp/pictures npm run test:browser -- pictures`.
 */
import { test } from "./fixtures";

const FOLDER = process.env["PICTURES"];
const CASES: [string, string][] = [
  ["map", "campus/#/map"],
  ["transfers", "campus/#/transfers"],
  ["flows", "cross/#/flows"],
  ["coding", "pair/#/coding"],
  ["streams", "broadcast/#/streams"],
  ["air", "campus/#/air"],
  ["security", "campus/#/security"],
  ["health", "campus/#/health"],
  ["two", "pair/#/map"],
  ["crowd", "crowd/#/map"],
  ["start", "empty/"],
  ["demo", "demo/"],
];

test.skip(!FOLDER, "no folder for pictures");

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
        if (await slider.count()) await slider.fill(name === "crowd" ? "3" : "9.2");
        // Charts and frames need a moment.
        await page.waitForTimeout(name === "demo" ? 2500 : 400);
        const isLong = name === "demo";
        await page.screenshot({ path: `${FOLDER}/${name}-${theme}-${size}.png`, fullPage: isLong });
      });
    }
  }
}
