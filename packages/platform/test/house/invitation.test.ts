/** The last lines of `npm run up`: the form of the command is one that works where it is typed. */
import { symlink } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { invitation } from "../../../../scripts/lib/invitation.mjs";
import { tempFolder } from "../helpers/temp.ts";

const ROOT = join(import.meta.dirname, "../../../..");
const PROGRAM = join(ROOT, "packages/cli/bin/hibernaut.js");
const tour = {
  accelerator: "tcg",
  cold_start_ms: 5000,
  suspend_ms: 60,
  resume_ms: 250,
  resumed: true,
  search: "tea",
  found: [],
  requests: [1, 2],
  app: "hibernaut-tour",
  machine_id: "3f9c01ab22de41",
  address: "10.213.0.2:3000",
};
const platform = {
  apiUrl: "http://127.0.0.1:4280",
  proxyUrl: "http://127.0.0.1:8080" as string | null,
  call: async () => {},
  ended: Promise.resolve(0),
  stop: async () => {},
};

/** The lines to type. */
function lines(PATH: string, proxyUrl = platform.proxyUrl): string[] {
  const text = invitation(tour, { ...platform, proxyUrl }, { PATH });
  return [...text.matchAll(/^ {2}(.*)$/gm)].map(([, line = ""]) => line);
}

test("`hibernaut` where it is on the PATH and ours", async () => {
  const folder = await tempFolder();
  await symlink(PROGRAM, join(folder, "hibernaut"));
  expect(lines(`/usr/bin:${folder}`)).toEqual([
    "hibernaut machine suspend 3f9c01ab22de41 --app hibernaut-tour",
    "hibernaut machine list --app hibernaut-tour",
    'curl -i "http://hibernaut-tour.localhost:8080/products?name=tea"',
  ]);
});

test("`npx hibernaut` in the repository where it is not, or belongs to someone else, or is npm's own for scripts", async () => {
  const other = await tempFolder();
  await symlink("/bin/true", join(other, "hibernaut"));
  for (const path of ["", other, join(ROOT, "node_modules/.bin")]) {
    expect(lines(path).slice(0, 2)).toEqual([
      `cd ${ROOT}`,
      "npx hibernaut machine suspend 3f9c01ab22de41 --app hibernaut-tour",
    ]);
  }
});

test("where no proxy wakes machines, it is started first", () => {
  expect(lines("", null).slice(-2)).toEqual([
    "npx hibernaut machine start 3f9c01ab22de41 --app hibernaut-tour",
    'curl "10.213.0.2:3000/products?name=tea"',
  ]);
});
