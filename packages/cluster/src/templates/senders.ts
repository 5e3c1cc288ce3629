/** The other hosts that have a template, as this one asks them for it: what one does not send, another may. */
import type { IncomingMessage } from "node:http";
import type { HibernautError } from "@hibernaut/domain/errors";
import { within } from "@hibernaut/lib/async";
import { messageOf, withoutPeriod } from "@hibernaut/lib/text";
import type { Cluster } from "../cluster.ts";
import type { SharedTemplate } from "../keys.ts";
import { decompressed, framesOf } from "../moves/frames.ts";
import { answerOf } from "../peer-body.ts";
import type { PeerClient } from "../peer-client.ts";
import type { ArrivingTemplate } from "./arriving.ts";
import { digestOf, isContents } from "./contents.ts";
import { pieceOf, type Range } from "./frames.ts";
import { notSent } from "./refusals.ts";
import type { SentPapers } from "./source.ts";

/** The longest papers that are read: 45 bytes for each MiB of a memory, and a configuration with its files. Bytes. */
const MAX_PAPERS_BYTES = 16 * 1024 * 1024;
/** How long another host may take for the papers, in milliseconds: it reads all of a template of which nobody has kept what it is. */
const PAPERS_MS = 10 * 60_000;
/** For how long another host may send nothing, in milliseconds: its disk may be slow, and its rate low. */
const SILENT_MS = 60_000;
/** How often all hosts are tried again after a copy got further and broke off. Each continues where the one before ended. */
const MOST_ROUNDS = 20;
/** How many ranges of pieces are asked for at once: more than 20 GB of a memory with holes between all of its pieces. */
const MOST_RANGES = 10_000;

export interface SendersOptions {
  cluster: Pick<Cluster, "host" | "view">;
  send: PeerClient["send"];
}

export class Senders {
  readonly #options: SendersOptions;
  readonly #template: SharedTemplate;

  constructor(template: SharedTemplate, options: SendersOptions) {
    this.#template = template;
    this.#options = options;
  }

  /** Rejects with `host_unreachable` when no host says what the directory says of the template. */
  async papers(signal: AbortSignal): Promise<SentPapers> {
    const said = new Map<string, string>();
    for (const host of this.#sources())
      try {
        const answer = await this.#ask(host, "papers", {}, within(signal, PAPERS_MS, "the papers of a template"));
        const papers = (await answerOf(
          answer,
          MAX_PAPERS_BYTES,
          () => new Error("its papers are too long"),
        )) as SentPapers;
        if (isOf(this.#template, papers)) return papers;
        said.set(host, "it has something else under this ID");
      } catch (error) {
        signal.throwIfAborted();
        said.set(host, messageOf(error));
      }
    throw this.#notSent(said);
  }

  /** Receives what is missing. Rejects with `host_unreachable` when the hosts do not send all of it. */
  async fill(arriving: ArrivingTemplate, signal: AbortSignal): Promise<void> {
    const said = new Map<string, string>();
    for (let round = 0; round < MOST_ROUNDS && arriving.missingBytes > 0; round += 1) {
      const before = arriving.missingBytes;
      for (const host of this.#sources())
        if (arriving.missingBytes > 0)
          await this.#receive(host, arriving, signal).catch((error: unknown) => {
            signal.throwIfAborted();
            if (!(error instanceof SourceFault)) throw error;
            said.set(host, error.message);
          });
      if (arriving.missingBytes === before) break;
    }
    if (arriving.missingBytes > 0) throw this.#notSent(said);
  }

  /** Receives what is missing from one host. Rejects with a {@link SourceFault} when that does not send all of it. */
  async #receive(host: string, arriving: ArrivingTemplate, signal: AbortSignal): Promise<void> {
    const silent = new AbortController();
    const timer = setTimeout(
      () => silent.abort(new Error(`it sent nothing for ${SILENT_MS / 1000} seconds`)),
      SILENT_MS,
    );
    const limit = AbortSignal.any([signal, silent.signal]);
    const pieces = this.#pieces(host, arriving.missing.slice(0, MOST_RANGES), limit);
    try {
      for (;;) {
        const next = await pieces.next().catch((error: unknown) => {
          throw new SourceFault(messageOf(silent.signal.aborted ? silent.signal.reason : error));
        });
        if (next.done === true) return;
        timer.refresh();
        const { file, piece, bytes } = next.value;
        if (!arriving.isWanted(file, piece, bytes)) throw new SourceFault("it sent something else than the template");
        await arriving.write(file, piece, bytes);
      }
    } finally {
      clearTimeout(timer);
      silent.abort(new Error("the copy has ended"));
      await pieces.return().catch(() => {});
    }
  }

  async *#pieces(host: string, ranges: readonly Range[], signal: AbortSignal) {
    const response = await this.#ask(host, "pieces", { ranges }, signal);
    try {
      if (response.statusCode !== 200)
        await answerOf(response, MAX_PAPERS_BYTES, () => new Error(`it replied ${response.statusCode}`));
      for await (const frame of framesOf(decompressed(response))) yield pieceOf(frame);
    } finally {
      response.destroy();
    }
  }

  #ask(host: string, what: "papers" | "pieces", json: object, signal: AbortSignal): Promise<IncomingMessage> {
    const body = Buffer.from(JSON.stringify(json));
    const headers = { "content-type": "application/json" };
    return this.#options.send(host, {
      method: "POST",
      path: `/templates/${this.#template.id}/${what}`,
      headers,
      body,
      signal,
    });
  }

  /** The other hosts that have it and are up. */
  #sources(): string[] {
    const { cluster } = this.#options;
    return this.#template.hosts.filter((host) => host !== cluster.host && cluster.view.host(host)?.up !== undefined);
  }

  #notSent(said: ReadonlyMap<string, string>): HibernautError {
    const { hosts } = this.#template;
    const away = hosts.filter((host) => !said.has(host)).map((host) => `host ${host} is away`);
    const reasons = [...said].map(([host, reason]) => `host ${host}: ${withoutPeriod(reason)}`);
    return notSent(this.#template, this.#options.cluster.host, [...reasons, ...away]);
  }
}

/** Why one host did not send all of a template: another one may. */
class SourceFault extends Error {}

/** What generations are: a ULID, which becomes a path. */
const GENERATION = /^[0-9A-Z]{26}$/;

/** Whether a host says of the template what the directory says, and it leads to no other path. Pure. */
function isOf({ id, app, digest }: SharedTemplate, papers: Partial<SentPapers>): papers is SentPapers {
  const { template, files } = papers;
  if (template?.id !== id || template.app !== app) return false;
  if (!GENERATION.test(template.machine?.snapshot?.generation ?? "")) return false;
  return isContents(files, template) && digestOf(template, files) === digest;
}
