/**
 * Brings templates of other hosts to this one, when a machine is to begin from them here. A copy that was cut short, or whose
 * platform ended, is continued by the next request; what nobody continues is deleted after a while.
 */
import { readdir, rm, stat } from "node:fs/promises";
import type { IncomingMessage } from "node:http";
import { join } from "node:path";
import { type HibernautError, isHibernautError } from "@hibernaut/domain/errors";
import type { AppRecord } from "@hibernaut/domain/machine";
import { abortable, within } from "@hibernaut/lib/async";
import { Semaphore } from "@hibernaut/lib/semaphore";
import { messageOf, withoutPeriod } from "@hibernaut/lib/text";
import type { TemplateTravel } from "@hibernaut/machines";
import type { Cluster } from "../cluster.ts";
import type { SharedTemplate } from "../keys.ts";
import { decompressed, framesOf } from "../moves/frames.ts";
import { answerOf } from "../peer-body.ts";
import type { PeerClient } from "../peer-client.ts";
import { ArrivingTemplate } from "./arriving.ts";
import { digestOf, isContents } from "./contents.ts";
import { pieceOf, type Range } from "./frames.ts";
import { gone, joinTemplate } from "./records.ts";
import { keptFrom, notSent, notStored, unfitOn } from "./refusals.ts";
import { keepContents, type SentPapers } from "./source.ts";

/** The longest papers that are read: 45 bytes for each MiB of a memory, and a configuration with its files. Bytes. */
const MAX_PAPERS_BYTES = 16 * 1024 * 1024;
/** How long another host may take for the papers, in milliseconds: it reads all of a template of which nobody has kept what it is. */
const PAPERS_MS = 10 * 60_000;
/** For how long another host may send nothing, in milliseconds: its disk may be slow, and its rate low. */
const SILENT_MS = 60_000;
/**
 * How many templates are received at a time, of all apps: some may wait for slow hosts, and more would share one disk and one
 * network, so that each of them came later.
 */
const ARRIVALS_AT_ONCE = 4;
/** How often all hosts are tried again after a copy got further and broke off. Each continues where the one before ended. */
const MOST_ROUNDS = 20;
/** How many ranges of pieces are asked for at once: more than 20 GB of a memory with holes between all of its pieces. */
const MOST_RANGES = 10_000;
/** How long the part of a template is kept that nobody continues, in milliseconds: a deploy, or a client, tries again within minutes. */
const KEPT_MS = 60 * 60_000;

interface TargetOptions {
  cluster: Cluster;
  travel: TemplateTravel;
  send: PeerClient["send"];
  /** This host is about to have a template: what the directory says of it counts only once it is stored. Returns how to end that. */
  busy(id: string): () => void;
  /** It has it not after all. */
  left(template: Pick<SharedTemplate, "app" | "id">): void;
  closing: AbortSignal;
}

/** A copy that is under way, and how many requests wait for it. */
interface Copy {
  done: Promise<void>;
  waiting: number;
  end: AbortController;
}

export class TemplateTarget {
  readonly #options: TargetOptions;
  readonly #copies = new Map<string, Copy>();
  /** What still touches the files of a template that arrives: also copies that nobody waits for any more. */
  readonly #atWork = new Map<string, Promise<void>>();
  readonly #arriving = new Semaphore(ARRIVALS_AT_ONCE);

  constructor(options: TargetOptions) {
    this.#options = options;
  }

