/** Work that the API answers with its progress, line by line. */

/**
 * Sends a POST to a host's API, and resolves with the last line of the answer. Rejects if that is an error.
 *
 * @param {import("./hosts.mjs").BenchHost} host
 * @param {string} path
 * @param {unknown} body
 * @returns {Promise<Record<string, unknown>>}
 */
export async function lastLine({ apiUrl, token }, path, body) {
  const response = await fetch(`${apiUrl}/v1${path}`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  const answer = JSON.parse((await response.text()).trim().split("\n").at(-1) ?? "{}");
  if (answer.error !== undefined) throw new Error(`${answer.error}: ${answer.message}`);
  return answer;
}
