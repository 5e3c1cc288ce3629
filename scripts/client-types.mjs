/**
 * Generates the client's types from the platform's OpenAPI document: packages/client/src/openapi.d.ts.
 * `npm run client-types`. The platform doesn't have to run.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { generateClientTypes } from "./lib/client-types.mjs";

const root = join(import.meta.dirname, "..");
const output = join(root, "packages/client/src/openapi.d.ts");

const types = await generateClientTypes();
if (types === readFileSync(output, "utf8")) {
  console.log(`${relative(root, output)} is up to date`);
} else {
  writeFileSync(output, types);
  console.log(`wrote ${relative(root, output)}`);
}
