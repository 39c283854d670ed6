import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "@playwright/test";
import { HOSTILE } from "../support/meshes";
import { expect, test } from "./fixtures";
import { DIST, recordings } from "./server";

const VIEWS = [
  "map",
  "transfers",
  "flows",
  "coding",
  "streams",
  "air",
  "rollouts",
  "security",
  "health",
];

const clock = (page: Page) => page.locator(".clock");
const scrub = (page: Page) => page.getByRole("slider", { name: "Time" });

/** Returns how many pixels of a canvas are drawn on. */
function drawn(page: Page): Promise<number> {
  return page.locator("canvas.mesh").evaluate((canvas: HTMLCanvasElement) => {
    const { data } = canvas.getContext("2d")!.getImageData(0, 0, canvas.width, canvas.height);
    return data.reduce((sum, value, i) => sum + Number(i % 4 === 3 && value > 0), 0);
  });
}

test("a recording is loaded, drawn, and scrubbed", async ({ page, open }) => {
  await open("campus/#/map");
  await expect(page.getByText("campus · simulation · seed 1")).toBeVisible();
  await expect.poll(() => drawn(page)).toBeGreaterThan(5000);

  await page.getByRole("link", { name: "Transfers" }).click();
  const bar = page.getByRole("progressbar", { name: "map.tar.gz at n05" });
  await expect(bar).toHaveAttribute("aria-valuenow", "0");
  await scrub(page).fill("12");
  await expect(clock(page)).toHaveText("0:12.0 / 0:24.0");
  const half = Number(await bar.getAttribute("aria-valuenow"));
  expect(half).toBeGreaterThan(20);
  await scrub(page).fill("24");
  await expect(bar).toHaveAttribute("aria-valuenow", "100");
  await scrub(page).fill("12");
  await expect(bar).toHaveAttribute("aria-valuenow", String(half));
});

test("keys play, step, jump, change views, and help", async ({ page, open }) => {
  await open("campus/#/map");
  await expect(clock(page)).toHaveText(/^0:00.0/);
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowRight");
  await expect(clock(page)).toHaveText(/^0:00.2/);
  await page.keyboard.press("ArrowLeft");
  await expect(clock(page)).toHaveText(/^0:00.1/);
  await page.keyboard.press("Shift+ArrowRight");
  await expect(clock(page)).toHaveText(/^0:01.1/);
  await page.keyboard.press("End");
  await expect(clock(page)).toHaveText(/^0:24.0/);
  await page.keyboard.press("Home");

  await page.keyboard.press("Space");
  await expect(page.getByRole("button", { name: "Pause" })).toBeVisible();
  await expect(clock(page)).not.toHaveText(/^0:00.0/);
  await page.keyboard.press("Space");
  await expect(page.getByRole("button", { name: "Play" })).toBeVisible();

  await page.keyboard.press("+");
  await expect(page.getByRole("combobox", { name: "Speed" })).toHaveValue("2");
  for (const [i, view] of VIEWS.entries()) {
    await page.keyboard.press(String(i + 1));
    await expect(page).toHaveURL(new RegExp(`#/${view}$`));
  }
  await page.keyboard.press("?");
  await expect(page.getByRole("dialog", { name: "Keys" })).toBeVisible();
  await page.keyboard.press("Escape");
  await expect(page.getByRole("dialog", { name: "Keys" })).toBeHidden();
  await page.keyboard.press("t");
  await expect(page.locator("html")).toHaveAttribute("data-theme", "dark");
});

test("names with HTML in them stay text in every view", async ({ page, open }) => {
  await open("hostile/#/map");
  await page.keyboard.press("End");
  for (const view of VIEWS) {
    await page.evaluate((name) => (location.hash = `#/${name}`), view);
    await expect(page.locator("nav [aria-current]")).toHaveAttribute("href", `#/${view}`);
    await expect(page.locator("main")).toContainText(HOSTILE);
  }
  expect(await page.evaluate(() => "harmed" in window)).toBe(false);
  expect(await page.locator("main img").count()).toBe(0);
});

test("numbers are told under the pointer, on the map and in charts", async ({ page, open }) => {
  await open("alone/#/map");
  const canvas = page.locator("canvas.mesh");
  await expect.poll(() => drawn(page)).toBeGreaterThan(100);
  const box = (await canvas.boundingBox())!;
  // The only node is in the middle of what the margins leave.
  await page.mouse.move(box.x + box.width / 2, box.y + 84 + (box.height - 84 - 132) / 2);
  await expect(page.locator(".tip")).toContainText("only");
  await page.mouse.move(box.x + 5, box.y + box.height / 2);
  await expect(page.locator(".tip")).toBeHidden();

  await open("cross/#/flows");
  const plot = page.getByRole("img", { name: "Throughput over time" });
  const legend = page.getByRole("figure").first().locator(".legend");
  await plot.hover({ position: { x: 300, y: 60 } });
  await expect(legend).toContainText(/at 0:0\d\.\d/);
  await page.mouse.move(0, 0);
  await expect(legend).not.toContainText("at 0:");
});

