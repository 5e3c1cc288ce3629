/** One copy of a template of other hosts: what they say of it, its files, and that the directory and this host know of it. */
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { isHibernautError } from "@hibernaut/domain/errors";
import type { AppRecord } from "@hibernaut/domain/machine";
import type { Semaphore } from "@hibernaut/lib/semaphore";
import type { TemplateTravel } from "@hibernaut/machines";
import type { Cluster } from "../cluster.ts";
import type { SharedTemplate } from "../keys.ts";
import { ArrivingTemplate } from "./arriving.ts";
import { gone, joinTemplate } from "./records.ts";
import { keptFrom, notStored, unfitOn } from "./refusals.ts";
import { Senders, type SendersOptions } from "./senders.ts";
import { keepContents, type SentPapers } from "./source.ts";

export interface CopyOptions extends SendersOptions {
  cluster: Cluster;
  travel: TemplateTravel;
  /** This host is about to have a template: what the directory says of it counts only once it is stored. Returns how to end that. */
  busy(id: string): () => void;
  /** It has it not after all. */
  left(template: Pick<SharedTemplate, "app" | "id">): void;
  /** How many are received at a time. */
  arriving: Semaphore;
}

/**
 * Resolves once this host has the template. Rejects as {@link TemplateTarget.bring} says. What may be continued stays in the
 * directory for arrivals.
 */
export async function copyTemplate(template: SharedTemplate, options: CopyOptions, signal: AbortSignal): Promise<void> {
  const { travel, cluster } = options;
  const senders = new Senders(template, options);
  const folder = join(travel.arrivals, template.id);
  try {
    const app = travel.app(template.app);
    if (app === undefined) throw gone(template);
    travel.requireFree(template);
    const papers = await senders.papers(signal);
    const unfit = await travel.unfit({ ...papers, taken: template.taken });
    if (unfit !== undefined) throw unfitOn(template, cluster.host, unfit);
    const arrive = async () => {
      await fill(template, { senders, travel, folder, papers }, signal);
      await takeIn(template, { ...options, app, papers }, signal);
    };
    await options.arriving.run(arrive, signal);
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

/** Resolves once all files are whole and on the disk. */
async function fill(
  template: SharedTemplate,
  { senders, travel, folder, papers }: { senders: Senders; travel: TemplateTravel; folder: string; papers: SentPapers },
  signal: AbortSignal,
): Promise<void> {
  await using arriving = await ArrivingTemplate.begin(folder, papers.files, signal);
  await travel.requireRoom(template.app, arriving.missingBytes);
  await senders.fill(arriving, signal);
  await arriving.flush();
}

/** The directory first: a template of which nobody knows that it is here could outlive its deletion. */
async function takeIn(
  template: SharedTemplate,
  {
    cluster,
    travel,
    busy,
    left,
    app,
    papers: { template: record, files },
  }: CopyOptions & { app: AppRecord; papers: SentPapers },
  signal: AbortSignal,
): Promise<void> {
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

/** The directory could not be told of a template that is whole here: the next request needs no copy. */
class DirectoryFault extends Error {}
