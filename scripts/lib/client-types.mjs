/** The client's types as text. */
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import openapiTS, { astToString } from "openapi-typescript";
import { apiDocument } from "../../packages/api/src/document.ts";

const ROOT = join(import.meta.dirname, "../..");

const HEADER = `/**
 * Generated from the platform's OpenAPI document by \`npm run client-types\`. Don't edit this file:
 * change the schemas in packages/api/src/routes instead.
 */
`;

/**
 * Returns what packages/client/src/openapi.d.ts should contain.
 *
 * @returns {Promise<string>}
 */
export async function generateClientTypes() {
  // The types don't depend on the version that the document has.
  const document = await apiDocument("0");
  const nodes = await openapiTS(/** @type {import("openapi-typescript").OpenAPI3} */ (document), {
    // A field with a default may be left out of a request.
    defaultNonNullable: false,
  });
  return formatted(HEADER + astToString(nodes));
}

/** @param {string} code */
function formatted(code) {
  const biome = join(ROOT, "node_modules/.bin/biome");
  const { status, stdout, stderr } = spawnSync(biome, ["format", "--stdin-file-path=openapi.d.ts"], {
    cwd: ROOT,
    input: code,
    encoding: "utf8",
    maxBuffer: 16 * 1024 * 1024,
  });
  if (status !== 0) throw new Error(`Biome could not format the client's types: ${stderr}`);
  return stdout;
}
