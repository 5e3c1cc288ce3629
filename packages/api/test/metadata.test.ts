/** Metadata of machines over HTTP, and its bounds wherever a request has some. */
import { beforeEach, expect, test } from "vitest";
import { testApi } from "./helpers.ts";
import type { Call } from "./openapi-check.ts";

let call: Call;
let path: string;
beforeEach(async () => {
  ({ call } = await testApi());
  const config = { image: "x", metadata: { team: "search" } };
  const { body } = await call("POST", "/v1/apps/shop/machines", { config, skip_launch: true });
  path = `/v1/apps/shop/machines/${body.id}`;
});

const metadata = async () => (await call("GET", `${path}/metadata`)).body;
const keys = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`, "v"]));

test("is shown, set, merged and removed, in the configuration as well, and the version stays", async () => {
  const { version } = (await call("GET", path)).body;
  expect(await metadata()).toEqual({ team: "search" });
  expect(await call("POST", `${path}/metadata/a%2Fb.c`, { value: "" })).toMatchObject({ body: { ok: true } });
  const merged = await call("PATCH", `${path}/metadata`, { team: null, build: "7", none: null });
  expect(merged.body).toEqual({ "a/b.c": "", build: "7" });
  expect((await call("GET", path)).body).toMatchObject({ version, config: { metadata: merged.body } });
  for (let round = 0; round < 2; round += 1)
    expect(await call("DELETE", `${path}/metadata/a%2Fb.c`)).toMatchObject({ status: 200, body: { ok: true } });
  expect(await metadata()).toEqual({ build: "7" });
  const again = await call("POST", path, { config: { image: "x", metadata: { only: "this" } } });
  expect(again.status).toBe(200);
  await call("GET", `${path}/wait?state=settled`);
  expect(await metadata()).toEqual({ only: "this" });
});

test("what is too much or not a label is refused, and nothing changes", async () => {
  const long = (count: number) => "x".repeat(count);
  const wrong: [string, string, unknown][] = [
    ...["a%20b", "%C3%A4", "a%0A", long(65), "__proto__", "%00"].map((key): [string, string, unknown] => [
      "POST",
      `${path}/metadata/${key}`,
      { value: "x" },
    ]),
    ...[{}, { value: 1 }, { value: null }, { value: long(1025) }, { value: "x", other: 1 }, [], "x", undefined].map(
      (body): [string, string, unknown] => ["POST", `${path}/metadata/key`, body],
    ),
    ...[{ "a b": "x" }, { a: 1 }, { a: { b: "c" } }, { a: long(1025) }, keys(64), keys(129), [], undefined].map(
      (body): [string, string, unknown] => ["PATCH", `${path}/metadata`, body],
    ),
    ["PATCH", `${path}/metadata`, '{"__proto__":"x"}'],
    ["DELETE", `${path}/metadata/a%20b`, undefined],
    ...[keys(65), { [long(65)]: "x" }, { a: long(1025) }, { "": "x" }].flatMap(
      (labels): [string, string, unknown][] => {
        const config = { image: "x", metadata: labels };
        return [
          ["POST", path, { config }],
          ["POST", "/v1/apps/shop/machines", { config }],
        ];
      },
    ),
  ];
  for (const [method, at, body] of wrong) {
    const reply = await call(method, at, body);
    expect(reply, `${method} ${at} ${JSON.stringify(body)?.slice(0, 80)}`).toMatchObject({
      status: 400,
      body: { error: "invalid_argument" },
    });
  }
  expect(await metadata()).toEqual({ team: "search" });
  expect((await call("PATCH", `${path}/metadata`, { ...keys(63) })).status).toBe(200);
});
