/** A page at the test server that fails its test on any error of a script or of the policy. */
import { test as base, expect } from "@playwright/test";
import { serve } from "./server";

interface Fixtures {
  /** Opens a case, such as `campus/#/flows`, and waits until it is drawn. */
  open: (address: string) => Promise<void>;
}

export const test = base.extend<Fixtures, { address: string }>({
  address: [
    async ({}, use) => {
      const server = await serve();
      await use(server.address);
      server.close();
    },
    { scope: "worker" },
  ],
  open: async ({ page, address }, use) => {
    const errors: string[] = [];
    page.on("pageerror", (error) => errors.push(error.message));
    page.on("console", (message) => {
      if (message.type() === "error") errors.push(message.text());
    });
    await use(async (path) => {
      await page.goto(`${address}/${path}`);
      await page.waitForFunction(() => !document.body.innerText.includes("Loading …"));
    });
    const isMissing = (text: string) => text.includes("404");
    expect(errors.filter((text) => !isMissing(text))).toEqual([]);
  },
});

export { expect };
