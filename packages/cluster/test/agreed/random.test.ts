/** Random changes through several hosts, some of which stop and start again: every name has one owner, and all stores are equal. */
import { isHibernautError } from "@hibernaut/domain/errors";
import fc from "fast-check";
import { expect, test, vi } from "vitest";
import { createToken, revokeToken, rotateToken } from "../../../api/src/tokens.ts";
import { longOr } from "../../../platform/test/helpers/long.ts";
import { startHosts, type TestHost } from "./hosts.ts";

const RUNS = longOr(60, 8);
const APPS = ["shop", "blog"];
const NAMES = ["www.example.com", "api.example.com"];

type Change =
  | { kind: "create" | "delete" | "release" | "page" | "token" | "quota"; app: string }
  | { kind: "hostname" | "unname"; app: string; name: string }
  | { kind: "secret" | "unset"; app: string; name: string; value: string }
  | { kind: "revoke" | "rotate"; index: number }
  | { kind: "restart" };

const app = fc.constantFrom(...APPS);
const change: fc.Arbitrary<Change> = fc.oneof(
  fc.record({ kind: fc.constantFrom("create", "delete", "release", "page", "token", "quota"), app }),
  fc.record({ kind: fc.constantFrom("create" as const), app }),
  fc.record({ kind: fc.constantFrom("hostname", "unname"), app, name: fc.constantFrom(...NAMES) }),
  fc.record({
    kind: fc.constantFrom("secret", "unset"),
    app,
    name: fc.constantFrom("ONE", "TWO"),
    value: fc.constantFrom("1", "2"),
  }),
  fc.record({ kind: fc.constantFrom("revoke", "rotate"), index: fc.nat(4) }),
  { weight: 1, arbitrary: fc.constant({ kind: "restart" as const }) },
);
const step = fc.record({ host: fc.nat(2), change, wait: fc.boolean() });

/** What was promised to clients: who got a name, and when. */
interface Promised {
  created: string[];
}

async function carryOut({ shared, world }: TestHost, wanted: Change, promised: Promised): Promise<void> {
  if (wanted.kind === "delete") return shared.deleteApp(wanted.app, async () => {});
  if (wanted.kind === "restart") return;
  const tokens = world.store.tokens.list();
  await shared.write<unknown>((parts) => {
    if (wanted.kind === "page") return void parts.apps.setStatusPage(wanted.app, true);
    if (wanted.kind === "quota") return parts.quotas.set(parts.apps.get(wanted.app).name, { machines: 3 });
    if (wanted.kind === "release") return parts.releases.begin(wanted.app, "app:1", "");
    if (wanted.kind === "hostname") return void parts.hostnames.add(wanted.app, wanted.name);
    if (wanted.kind === "unname") return parts.hostnames.remove(wanted.app, wanted.name);
    if (wanted.kind === "secret") return void parts.secrets.set(wanted.app, { [wanted.name]: wanted.value });
    if (wanted.kind === "unset") return void parts.secrets.unset(wanted.app, wanted.name);
    if (wanted.kind === "token") return void createToken(parts.tokens, "t", { apps: [wanted.app] });
    if (wanted.kind === "revoke") return revokeToken(parts.tokens, tokens[wanted.index]?.id ?? "none");
    if (wanted.kind === "rotate")
      return void rotateToken(parts.tokens, tokens[wanted.index]?.id ?? "none", { overlapMs: 60_000 });
    if (wanted.kind === "create") parts.apps.create(wanted.app);
  });
  if (wanted.kind === "create") promised.created.push(wanted.app);
}

test(`after ${RUNS} random histories, all hosts have the same records as the directory`, async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 60 }), async (steps) => {
      const running = await startHosts();
      try {
        const promised: Promised = { created: [] };
        const going: Promise<void>[] = [];
        for (const { host: index, change: wanted, wait } of steps) {
          const host = running.hosts[index];
          if (host === undefined) continue;
          if (wanted.kind === "restart") {
            await Promise.all(going.splice(0));
            await host.stop();
            await host.start();
            continue;
          }
          // A refusal by a rule is an answer like any other. Anything else is a fault.
          const done = carryOut(host, wanted, promised).catch((error: unknown) => {
            if (!isHibernautError(error) || error.code === "unavailable") throw error;
          });
          going.push(done);
          if (wait) await Promise.all(going.splice(0));
        }
        await Promise.all(going);
        const [first, ...others] = running.hosts as [TestHost, ...TestHost[]];
        const { entries } = await first.cluster.directory.list("/hib/");
        const agreed = entries.filter(({ key }) => /^\/hib\/(apps|hostnames|tokens|secrets|releases)\//.test(key));
        await vi.waitFor(
          () => {
            expect(sorted(first.records())).toEqual(
              agreed.map(({ key, value }) => [key, withoutHost(JSON.parse(value))]),
            );
            for (const other of others) expect(sorted(other.records())).toEqual(sorted(first.records()));
          },
          { timeout: 10_000, interval: 20 },
        );
        for (const name of NAMES) {
          const owner = first.platform.hostnames.owners()[name];
          if (owner !== undefined) expect(first.platform.apps.get(owner).name).toBe(owner);
        }
        // Each app that exists was created for one client; each creation but the last was followed by a deletion.
        for (const { name } of first.platform.apps.list()) expect(promised.created).toContain(name);
      } finally {
        await running.close();
      }
    }),
    { numRuns: RUNS },
  );
});

function sorted(records: Map<string, object>): [string, unknown][] {
  return [...records]
    .map(([key, value]): [string, unknown] => [key, withoutHost(value)])
    .toSorted(([one], [other]) => (one < other ? -1 : 1));
}

/** Which host a release's client reports to is known to the directory alone. */
function withoutHost(value: unknown): unknown {
  if (Array.isArray(value)) return value;
  const { host: _from, ...rest } = value as { host?: unknown };
  return rest;
}
