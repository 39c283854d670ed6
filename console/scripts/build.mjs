// Builds the console into crates/web/dist, which is committed and put into the binary:
//
// - index.html and what it loads, for a server;
// - standalone.html, one file with everything in it, for `--html`. Rust puts recordings, in base64
//   and separated by line ends, in the place of NCMESH_RECORDINGS.
import { createHash } from "node:crypto";
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "vite";

const ROOT = join(dirname(fileURLToPath(import.meta.url)), "..");
const DIST = join(ROOT, "../crates/web/dist");
const PLACEHOLDER = "NCMESH_RECORDINGS";

for (const mode of ["served", "standalone"]) {
    await build({ root: ROOT, mode, logLevel: "warn" });
}
rmSync(DIST, { recursive: true, force: true });
mkdirSync(DIST, { recursive: true });
cpSync(join(ROOT, "build/served"), DIST, { recursive: true });
writeFileSync(join(DIST, "standalone.html"), standalone(join(ROOT, "build/standalone")));

/** Returns the page with its script and its styles inside. */
function standalone(folder) {
    const read = (name) => readFileSync(join(folder, name), "utf8");
    // Inside a script element, these would end it or begin a comment.
    const script = read("app.js").replaceAll("</script", "<\\/script").replaceAll("<!--", "<\\!--");
    const styles = read("style.css");
    const icon = Buffer.from(read("icon.svg")).toString("base64");
    if (script.includes(PLACEHOLDER))
        throw new Error(`${PLACEHOLDER} may be in the page only once`);

    // Only this script may run, and nothing is loaded: hostile names in a recording stay text.
    const hash = createHash("sha256").update(script).digest("base64");
    const policy = [
        "default-src 'none'",
        `script-src 'sha256-${hash}'`,
        "style-src 'unsafe-inline'",
        "img-src data:",
    ].join("; ");
    return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>ncmesh</title>
<link rel="icon" href="data:image/svg+xml;base64,${icon}">
<style>${styles}</style>
</head>
<body>
<div id="app"></div>
<script type="text/plain" id="recordings">${PLACEHOLDER}</script>
<script type="module">${script}</script>
</body>
</html>
`;
}
