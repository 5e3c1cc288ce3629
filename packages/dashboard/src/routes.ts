/** Which address leads to which page. Pure. */

/** A page of the dashboard, and what it is about. */
export type Route =
  | { page: "overview" }
  | { page: "app"; app: string }
  | { page: "machine"; app: string; machine: string }
  | { page: "networks" }
  | { page: "backups" }
  | { page: "host" }
  | { page: "tokens" }
  | { page: "audit" }
  | { page: "sign-in" }
  | { page: "missing" };

/** The pages without anything in their address. */
const PLAIN = ["networks", "backups", "host", "tokens", "audit", "sign-in"] as const;

/** Returns the page at a path, such as `/apps/shop`. */
export function routeOf(path: string): Route {
  const parts = path.split("/").filter((part) => part !== "");
  const [first, app, machines, machine] = parts.map(decoded);
  if (first === undefined) return { page: "overview" };
  if (parts.length === 1) {
    const plain = PLAIN.find((name) => name === first);
    if (plain !== undefined) return { page: plain };
  }
  if (first === "apps" && app !== undefined) {
    if (parts.length === 2) return { page: "app", app };
    if (parts.length === 4 && machines === "machines" && machine !== undefined)
      return { page: "machine", app, machine };
  }
  return { page: "missing" };
}

/** Returns the path of a page. */
export function pathOf(route: Route): string {
  switch (route.page) {
    case "overview":
    case "missing":
      return "/";
    case "app":
      return `/apps/${encodeURIComponent(route.app)}`;
    case "machine":
      return `/apps/${encodeURIComponent(route.app)}/machines/${encodeURIComponent(route.machine)}`;
    case "networks":
    case "backups":
    case "host":
    case "tokens":
    case "audit":
    case "sign-in":
      return `/${route.page}`;
  }
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
