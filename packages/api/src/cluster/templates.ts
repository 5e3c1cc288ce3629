/** Templates of all hosts, for requests that any of them gets. */
import type { ClusterTemplates } from "@hibernaut/cluster";
import { type HibernautError, isHibernautError } from "@hibernaut/domain/errors";
import type { ApiCluster } from "../deps.ts";

export type KnownTemplate = NonNullable<ReturnType<ClusterTemplates["find"]>>;

/**
 * The template that `word` refers to on any host. Undefined for one that no host has told of: there is none, or it is on a host
 * of an earlier version. Throws `invalid_argument` when it may be several.
 */
export async function knownTemplate(
  app: string,
  word: string,
  { shared, templates }: Pick<ApiCluster, "shared" | "templates">,
): Promise<KnownTemplate | undefined> {
  const found = templates.find(app, word);
  if (found !== undefined) return found;
  // It may have been made on another host a moment ago.
  await shared.catchUp();
  return templates.find(app, word);
}

/** Throws when no machine from a template could be started on this host now. */
export type RequireStart = (app: string, taken: KnownTemplate["taken"]) => void;

interface BringParts {
  cluster: Pick<ApiCluster, "shared" | "templates"> | undefined;
  /** Asked before a copy, which would be in vain. Absent when nothing is started. */
  requireStart?: RequireStart | undefined;
}

/**
 * Resolves once this host has the template, if any host has told of it. Of one that no host knows, the route
 * says that there is none. Rejects with why it cannot come here, and with what `requireStart` throws.
 */
export async function bringTemplate(
  app: string,
  word: string,
  { cluster, requireStart }: BringParts,
  signal: AbortSignal,
): Promise<void> {
  if (cluster === undefined) return;
  const template = await knownTemplate(app, word, cluster);
  if (template === undefined) return;
  if (!template.hosts.includes(cluster.shared.host)) requireStart?.(app, template.taken);
  await cluster.templates.bring(template, signal);
}

/** Whether a machine from a template was not made because the template did not get to a host: another host may make it. */
export function isMissingThere(error: unknown): error is HibernautError {
  return isHibernautError(error) && saysMissing(error.code, error.details);
}

/** The same of a reply. A host of an earlier version gets no templates, and says that it has none. Pure. */
export function saysMissing(code: string, details: Record<string, unknown> | undefined): boolean {
  return details?.template_missing_on !== undefined || (code === "not_found" && details?.template !== undefined);
}
