/** Lists of machines, limited by a query. */
import { STATES } from "@hibernaut/domain/machine";
import { beforeEach, expect, test } from "vitest";
import { filterOf, isWanted } from "../src/machine-filter.ts";
import { testApi } from "./helpers.ts";
import type { Call } from "./openapi-check.ts";
import { seeded } from "./random.ts";

const SEED = 70;
const ROUNDS = 2000;

test(`a machine is wanted if each part of the query says so by itself (seed ${SEED})`, () => {
  const { pick, below, oneIn } = seeded(SEED);
  const [keys, values] = [
    ["team", "a.b", "constructor", "x"],
    ["", "1", "search"],
  ] as const;
  let wanted = 0;
  for (let round = 0; round < ROUNDS; round += 1) {
    const labels = () => Object.fromEntries(Array.from({ length: below(4) }, () => [pick(keys), pick(values)]));
    const metadata = labels();
    const machine = {
      state: pick(STATES),
      region: pick(["local", "far"]),
      config: { image: "x", ...(!oneIn(4) && { metadata }) },
    };
    const parts: Record<string, string | string[]>[] = Object.entries(labels()).map(([key, value]) => ({
      [`metadata.${key}`]: value,
    }));
    if (oneIn(2)) parts.push({ state: oneIn(2) ? STATES.slice(below(3), 6).join(",") : [pick(STATES), pick(STATES)] });
    if (oneIn(3)) parts.push({ region: pick(["local", "far"]) });
    const holds = (query: Record<string, unknown>) => isWanted(machine, filterOf(query));
    const all = holds(Object.assign({}, ...parts) as Record<string, unknown>);
    expect(all, JSON.stringify([machine, parts])).toBe(parts.every(holds));
    wanted += Number(all);
  }
  expect(wanted).toBeGreaterThan(ROUNDS / 20);
});

let call: Call;
beforeEach(async () => {
  ({ call } = await testApi());
});

async function named(path: string): Promise<string[]> {
  const { status, body } = await call("GET", path);
  expect(status, JSON.stringify(body)).toBe(200);
  return body.map(({ name }: { name: string }) => name);
}

test.each(["/v1/machines", "/v1/apps/shop/machines"])("%s shows what all parts of a query hold of", async (path) => {
  const make = (name: string, metadata: object, skip_launch: boolean) =>
    call("POST", "/v1/apps/shop/machines", { name, config: { image: "x", metadata }, skip_launch });
  await make("one", { team: "search", "a.b/c": "1 2&3" }, true);
  await make("two", { team: "search" }, false);
  await make("three", { team: "toString" }, true);
  await call("GET", "/v1/apps/shop/machines/two/wait");
  expect(await named(path)).toEqual(["one", "two", "three"]);
  expect(await named(`${path}?metadata.team=search`)).toEqual(["one", "two"]);
  expect(await named(`${path}?metadata.team=search&metadata.a.b%2Fc=1%202%263`)).toEqual(["one"]);
  expect(await named(`${path}?metadata.team=search&metadata.team=other`)).toEqual([]);
  expect(await named(`${path}?metadata.toString=x`)).toEqual([]);
  expect(await named(`${path}?metadata.team=search&state=started`)).toEqual(["two"]);
  expect(await named(`${path}?state=created&state=stopped,running`)).toEqual(["one", "two", "three"]);
  expect(await named(`${path}?region=local&state=created`)).toEqual(["one", "three"]);
  expect(await named(`${path}?region=far`)).toEqual([]);
});

test.each([
  ["state=suspendd", "`suspendd` is not a valid `state`. Did you mean `suspended`?"],
  ["stat=running", "Unknown key `stat`; did you mean `state`?"],
  ["metadata=x", /Unknown key `metadata`; known here: `state`, `region`, what matches/],
  ["metadata.=x", /Unknown key/],
  ["region=a&region=b", /region/],
])("a list with ?%s is refused", async (query, message) => {
  for (const path of ["/v1/machines", "/v1/apps/shop/machines"])
    expect(await call("GET", `${path}?${query}`)).toMatchObject({
      status: 400,
      body: { error: "invalid_argument", message: expect.stringMatching(message) },
    });
});
