import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vitest/config";

/**
 * Mode `standalone` builds one script and one stylesheet, which `scripts/build.mjs` puts into one
 * HTML file; otherwise parts that are rarely needed are files of their own.
 */
export default defineConfig(({ mode }) => {
  const isStandalone = mode === "standalone";
  return {
    plugins: [svelte()],
    base: "./",
    build: {
      target: "es2022",
      outDir: isStandalone ? "build/standalone" : "build/served",
      emptyOutDir: true,
      modulePreload: false,
      // Inline data would need an exception in the content security policy.
      assetsInlineLimit: 0,
      cssCodeSplit: false,
      reportCompressedSize: false,
      rolldownOptions: {
        output: {
          // No hashes: the built files are in the repository, and their names shall not change.
          entryFileNames: "app.js",
          chunkFileNames: "[name].js",
          assetFileNames: "[name][extname]",
          ...(isStandalone ? { codeSplitting: false } : {}),
        },
      },
    },
    test: { include: ["tests/model/**/*.test.ts"] },
  };
});
