/** Commands from the page: the token, what is sent, and what is said of refusals. */
import type { Page, Request } from "@playwright/test";
import { HOSTILE } from "../support/meshes";
import { violations } from "./axe";
import { expect, test } from "./fixtures";

const TOKEN = "0123456789abcdef";
const commands = (page: Page) => page.getByRole("button", { name: /^Commands/ });
const dialog = (page: Page) => page.getByRole("dialog");

/** Answers commands as a daemon with that token does. Returns those that it was given. */
async function answering(page: Page, json: object = {}, status = 200): Promise<Request[]> {
  const given: Request[] = [];
  await page.route("**/v1/**", (route) => {
    const request = route.request();
    if (request.headers()["authorization"] !== `Bearer ${TOKEN}`) {
      return route.fulfill({ status: 401, body: "this needs the token\n" });
    }
    if (request.url().endsWith("/v1/status")) return route.fulfill({ json: {} });
    given.push(request);
    return route.fulfill({ status, json });
  });
  return given;
}

/** Opens the console of a daemon and enters the token. */
async function enter(page: Page, address: string) {
  await page.goto(`${address}/daemon/#/transfers`);
  await commands(page).click();
  await page.getByLabel("Token").fill(TOKEN);
  await page.getByRole("button", { name: "Allow commands" }).click();
  await expect(dialog(page)).toBeHidden();
}

test("a wrong token is named, the right one is kept by the tab and nowhere else", async ({
  page,
  address,
}) => {
  await answering(page);
  await page.goto(`${address}/daemon/#/transfers`);
  await expect(page.getByText("Send a file")).toHaveCount(0);

  // By the keyboard alone.
  await commands(page).focus();
  await page.keyboard.press("Enter");
  await expect(page.getByRole("dialog", { name: "Commands to n01" })).toBeVisible();
  for (const wrong of ["x".repeat(16), "\u{1f511}".repeat(8)]) {
    await page.getByLabel("Token").fill(wrong);
    await page.keyboard.press("Enter");
    await expect(dialog(page).getByRole("alert")).toContainText("does not take this token");
  }
  expect(await violations(page)).toEqual([]);
  await page.getByLabel("Token").fill(` ${TOKEN} `);
  await page.keyboard.press("Enter");
  await expect(dialog(page)).toBeHidden();
  await expect(commands(page)).toHaveText("Commands: on");

  await page.reload();
  await expect(page.getByText("Send a file")).toBeVisible();
  const places = await page.evaluate(() => [location.href, document.cookie, { ...localStorage }]);
  expect(JSON.stringify(places)).not.toContain(TOKEN);
  await commands(page).click();
  expect(await violations(page)).toEqual([]);
  await page.getByRole("button", { name: "Forget the token" }).click();
  await page.keyboard.press("Escape");
  await expect(page.getByText("Send a file")).toHaveCount(0);
  expect(await page.evaluate(() => JSON.stringify({ ...sessionStorage }))).not.toContain(TOKEN);
});

test("a file is sent to the nodes that are chosen, or to all", async ({ page, address }) => {
  const given = await answering(page, { id: "1-000000aa" }, 201);
  await enter(page, address);
  await page.getByText("Send a file").click();
  await page.getByLabel("Path on the daemon's host").fill("/srv/map.bin");
  const submit = page.getByRole("button", { name: "Send", exact: true });
  await submit.click();
  await expect(page.getByRole("status")).toContainText("is being sent: transfer 1-000000aa.");

  await page.getByLabel("these").check();
  await expect(submit).toBeDisabled();
  await expect(page.getByRole("checkbox", { name: "n01" })).toHaveCount(0);
  for (const name of ["n05", "n02"]) await page.getByRole("checkbox", { name }).check();
  expect(await violations(page)).toEqual([]);
  await submit.click();
  await expect.poll(() => given.length).toBe(2);
  expect(given.map((request) => [request.method(), request.url()])).toEqual(
    [1, 2].map(() => ["POST", `${address}/daemon/v1/transfers`]),
  );
  expect(given.map((request) => request.postDataJSON() as object)).toEqual([
    { path: "/srv/map.bin", to: "all" },
    { path: "/srv/map.bin", to: ["n02", "n05"] },
  ]);
});

