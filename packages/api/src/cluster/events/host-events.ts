/** The events of one host of the cluster: what was, and what comes. */
import { setTimeout as delay } from "node:timers/promises";
import type { StreamEvent } from "@hibernaut/domain/stream-event";
import { type EventStream, type Gap, passes, type StreamFilter } from "@hibernaut/events";
import type { Feed } from "./feed.ts";
import type { PeerLine, PeerQuestion } from "./peer-stream.ts";

/** How long until a host whose past could not be read is asked again, in milliseconds. */
const RETRY_MS = 1000;

/** Something that one host tells. */
export type Item = { host: string; event: StreamEvent } | { host: string; gap: Gap };

/** What comes from one host: how far it is now, what happened, and whether it can be heard. */
export interface News {
  host: string;
  at?: number;
  items: Item[];
  missing?: boolean;
}

/** From where to read. */
export interface HostStart {
  since?: number | undefined;
  tail?: number | undefined;
}

/** What a reader wants of other hosts, which don't know its token. */
export interface Wanted {
  filter: Omit<StreamFilter, "apps">;
  /** The apps that the token reaches at this moment. Undefined: all, and what belongs to no app. */
  reach(): readonly string[] | undefined;
}

/** Another host. */
export interface PeerEvents {
  host: string;
  ask(question: PeerQuestion, signal: AbortSignal): AsyncIterable<PeerLine>;
  /** Whether it is a member of the cluster. */
  isMember(): boolean;
}

/** Yields what this host has stored, then the number after which to follow it. */
export async function* ownHistory(
  host: string,
  stream: EventStream,
  filter: StreamFilter,
  { since, tail }: HostStart,
  signal: AbortSignal,
): AsyncGenerator<Item, number> {
  let at = stream.newest();
  if (since === undefined && tail === undefined) return at;
  for await (const block of stream.read(filter, { since, tail }, { follow: false, signal, counted: false }))
    for (const one of block) {
      if ("at" in one) continue;
      if ("event" in one) yield { host, event: one.event };
      else yield { host, gap: one };
      at = Math.max(at, "event" in one ? one.event.sequence : 0);
    }
  return at;
}

/** The same of another host. */
export async function* peerHistory(
  { host, ask }: PeerEvents,
  { filter, reach }: Wanted,
  start: HostStart,
  signal: AbortSignal,
): AsyncGenerator<Item, number | undefined> {
  let at = start.since;
  if (start.since === undefined && start.tail === undefined) return at;
  for await (const line of ask({ ...start, follow: false, filter: { ...filter, apps: reach() } }, signal))
    if ("event" in line) {
      at = line.event.sequence;
      yield { host, event: line.event };
    } else if ("gap" in line) {
      at = line.gap.until;
      yield { host, gap: line.gap };
    }
    // What happens during the reading comes, too, and is after the position that the host took at its begin.
    else at = Math.max(at ?? 0, line.at);
  return at;
}

/** Yields what comes on this host, after a number. */
export async function* ownNews(
  host: string,
  stream: EventStream,
  filter: StreamFilter,
  since: number,
  signal: AbortSignal,
): AsyncGenerator<News, void> {
  for await (const block of stream.read(filter, { since }, { follow: true, signal })) {
    const items = block.flatMap((one): Item[] =>
      "at" in one ? [] : ["event" in one ? { host, event: one.event } : { host, gap: one }],
    );
    if (items.length > 0) yield { host, items };
  }
}

/** From where to follow another host. */
interface PeerStart {
  /** After this number. Undefined: from now on. */
  at: number | undefined;
  /** Whether its past could not be read. The host itself is asked for it then: it knows since when each app exists. */
  unread: boolean;
  /** Whether the reader was told that it cannot be heard. */
  isMissing: boolean;
  signal: AbortSignal;
}

/**
 * Yields what comes on another host. Says when it cannot be heard, and when it can again. A host that leaves the cluster is
 * followed again when it is back.
 */
export async function* peerNews(
  peer: PeerEvents,
  feed: Feed,
  wanted: Wanted,
  { at: begin, unread: wasUnread, isMissing: wasMissing, signal }: PeerStart,
): AsyncGenerator<News, void> {
  const { host } = peer;
  let at = begin;
  let { gaps } = feed;
  let unread = wasUnread;
  let isMissing = wasMissing;
  while (!signal.aborted) {
    const isLost = peer.isMember() && feed.state === "lost";
    if (isLost && !isMissing) yield { host, items: [], missing: (isMissing = true) };
    else if (!peer.isMember() && isMissing) yield { host, items: [], missing: (isMissing = false) };
    else if (!peer.isMember() || feed.state !== "connected" || feed.at === undefined) await feed.changed(signal);
    else if (at === undefined) yield { host, items: [], at: (at = feed.at) };
    else {
      const found = unread || feed.gaps !== gaps ? undefined : feed.after(at);
      if (found === undefined) {
        // Too much has happened meanwhile.
        const { gaps: known } = feed;
        const missed = peerHistory(peer, wanted, { since: at }, signal);
        try {
          let next = await missed.next();
          for (; next.done !== true; next = await missed.next()) {
            at = "event" in next.value ? next.value.event.sequence : next.value.gap.until;
            yield { host, items: [next.value] };
          }
          yield { host, at: (at = next.value ?? at), items: [] };
          unread = false;
          gaps = known;
        } catch {
          // It continues after what has come.
          if (!isMissing && !signal.aborted) yield { host, items: [], missing: (isMissing = true) };
          await delay(RETRY_MS, undefined, { signal, ref: false }).catch(() => {});
        }
      } else if (isMissing) yield { host, items: [], missing: (isMissing = false) };
      else if (found.length === 0) await feed.changed(signal);
      else {
        at = found.at(-1)?.sequence ?? at;
        const apps = wanted.reach();
        const own = apps === undefined ? found : found.filter(({ app }) => app !== null && apps.includes(app));
        yield {
          host,
          at,
          items: own.filter((event) => passes(event, wanted.filter)).map((event) => ({ host, event })),
        };
      }
    }
  }
}
