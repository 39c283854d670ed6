import { defineConfig } from "@playwright/test";

export default defineConfig({
  testDir: ".",
  // Pictures are for a person to look at, and are taken only into a folder that is named.
  testIgnore: process.env["PICTURES"] ? [] : ["pictures.spec.ts"],
  outputDir: "../../test-results",
  timeout: 30_000,
  workers: 2,
  fullyParallel: true,
  forbidOnly: true,
  reporter: "line",
  use: {
    viewport: { width: 1440, height: 900 },
    launchOptions: {
      executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium",
      args: [
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
      ],
    },
  },
});
