/** Which requests over plain HTTP are redirected, and to where. */
import { describe, expect, test } from "vitest";
import { refusalAnswer } from "../src/http/refusals.ts";
import { httpsLocation } from "../src/https-redirect.ts";
import { acquireAt, request, useProxyWorld, w } from "./proxy-world.ts";

const said = (given: Record<string, string>) =>
  Object.entries(given).map(([name, value]) => ({ name, key: name.toLowerCase(), value }));

test.each<[string, Parameters<typeof request>[0], number | undefined, string | undefined]>([
  ["a plain request", {}, 8443, "https://shop.localhost:8443/"],
  ["one to the usual port", {}, 443, "https://shop.localhost/"],
  ["its path and query", { target: "/a%20b?c=d&e" }, 443, "https://shop.localhost/a%20b?c=d&e"],
  ["an address", { host: "[::1]" }, 8443, "https://[::1]:8443/"],
  ["one over TLS", { secure: true }, 8443, undefined],
  ["without HTTPS", {}, undefined, undefined],
  ["a challenge", { target: "/.well-known/acme-challenge/token" }, 443, undefined],
  [
    "what only looks like one",
    { target: "/.well-known/acme-challenge" },
    443,
    "https://shop.localhost/.well-known/acme-challenge",
  ],
  ["OPTIONS *", { target: "*" }, 443, undefined],
  ["one that was sent on", { to: { from: "shop", app: "shop", machineId: undefined } }, 443, undefined],
  ["HTTPS in front", { fields: said({ "X-Forwarded-Proto": "https" }) }, 8443, undefined],
  ["WebSocket over TLS in front", { fields: said({ "X-Forwarded-Proto": "wss" }) }, 8443, undefined],
  ["HTTP in front", { fields: said({ "X-Forwarded-Proto": "HTTP" }) }, undefined, "https://shop.localhost/"],
  [
    "another name and port in front",
    { fields: said({ "X-Forwarded-Proto": "http", "X-Forwarded-Host": "www.example.com:8080" }) },
    8443,
    "https://www.example.com/",
  ],
  [
    "nonsense in front",
    { fields: said({ "X-Forwarded-Proto": "http", "X-Forwarded-Host": "evil/path" }) },
    8443,
    "https://shop.localhost/",
  ],
])("%s", (_what, more, tlsPort, location) => {
  expect(httpsLocation(request(more), tlsPort)).toBe(location);
});

describe("a request to an app with force_https", () => {
  useProxyWorld();

  test("is redirected with its method, unless the proxy serves no HTTPS", async () => {
    await w.machine({ force_https: true });
    const proxy = await w.anotherProxy({ tlsPort: () => 8443 });
    const refusal = await acquireAt(proxy.broker, request({ method: "POST" })).catch((error: unknown) => error);
    expect(refusal).toMatchObject({ status: 308, code: "https_required", location: "https://shop.localhost:8443/" });
    const { answer } = refusalAnswer(refusal as Parameters<typeof refusalAnswer>[0], "r");
    expect(answer.fields).toContainEqual({
      ...{ name: "Location", key: "location", value: "https://shop.localhost:8443/" },
    });
    expect((await acquireAt(proxy.broker, request({ secure: true }))).appName).toBe("shop");
    expect((await acquireAt(w.broker)).appName).toBe("shop");
  });
});