test("a transfer is cancelled after a question", async ({ page, address }) => {
  const given = await answering(page, { id: "1-09ab12ff" });
  await enter(page, address);
  await page.getByRole("button", { name: "Cancel map.tar.gz" }).click();
  await expect(dialog(page)).toContainText("It ends for all its receivers.");
  expect(await violations(page)).toEqual([]);
  await page.getByRole("button", { name: "Let it go on" }).click();
  expect(given).toEqual([]);
  await page.getByRole("button", { name: "Cancel map.tar.gz" }).click();
  await page.getByRole("button", { name: "Cancel the transfer" }).click();
  await expect(page.getByRole("status")).toContainText("map.tar.gz is cancelled.");
  expect(given.map((request) => [request.method(), request.url()])).toEqual([
    ["DELETE", `${address}/daemon/v1/transfers/1-09ab12ff`],
  ]);
});

test("the path to a node is measured, hop by hop", async ({ page, address }) => {
  const hop = { id: 2, name: HOSTILE, delivery: 0.9, delivery_back: 0.85, etx: 1.3, rtt_s: 0.0123 };
  const hops = [hop, { ...hop, id: 9, name: "n09", rtt_s: null }];
  const given = await answering(page, { id: 9, name: "n09", etx: 2.6, hops });
  await enter(page, address);
  await page.getByRole("link", { name: "Map" }).click();
  const node = page.getByRole("combobox", { name: "Node" });
  // Not to itself.
  await node.selectOption("n01");
  const measure = page.getByRole("button", { name: "Measure the path" });
  await expect(measure).toHaveCount(0);
  await node.selectOption("n09");
  await measure.click();
  const row = page.getByRole("row", { name: HOSTILE });
  await expect(row).toContainText("12.3 ms");
  await expect(page.getByRole("row", { name: /^n09 .* no answer/ })).toBeVisible();
  expect(await violations(page)).toEqual([]);
  expect(given.map((request) => [request.method(), request.url()])).toEqual([
    ["POST", `${address}/daemon/v1/paths/n09`],
  ]);
  expect(given[0]!.postDataJSON()).toEqual({ count: 3 });
});

test("the configuration is read again, and what differs is said", async ({ page, address }) => {
  await answering(page, { changed: ["[node] name"], restart: ["[radio]"] });
  await enter(page, address);
  await commands(page).click();
  await page.getByRole("button", { name: "Read configuration again" }).click();
  const said = "Changed: [node] name. Only after a restart: [radio].";
  await expect(page.getByRole("status")).toContainText(said);
});

test("a refusal is said in the daemon's words, which stay text", async ({ page, address }) => {
  await answering(page, { error: `${HOSTILE} cannot be read`, code: "file" }, 422);
  await enter(page, address);
  await page.getByRole("button", { name: "Cancel map.tar.gz" }).click();
  await page.getByRole("button", { name: "Cancel the transfer" }).click();
  await expect(page.getByRole("alert")).toContainText(`${HOSTILE} cannot be read.`);
  expect(await violations(page)).toEqual([]);
});

test("a daemon with another token, or none, or gone, is told apart", async ({ page, address }) => {
  await answering(page);
  await enter(page, address);
  const attempt = async () => {
    await page.getByRole("button", { name: "Cancel map.tar.gz" }).click();
    await page.getByRole("button", { name: "Cancel the transfer" }).click();
  };
  await page.route("**/v1/**", (route) => route.abort());
  await attempt();
  await expect(page.getByRole("alert")).toContainText("The daemon does not answer.");
  await page.route("**/v1/**", (route) => route.fulfill({ status: 403, body: "looking\n" }));
  await attempt();
  await expect(page.getByRole("alert")).toContainText("for looking only now");
  await page.route("**/v1/**", (route) => route.fulfill({ status: 401, body: "token\n" }));
  await attempt();
  await expect(page.getByRole("alert")).toContainText("does not take this token");
  await expect(commands(page)).toHaveText("Commands");
});

test("a daemon for looking only says so, and a simulation asks nothing", async ({ page, open }) => {
  await open("looking/#/transfers");
  await commands(page).click();
  await expect(dialog(page)).toContainText("for looking only");
  await expect(page.getByLabel("Token")).toHaveCount(0);
  expect(await violations(page)).toEqual([]);
  for (const path of ["live/", "campus/"]) {
    await open(path);
    await expect(page.getByRole("slider", { name: "Time" })).toBeVisible();
    await expect(commands(page)).toHaveCount(0);
  }
});
