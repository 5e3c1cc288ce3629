/** Pages of a list of sandboxes: which ones, in which order, and where the next page begins. */
import { Refusal } from "../failure.ts";
import { type SandboxState, type SandboxView, stateOf } from "./view.ts";

/** What a client asks for. */
interface SandboxQuery {
  /** `key=value&...`, each part URL encoded. All have to match. */
  metadata?: string;
  states?: readonly SandboxState[];
  /** RFC 3339: those that started then or later. */
  startedAfter?: string;
  /** A template's id or name. */
  template?: string;
  /** By when they started. Default: `desc`, newest first. */
  order?: "asc" | "desc";
  limit: number;
  /** Where the page before this one ended. */
  after?: string;
}

/** Returns a page, and where the next one begins, if there is one. Throws a {@link Refusal} for a cursor of its own making. */
export function pageOf(
  all: readonly SandboxView[],
  query: SandboxQuery,
): { page: SandboxView[]; next: string | undefined; running: number } {
  const wanted = metadataOf(query.metadata);
  const since = query.startedAfter === undefined ? undefined : Date.parse(query.startedAfter);
  if (Number.isNaN(since)) throw new Refusal(400, "`startedAfter` is not a time in RFC 3339.");
  const matching = all.filter(({ record: { sandbox, origin } }) => {
    if (wanted.some(([key, value]) => sandbox.metadata[key] !== value)) return false;
    if (since !== undefined && Date.parse(sandbox.started_at) < since) return false;
    return query.template === undefined || [sandbox.template, origin?.template].includes(query.template);
  });
  const chosen = matching.filter((view) => query.states?.includes(stateOf(view)) ?? true);
  const sign = query.order === "asc" ? 1 : -1;
  const sorted = chosen.toSorted((one, other) => sign * (placeOf(one) < placeOf(other) ? -1 : 1));
  const from = query.after === undefined ? undefined : decode(query.after);
  const rest =
    from === undefined
      ? sorted
      : sorted.filter((view) => sign * (placeOf(view) > from ? 1 : -1) > 0 && placeOf(view) !== from);
  const page = rest.slice(0, query.limit);
  const last = page.at(-1);
  return {
    page,
    next: last === undefined || rest.length <= query.limit ? undefined : encode(placeOf(last)),
    running: matching.filter((view) => stateOf(view) === "running").length,
  };
}

/** Sorts by time, and tells apart those of one moment. */
function placeOf({ record }: SandboxView): string {
  return `${record.sandbox.started_at} ${record.id}`;
}

function metadataOf(query: string | undefined): [string, string][] {
  return [...new URLSearchParams(query ?? "")].map(([key, value]) => [decoded(key), decoded(value)]);
}

/** Some clients encode each part once more. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function encode(place: string): string {
  return Buffer.from(place).toString("base64url");
}

function decode(cursor: string): string {
  const place = Buffer.from(cursor, "base64url").toString("utf8");
  if (/^\d{4}-[\d:TZ.-]+ [0-9a-f]+$/.test(place)) return place;
  throw new Refusal(400, "The `nextToken` is not one that this API gave. Begin with the first page.");
}
