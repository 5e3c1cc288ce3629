/** The routes that do more than read, with parts that exist, and what would differ if one of them had done it. */
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

/** What would differ after a change. The platform itself does nothing in between. */
export function traces({ world: { store }, platform }: TestApi, machine: string): object {
  return {
    told: store.outbox.newest(),
    apps: platform.apps.list(),
    tokens: store.tokens.list().map(({ id, revokedAt }) => [id, revokedAt]),
    machine: platform.machines.get("shop", machine).record,
  };
}
