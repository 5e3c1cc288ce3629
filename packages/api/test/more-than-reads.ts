/** The routes that do more than read, with parts that exist, and what would differ if one of them had done it. */
import { vi } from "vitest";
import type { TestApi } from "./helpers.ts";
import { SCOPE_TABLE } from "./scope-table.ts";

/** Everything that more than reads, as the documentation has it. */
export const MORE = Object.entries(SCOPE_TABLE).flatMap(([route, row]) =>
  typeof row === "string" || (row.scopes.includes("read") && route.startsWith("GET ")) ? [] : [route],
);

/** Returns the path of a route in the app `shop`, with what it needs. */
export function pathOf(pattern: string): string {
  const path = pattern
    .replace("{app_name}", "shop")
    .replace("{machine_id}", "v1")
    .replace("{hostname}", "shop.example.com")
    .replace("{host}", "ghcr.io")
    .replaceAll(/\{\w+\}/g, "1");
  const query = { exec: "?command=id", forward: "?port=80", archive: "?path=/", stat: "?path=/" }[
    path.split("/").at(-1) ?? ""
  ];
  return path + (query ?? "");
}

/**
 * Starts the machine `v1` of the app `shop`. `run` is where every command, copy and connection in a machine begins; `traces`
 * returns what would differ after a change: the platform itself does nothing in between.
 */
export async function startShop({ world: { store }, platform }: TestApi) {
  platform.apps.create("shop");
  const { record } = await platform.machines.create("shop", { config: { image: "x" }, name: "v1" });
  await platform.machines.wait("shop", record.id, ["running"], { timeoutMs: 10_000 });
  const run = vi.spyOn(platform.commands, "run");
  const traces = () => ({
    told: store.outbox.newest(),
    apps: platform.apps.list(),
    tokens: store.tokens.list().map(({ id, revokedAt }) => [id, revokedAt]),
    machine: platform.machines.get("shop", record.id).record,
    commands: run.mock.calls.length,
  });
  return { run, traces };
}
