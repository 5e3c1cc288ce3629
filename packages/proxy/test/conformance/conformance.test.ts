/**
 * Awkward HTTP, the same bytes through our engine, nginx and HAProxy, in front of the same app. The tables say what
 * ours makes of it; where a reference does something else they say why, and it is held to that as well.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { rig } from "../http/helpers.ts";
import { App } from "./app.ts";
import type { ReferenceName } from "./case.ts";
import { THEMES } from "./cases/index.ts";
import { play } from "./exchange.ts";
import { type Reference, startReference } from "./reference.ts";

const NAMES: readonly ReferenceName[] = ["nginx", "HAProxy"];
const references = new Map<ReferenceName, Reference>();
let app: App;

beforeAll(async () => {
  app = await App.start();
  for (const name of NAMES) references.set(name, await startReference(name, app.port));
});

afterAll(async () => {
  await Promise.allSettled([...references.values()].map((reference) => reference.stop()));
  await app.stop();
});

describe.each(THEMES)("$name", ({ cases }) => {
  describe.each(cases)("$name", (one) => {
    const { ours, differs = {} } = one;

    test("ours", async () => {
      const { port } = await rig({ app });
      expect(await play(one, port, app)).toEqual(ours);
    });

    for (const name of NAMES) {
      const reason = differs[name];
      test(`${name} ${reason ?? "does the same"}`, async () => {
        const outcome = await play(one, references.get(name)?.port ?? 0, app);
        if (reason === undefined) expect(outcome).toEqual(ours);
        else expect(outcome).not.toEqual(ours);
      });
    }
  });
});
