/** The client's types as text. */
import openapiTS, { astToString } from "openapi-typescript";
import { apiDocument } from "../../packages/api/src/document.ts";

const HEADER = `/**
 * Generated from the platform's OpenAPI document by \`npm run client-types\`, and not in git: change
 * the schemas in packages/api/src/routes instead.
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
  return HEADER + astToString(nodes);
}
