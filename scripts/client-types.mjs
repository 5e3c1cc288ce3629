/**
 * Generates the client's types from the platform's OpenAPI document: packages/client/src/openapi.d.ts.
 * `npm run client-types`, which setup and `npm run check` do by themselves. The platform doesn't have to run.
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { generateClientTypes } from "./lib/client-types.mjs";

const root = join(import.meta.dirname, "..");
const output = join(root, "packages/client/src/openapi.d.ts");

const types = await generateClientTypes();
// Untouched unless they change: an editor would read them again.
if (!existsSync(output) || types !== readFileSync(output, "utf8")) writeFileSync(output, types);