  /**
   * Resolves once this host has the template. Requests for the same one wait for one copy, which ends with the last of them.
   * Rejects with `failed_precondition` when it does not fit here, and as the disk, the other hosts and the directory do; then
   * this host does not have it. Rejects with the signal's reason.
   */
  async bring(template: SharedTemplate, signal: AbortSignal): Promise<void> {
    const { id } = template;
    if (this.#options.travel.get(id) !== undefined) return;
    const copy = this.#copies.get(id) ?? this.#begin(template);
    copy.waiting += 1;
    try {
      await abortable(copy.done, signal);
    } finally {
      copy.waiting -= 1;
      if (copy.waiting === 0) copy.end.abort(new Error("nobody waits for the template any more"));
    }
  }

  /** Deletes what came of templates that nobody has continued for a while, or that were ended. */
  async tidy(isKnown: (id: string) => boolean, now = Date.now()): Promise<void> {
    const { arrivals } = this.#options.travel;
    for (const id of await readdir(arrivals).catch((): string[] => [])) {
      if (this.#atWork.has(id)) continue;
      const folder = join(arrivals, id);
      const removeOld = async () => {
        const since = (await stat(folder).catch(() => undefined))?.mtimeMs ?? 0;
        if (!isKnown(id) || now - since > KEPT_MS) await rm(folder, { recursive: true, force: true });
      };
      const removed = removeOld();
      this.#hold(id, removed);
      await removed;
    }
  }

  /** A copy that begins waits for what touches the files of its template. */
  #hold(id: string, work: Promise<void>): void {
    const settled = work
      .catch(() => {}) // who waits for it hears of that
      .finally(() => {
        if (this.#atWork.get(id) === settled) this.#atWork.delete(id);
      });
    this.#atWork.set(id, settled);
  }

  #begin(template: SharedTemplate): Copy {
    const { id } = template;
    const end = new AbortController();
    const signal = AbortSignal.any([end.signal, this.#options.closing]);
    // One that nobody waits for any more may still be at its files.
    const before = this.#atWork.get(id) ?? Promise.resolve();
    const done = before.then(() => this.#copy(template, signal));
    const copy: Copy = { done, waiting: 0, end };
    const over = () => {
      if (this.#copies.get(id) === copy) this.#copies.delete(id);
    };
    this.#copies.set(id, copy);
    end.signal.addEventListener("abort", over);
    this.#hold(id, done.finally(over));
    return copy;
  }

  async #copy(template: SharedTemplate, signal: AbortSignal): Promise<void> {
    const { travel, cluster } = this.#options;
    const folder = join(travel.arrivals, template.id);
    try {
      const app = travel.app(template.app);
      if (app === undefined) throw gone(template);
      travel.requireFree(template);
      const papers = await this.#papers(template, signal);
      const unfit = await travel.unfit({ ...papers, taken: template.taken });
      if (unfit !== undefined) throw unfitOn(template, cluster.host, unfit);
      const arrive = async () => {
        await this.#fill(template, { folder, papers }, signal);
        await this.#takeIn(template, { app, papers }, signal);
      };
      await this.#arriving.run(arrive, signal);
    } catch (error) {
      signal.throwIfAborted();
      // All of it is here, and no other host could tell the directory either.
      if (error instanceof DirectoryFault) throw error.cause;
      // What is there helps only a copy that can be continued. Everything else needs the room of the disk.
      if (!isHibernautError(error, "host_unreachable"))
        await rm(folder, { recursive: true, force: true }).catch(() => {});
      if (!isHibernautError(error)) throw notStored(template, cluster.host, error);
      throw error.details?.template_missing_on === undefined ? keptFrom(template, cluster.host, error) : error;
    }
  }

  /** Rejects with `host_unreachable` when no host says what the directory says of the template. */
  async #papers(template: SharedTemplate, signal: AbortSignal): Promise<SentPapers> {
    const said = new Map<string, string>();
    for (const host of this.#sources(template))
      try {
        const answer = await this.#ask(
          host,
          template,
          "papers",
          {},
          within(signal, PAPERS_MS, "the papers of a template"),
        );
        const papers = (await answerOf(
          answer,
          MAX_PAPERS_BYTES,
          () => new Error("its papers are too long"),
        )) as SentPapers;
        if (isOf(template, papers)) return papers;
        said.set(host, "it has something else under this ID");
      } catch (error) {
        signal.throwIfAborted();
        said.set(host, messageOf(error));
      }
    throw this.#notSent(template, said);
  }

  /** Resolves once all files are whole and on the disk. */
  async #fill(
    template: SharedTemplate,
    { folder, papers }: { folder: string; papers: SentPapers },
    signal: AbortSignal,
  ): Promise<void> {
    const { travel } = this.#options;
    await using arriving = await ArrivingTemplate.begin(folder, papers.files, signal);
    await travel.requireRoom(template.app, arriving.missingBytes);
    const said = new Map<string, string>();
    for (let round = 0; round < MOST_ROUNDS && arriving.missingBytes > 0; round += 1) {
      const before = arriving.missingBytes;
      for (const host of this.#sources(template))
        if (arriving.missingBytes > 0)
          await this.#receive(host, template, arriving, signal).catch((error: unknown) => {
            signal.throwIfAborted();
            if (!(error instanceof SourceFault)) throw error;
            said.set(host, error.message);
          });
      if (arriving.missingBytes === before) break;
    }
    if (arriving.missingBytes > 0) throw this.#notSent(template, said);
    await arriving.flush();
  }

  /** Receives what is missing from one host. Rejects with a {@link SourceFault} when that does not send all of it. */
  async #receive(
    host: string,
    template: SharedTemplate,
    arriving: ArrivingTemplate,
    signal: AbortSignal,
  ): Promise<void> {
    const silent = new AbortController();
    const timer = setTimeout(
      () => silent.abort(new Error(`it sent nothing for ${SILENT_MS / 1000} seconds`)),
      SILENT_MS,
    );
    const limit = AbortSignal.any([signal, silent.signal]);
    const pieces = this.#pieces(host, template, arriving.missing.slice(0, MOST_RANGES), limit);
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

  async *#pieces(host: string, template: SharedTemplate, ranges: readonly Range[], signal: AbortSignal) {
    const response = await this.#ask(host, template, "pieces", { ranges }, signal);
    try {
      if (response.statusCode !== 200)
        await answerOf(response, MAX_PAPERS_BYTES, () => new Error(`it replied ${response.statusCode}`));
      for await (const frame of framesOf(decompressed(response))) yield pieceOf(frame);
    } finally {
      response.destroy();
    }
  }