test("a mesh of one node is drawn", async ({ page, open }) => {
  await open("alone/#/map");
  await expect.poll(() => drawn(page)).toBeGreaterThan(100);
  await page.getByRole("combobox", { name: "Node" }).selectOption("only");
  await expect(page.getByRole("complementary", { name: "Node only" })).toBeVisible();
});

test("a recording that is cut in half says so and shows its first half", async ({ page, open }) => {
  await open("cut/#/transfers");
  await expect(page.getByRole("alert")).toContainText(/cut off after \d+ lines/);
  await expect(page.getByRole("progressbar").first()).toBeVisible();
  await page.keyboard.press("End");
  await expect(clock(page)).not.toHaveText(/^0:00.0/);
});

test("a file that is no recording, or none at all, leads to the choice of one", async ({
  page,
  open,
}) => {
  await open("foreign/");
  await expect(page.getByRole("alert")).toContainText("not a recording of ncmesh");
  await open("empty/");
  await expect(page.getByRole("button", { name: "Open recordings" })).toBeVisible();
  const [buffer] = recordings("cross");
  const file = { name: "mine.ncrec", mimeType: "application/gzip", buffer: buffer! };
  await page.locator("input[type=file]").setInputFiles(file);
  await expect(page.getByText("cross · simulation · seed 1")).toBeVisible();
});

test("two runs are shown in step, with the gain", async ({ page, open }) => {
  await open("pair/#/flows");
  await expect(page.getByRole("region", { name: /baseline · forward/ })).toBeVisible();
  await scrub(page).fill("8");
  const mean = (name: RegExp) => page.getByRole("region", { name }).locator("td.n").nth(1);
  await expect(mean(/baseline/)).toContainText("kbit/s");
  await expect(mean(/coded/)).toContainText("Mbit/s");
  // Only the page of coding shows the gain. A row of s1 → d1 alone is on the page left, too.
  await page.keyboard.press("4");
  await expect(page.getByRole("row", { name: /s1 → d1 .*2\.\d\d ×/ })).toBeVisible();
});

test("a second recording can be compared with the first", async ({ page, open }) => {
  await open("cross/#/coding");
  const [buffer] = recordings("pair");
  const file = { name: "forward.ncrec", mimeType: "application/gzip", buffer: buffer! };
  await page.locator("input[type=file]").setInputFiles(file);
  await expect(page.getByRole("columnheader", { name: "forward.ncrec" })).toBeVisible();

  // Back to one run, to the other, and to both.
  const shown = page.getByRole("combobox", { name: "Runs shown" });
  await shown.selectOption({ index: 2 });
  await expect(page.getByRole("columnheader", { name: "forward.ncrec" })).toBeHidden();
  await expect(page.getByRole("button", { name: "Compare with …" })).toBeVisible();
  await page.keyboard.press("Tab");
  await page.evaluate(() => (location.hash = "#/flows"));
  await expect(page.getByRole("region", { name: /core_nc/ })).toBeVisible();
  await shown.selectOption({ index: 1 });
  await expect(page.getByRole("region", { name: /forward/ })).toBeVisible();
  await shown.selectOption("both runs");
  await expect(page.locator("section.run")).toHaveCount(2);
});

test("a mesh is followed as it goes, and a look back stops following", async ({ page, open }) => {
  await open("live/#/flows");
  const live = page.getByRole("button", { name: "Live" });
  await expect(live).toHaveAttribute("aria-pressed", "true");
  await expect(page.getByRole("figure").first().locator(".legend b")).toHaveText([
    /bit\/s/,
    /bit\/s/,
  ]);
  await expect(clock(page)).toHaveText(/^0:0[3-9]/);
  await scrub(page).fill("1");
  await expect(live).toHaveAttribute("aria-pressed", "false");
  await expect(clock(page)).toHaveText(/^0:01.0/);
  await live.click();
  await expect(clock(page)).toHaveText("0:10.0 / 0:10.0");
  await expect(page.getByRole("status")).toContainText("The run is over");
});

test("airtime that a daemon does not know looks other than none", async ({ page, open }) => {
  await open("daemon/#/map");
  const untold = page.getByText("not told here");
  await expect(untold).toBeHidden();
  await open("some/#/map");
  await expect(untold).toBeVisible();
});

test("a page opens with the past, and says where nothing was told", async ({ page, open }) => {
  await open("past/#/flows");
  await expect(clock(page)).toHaveText(/^0:4/);
  await expect(scrub(page)).toHaveAttribute("min", "0");
  await scrub(page).fill("12");
  await expect(page.getByText("Nothing was told of this time")).toBeHidden();
  await scrub(page).fill("31");
  await expect(page.getByText("Nothing was told of this time")).toBeVisible();
});

