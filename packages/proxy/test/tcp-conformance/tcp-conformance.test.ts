/**
 * Awkward TLS and PROXY protocol, the same bytes through our TCP ports and through HAProxy, in front of the same apps.
 * The tables say what ours makes of it; where HAProxy does something else they say why, and it is held to that as well.
 *
 * @module-tag again
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { selfSigned } from "../../../platform/test/helpers/self-signed.ts";
import { openTempFolder, type TempFolder } from "../../../platform/test/helpers/temp.ts";
import type { Reference } from "../conformance/reference.ts";
import { type RigApp, tcpRig } from "../tcp/tcp-rig.ts";
import { App } from "./app.ts";
import type { Mode } from "./case.ts";
import { THEMES } from "./cases/index.ts";
import { play } from "./exchange.ts";
import { BEGIN_MS, startHaproxy } from "./haproxy.ts";

const CERTIFICATES: readonly [file: string, name: string][] = [
  ["a.test", "a.test"],
  ["b.test", "b.test"],
  ["_.wild.test", "*.wild.test"],
];
const OF_A = ["a.test", "x.wild.test", "x.y.wild.test"];
const references = new Map<Mode, Reference>();
let folders: TempFolder[];
let apps: App[];

beforeAll(async () => {
  folders = await Promise.all([openTempFolder("certificates"), openTempFolder("pems")]);
  const [folder = "", pems = ""] = folders.map(({ path }) => path);
  for (const [file, name] of CERTIFICATES) {
    const { certFile, keyFile } = selfSigned(folder, file, [name]);
    writeFileSync(join(pems, `${file}.pem`), `${readFileSync(certFile, "utf8")}${readFileSync(keyFile, "utf8")}`);
  }
  apps = await Promise.all(["a", "b"].map((name) => App.start(name)));
  const ports = Object.fromEntries(apps.map(({ name, port }) => [`${name}.test`, port]));
  for (const { mode } of THEMES) references.set(mode, await startHaproxy(mode, { apps: ports, pems }));
});

afterAll(async () => {
  await Promise.allSettled([...references.values()].map((reference) => reference.stop()));
  for (const app of apps) await app.stop();
  for (const { dispose } of folders) await dispose();
});

/** Our apps as the mode has them. */
function appsFor(mode: Mode): Record<string, RigApp> {
  const [a, b] = apps.map(({ port }) => ({ port }));
  switch (mode) {
    case "passthrough":
    case "terminate": {
      const tls = mode === "terminate" ? "tls" : "tls_passthrough";
      return { a: { ...a, tls, hostnames: OF_A }, b: { ...b, tls, hostnames: ["b.test"] } };
    }
    case "balanced":
    case "tells v1":
      return { a: { ...a, proxyProtocol: "v1" } };
    case "tells v2":
      return { a: { ...a, proxyProtocol: "v2" } };
  }
}

describe.each(THEMES)("$mode", ({ mode, cases }) => {
  describe.each(cases)("$name", (one) => {
    const { ours, differs } = one;

    test("ours", async () => {
      const { port } = await tcpRig({
        apps: appsFor(mode),
        folder: folders[0]?.path ?? "",
        balancers: mode === "balanced" ? ["127.0.0.1"] : [],
        limits: { handshakeMs: BEGIN_MS },
      });
      expect(await play(one, port, apps)).toBe(ours);
    });

    test(`HAProxy ${differs ?? "does the same"}`, async () => {
      const outcome = await play(one, references.get(mode)?.port ?? 0, apps);
      if (differs === undefined) expect(outcome).toBe(ours);
      else expect(outcome).not.toBe(ours);
    });
  });
});