  /** The directory first: a template of which nobody knows that it is here could outlive its deletion. */
  async #takeIn(
    template: SharedTemplate,
    { app, papers: { template: record, files } }: { app: AppRecord; papers: SentPapers },
    signal: AbortSignal,
  ): Promise<void> {
    const { cluster, travel, busy, left } = this.#options;
    const { directory } = cluster;
    using over = new DisposableStack();
    over.defer(busy(template.id));
    await keepContents(travel.contents(template.id), files);
    signal.throwIfAborted();
    await joinTemplate(template, cluster.host, { directory, createdAt: app.createdAt }).catch((error: unknown) => {
      const passes = isHibernautError(error, "unavailable") || isHibernautError(error, "aborted");
      throw passes ? new DirectoryFault("the directory was not told", { cause: error }) : error;
    });
    await travel.takeIn(record, app, signal).catch((error: unknown) => {
      left(template);
      throw error;
    });
  }

  #ask(
    host: string,
    { id }: SharedTemplate,
    what: "papers" | "pieces",
    json: object,
    signal: AbortSignal,
  ): Promise<IncomingMessage> {
    const body = Buffer.from(JSON.stringify(json));
    const headers = { "content-type": "application/json" };
    return this.#options.send(host, { method: "POST", path: `/templates/${id}/${what}`, headers, body, signal });
  }

  /** The other hosts that have it and are up. */
  #sources({ hosts }: SharedTemplate): string[] {
    const { cluster } = this.#options;
    return hosts.filter((host) => host !== cluster.host && cluster.view.host(host)?.up !== undefined);
  }

  #notSent(template: SharedTemplate, said: ReadonlyMap<string, string>): HibernautError {
    const away = template.hosts.filter((host) => !said.has(host)).map((host) => `host ${host} is away`);
    const reasons = [...said].map(([host, reason]) => `host ${host}: ${withoutPeriod(reason)}`);
    return notSent(template, this.#options.cluster.host, [...reasons, ...away]);
  }
}

/** Why one host did not send all of a template: another one may. */
class SourceFault extends Error {}

/** The directory could not be told of a template that is whole here: the next request needs no copy. */
class DirectoryFault extends Error {}

/** What generations are: a ULID, which becomes a path. */
const GENERATION = /^[0-9A-Z]{26}$/;

/** Whether a host says of the template what the directory says, and it leads to no other path. Pure. */
function isOf({ id, app, digest }: SharedTemplate, papers: Partial<SentPapers>): papers is SentPapers {
  const { template, files } = papers;
  if (template?.id !== id || template.app !== app) return false;
  if (!GENERATION.test(template.machine?.snapshot?.generation ?? "")) return false;
  return isContents(files, template) && digestOf(template, files) === digest;
}
