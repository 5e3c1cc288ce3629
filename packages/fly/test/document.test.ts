/** Every operation of Fly's public document is answered, by what it does or by why it does nothing here. */
import { expect, test } from "vitest";
import { REFUSED } from "../src/routes/refused.ts";
import { documented } from "./document.ts";
import { startFly } from "./helpers.ts";

const place = (path: string) => path.replaceAll(/\{[^}]+\}|:\w+/g, "{}");

/** The page of the documents that lists them. */
const PAGE = "../../../docs/fly-routes.md";

test("the documents list each", async () => {
  const refused = new Map(REFUSED.map(([method, url, sentence]) => [`${method} ${place(url)}`, sentence]));
  const rows = documented()
    .map(({ method, path }) => [
      `${path} ${method}`,
      `| \`${method} /v1${path}\` | ${refused.get(`${method} ${place(path)}`) ?? "works"} |`,
    ])
    .toSorted(([one = ""], [other = ""]) => one.localeCompare(other))
    .map(([, row]) => row);
  const head =
    "Every route of the public document of Fly Machines' API, and what becomes of it [here](fly.md). A test makes this page.";
  const page = ["# Routes of Fly's API", "", head, "", "| route | |", "|---|---|", ...rows, ""].join("\n");
  await expect(page).toMatchFileSnapshot(PAGE);
});

test("none is missing: what is not carried out is refused with a sentence", async () => {
  const { call } = await startFly();
  const refused = new Set(REFUSED.map(([method, url]) => `${method} ${place(url)}`));
  const answers = await Promise.all(
    documented().map(async ({ name, method, path }) => {
      const at = path.replaceAll(/\{[^}]+\}/g, "nothing");
      const { status, body } = await call<{ error?: string }>(method, `/v1${at}`, method === "GET" ? undefined : {});
      return { name, method, path, status, error: body.error ?? "" };
    }),
  );
  expect(answers.length).toBeGreaterThanOrEqual(70);
  for (const { name, method, path, status, error } of answers) {
    if (refused.has(`${method} ${place(path)}`)) {
      expect([name, status]).toEqual([name, 501]);
      expect(error.length).toBeGreaterThan(20);
    } else
      expect([name, status, error]).not.toEqual([
        name,
        expect.any(Number),
        expect.stringMatching(/^There is no [A-Z]+ \//),
      ]);
  }
});
