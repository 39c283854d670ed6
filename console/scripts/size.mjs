// Fails if what a browser loads of the console is larger than agreed, compressed with gzip.
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const LIMIT = 150_000;
const DIST = join(dirname(fileURLToPath(import.meta.url)), "../../crates/web/dist");

let total = 0;
for (const name of readdirSync(DIST).sort()) {
    const size = gzipSync(readFileSync(join(DIST, name)), { level: 9 }).length;
    const isServed = name !== "standalone.html";
    if (isServed) total += size;
    console.log(`${String(size).padStart(8)}  ${name}${isServed ? "" : "  (alone)"}`);
}
console.log(`${String(total).padStart(8)}  of ${LIMIT} bytes`);
if (total > LIMIT) {
    console.error("The console is too large: load what is rare with import(), or leave it out.");
    process.exit(1);
}
