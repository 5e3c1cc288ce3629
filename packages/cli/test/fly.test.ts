/** What programs need that were written for Fly: where the platform is, and a token. */
import { expect, test } from "vitest";
import { flyEnvironment } from "../src/fly-environment.ts";
import { useCli } from "./helpers.ts";

const { hibernaut } = useCli();

test("`fly env` prints what to export, or what to set first", async () => {
  const settings = { HIBERNAUT_FLY_LISTEN: "127.0.0.1:4281" };
  const url = "http://127.0.0.1:4281";
  expect(await hibernaut("fly env --app shop", settings)).toMatchObject({
    code: 0,
    stdout: `export FLY_FLAPS_BASE_URL=${url}\nexport FLY_API_BASE_URL=${url}\nexport FLY_UIEX_BASE_URL=${url}\nexport FLY_API_HOSTNAME=${url}\nexport FLY_SEND_METRICS=0\nexport FLY_TRACE_COLLECTOR_URL=127.0.0.1\nexport FLY_APP=shop\n# Set FLY_API_TOKEN, too, to a token: hibernaut tokens create <name>\n`,
  });
  expect(await hibernaut("fly env")).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("HIBERNAUT_FLY_LISTEN is not set here"),
  });
});

test("the address is one that a client can connect to", () => {
  const urlAt = (host: string, apiTlsCert?: string) =>
    flyEnvironment({ flyListen: { host, port: 4281 }, apiTlsCert }).FLY_FLAPS_BASE_URL;
  expect(urlAt("0.0.0.0")).toBe("http://127.0.0.1:4281");
  expect(urlAt("::1")).toBe("http://[::1]:4281");
  expect(urlAt("box.internal", "/etc/c.pem")).toBe("https://box.internal:4281");
  expect(() => flyEnvironment({ flyListen: { host: "::", port: 0 } })).toThrow("another port after each start");
});
