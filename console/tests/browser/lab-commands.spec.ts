/** Commands from the page to real daemons. */
import { expect } from "@playwright/test";
import { labOf, PORT } from "./lab";

const TOKEN = "0123456789abcdef0123456789abcdef";
const test = labOf((file) => ["pair", "--token-file", file("token", `${TOKEN}\n`)]);

test("a page sends a file, cancels another on its way, and measures a path", async ({
  page,
  lab,
}) => {
  test.setTimeout(120_000);
  // The lab's own file first.
  await lab.line(/stays up until/);
  await page.goto(`http://127.0.0.1:${PORT}/#/transfers`);
  await page.getByRole("button", { name: "Commands" }).click();
  await page.getByLabel("Token").fill(TOKEN.replaceAll("f", "e"));
  await page.keyboard.press("Enter");
  await expect(page.getByRole("alert")).toContainText("does not take this token");
  await page.getByLabel("Token").fill(TOKEN);
  await page.keyboard.press("Enter");

  await page.getByText("Send a file").click();
  const path = page.getByLabel("Path on the daemon's host");
  const send = page.getByRole("button", { name: "Send", exact: true });
  await path.fill(`${lab.file("short.bin", Buffer.alloc(40_000, "short"))}.missing`);
  await send.click();
  await expect(page.getByRole("alert")).toContainText("short.bin.missing cannot be read");
  await path.fill((await path.inputValue()).replace(".missing", ""));
  await send.click();
  await expect(page.getByRole("status")).toContainText("short.bin is being sent");
  const share = page.getByRole("progressbar", { name: "short.bin at b" });
  await expect(share).toHaveAttribute("aria-valuenow", "100", { timeout: 30_000 });

  // 20 MB take half a minute at 11 Mbit/s.
  await path.fill(lab.file("long.bin", Buffer.alloc(20_000_000, "long")));
  await page.getByLabel("these").check();
  await page.getByRole("checkbox", { name: "b" }).check();
  await send.click();
  await page.getByRole("button", { name: "Cancel long.bin" }).click({ timeout: 30_000 });
  await page.getByRole("button", { name: "Cancel the transfer" }).click();
  await expect(page.getByRole("status")).toContainText("long.bin is cancelled.");
  const card = page.getByRole("article").filter({ hasText: "long.bin" });
  await expect(card).toContainText("withdrawn");
  await expect(page.getByRole("button", { name: "Cancel long.bin" })).toHaveCount(0);

  await page.getByRole("link", { name: "Map" }).click();
  await page.getByRole("combobox", { name: "Node" }).selectOption("b");
  await page.getByRole("button", { name: "Measure the path" }).click();
  await expect(page.getByRole("row", { name: /^b .* ms$/ })).toBeVisible({ timeout: 10_000 });
});