test("a reference state is kept and compared with", async ({ page, open }) => {
  await open("campus/#/map");
  await expect(page.getByRole("button", { name: "Compare", exact: true })).toBeDisabled();
  await page.getByRole("button", { name: "Save as reference" }).click();
  await expect(page.getByText("Against the reference")).toBeVisible();
  await page.reload();
  await page.getByRole("button", { name: "Compare", exact: true }).click();
  await expect(page.getByText("Against the reference")).toBeVisible();
  await page.getByRole("button", { name: "End comparison" }).click();
  await expect(page.getByText("Delivery, as measured")).toBeVisible();
});

test("forces are loaded only where no node has a position", async ({ page, open }) => {
  const loaded: string[] = [];
  page.on("request", (request) => loaded.push(request.url()));
  await open("campus/#/map");
  await expect.poll(() => drawn(page)).toBeGreaterThan(5000);
  expect(loaded.filter((url) => url.endsWith("/force.js"))).toEqual([]);
  await open("unplaced/#/map");
  await expect.poll(() => drawn(page)).toBeGreaterThan(1000);
  expect(loaded.filter((url) => url.endsWith("/force.js"))).toHaveLength(1);
});

test("the page that is one file shows its recordings without a server", async ({ page }, info) => {
  const errors: string[] = [];
  page.on("pageerror", (error) => errors.push(error.message));
  page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
  const built = readFileSync(join(DIST, "standalone.html"), "utf8");
  expect(built.split("NCMESH_RECORDINGS")).toHaveLength(2);
  const texts = recordings("pair").map((file) => file.toString("base64"));
  const path = info.outputPath("page.html");
  writeFileSync(path, built.replace("NCMESH_RECORDINGS", texts.join("\n")));
  await page.goto(`file://${path}#/coding`);
  await expect(page.getByRole("row", { name: /s1 → d1/ })).toContainText(/2\.\d\d ×/);
  expect(errors).toEqual([]);
});

test("1,000 nodes are drawn, and how fast is reported", async ({ page, open }, info) => {
  test.slow();
  await open("crowd/#/map");
  await expect.poll(() => drawn(page), { timeout: 20_000 }).toBeGreaterThan(50_000);
  await page.keyboard.press("Space");
  const frames = await page.evaluate(
    () =>
      new Promise<number>((done) => {
        const begin = performance.now();
        let count = 0;
        const next = (now: number) => {
          count += 1;
          if (now - begin < 3000) requestAnimationFrame(next);
          else done((count * 1000) / (now - begin));
        };
        requestAnimationFrame(next);
      }),
  );
  const text = `1,000 nodes: ${frames.toFixed(1)} frames/s`;
  info.annotations.push({ type: "measured", description: text });
  console.log(text);
});

/** Returns the picture of the map, as text. */
function picture(page: Page): Promise<string> {
  return page
    .locator("canvas.mesh")
    .evaluate((canvas: HTMLCanvasElement) => canvas.toDataURL("image/png"));
}

test("nodes that move are drawn where they were at the time shown", async ({ page, open }) => {
  // Without frames on their way only what moves makes another picture.
  await page.emulateMedia({ reducedMotion: "reduce" });
  await open("walkers/#/map");
  const at = async (time: string) => {
    await scrub(page).fill(time);
    await expect(clock(page)).toContainText(`0:${time.padStart(4, "0")}`);
    // After two frames everything has been drawn.
    await page.evaluate(
      () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))),
    );
    return picture(page);
  };
  const early = await at("2.0");
  const late = await at("18.0");
  expect(late).not.toBe(early);
  expect(await at("2.0")).toBe(early);
});

test("a background is drawn under the mesh, or says what is wrong", async ({ page, open }) => {
  await open("town/#/map");
  const plain = await drawn(page);
  const choose = (name: string, value: object) =>
    page.locator("input[accept*=geojson]").setInputFiles({
      name,
      mimeType: "application/json",
      buffer: Buffer.from(JSON.stringify(value)),
    });
  await choose("points.geojson", { type: "Point", coordinates: [13.4, 52.5] });
  await expect(page.getByRole("alert")).toContainText("no lines or areas");
  const ring = [
    [13.39, 52.49],
    [13.41, 52.49],
    [13.41, 52.51],
    [13.39, 52.51],
    [13.39, 52.49],
  ];
  await choose("park.geojson", { type: "Polygon", coordinates: [ring] });
  await expect(page.getByRole("alert")).toHaveCount(0);
  await expect.poll(() => drawn(page)).toBeGreaterThan(5 * plain);

  // Other views leave it alone.
  await page.getByRole("link", { name: "Air" }).click();
  await page.getByRole("link", { name: "Map" }).click();
  await page.getByRole("button", { name: "Remove background" }).click();
  await expect.poll(() => drawn(page)).toBeLessThan(2 * plain);
});
