/** What this host has heard of templates in the cluster. */
import { findNamed, isValidName } from "@hibernaut/domain/naming";
import type { View } from "../cluster.ts";
import { KEYS, type SharedTemplate } from "../keys.ts";
import type { WarnLog } from "../ownership/retry.ts";
import { templateKey } from "./records.ts";

/** What ids of templates are, which become paths. */
const ID = /^[0-9a-f]{14}$/;

/** Whether a value of the directory is a template of that key, and nothing of it leads out of a directory. Pure. */
function isSharedTemplate(key: string, value: unknown): value is SharedTemplate {
  const { id, app, name, digest, bytes, taken, hosts } = (value ?? {}) as Partial<
    Record<keyof SharedTemplate, unknown>
  >;
  if (typeof id !== "string" || !ID.test(id) || typeof app !== "string" || !isValidName(app)) return false;
  if (typeof name !== "string" || typeof digest !== "string" || typeof bytes !== "number") return false;
  if (typeof taken !== "object" || taken === null) return false;
  return Array.isArray(hosts) && hosts.every((host) => typeof host === "string") && key === templateKey({ app, id });
}

export class KnownTemplates {
  readonly #view: Pick<View, "under" | "value" | "host">;
  readonly #log: WarnLog;
  /** Keys of which the log says already that nobody can read them. */
  readonly #warned = new Set<string>();

  constructor(view: Pick<View, "under" | "value" | "host">, log: WarnLog) {
    this.#view = view;
    this.#log = log;
  }

  /** What the directory has under a key, unless it is not a template: then the log says so, once. */
  read(key: string, value: unknown): SharedTemplate | undefined {
    if (isSharedTemplate(key, value)) return value;
    if (!this.#warned.has(key)) this.#log.warn({ key }, "what the cluster directory has here is not a template");
    this.#warned.add(key);
    return undefined;
  }

  /** Those that may be used, of one app. */
  of(app: string): SharedTemplate[] {
    return this.all(`${app}/`).filter(({ ended }) => ended !== true);
  }

  /** Those that were ended, too, of all apps; `under` limits that. Hosts that left the cluster have none of them. */
  all(under = ""): SharedTemplate[] {
    return this.#under(under).map((template) => this.#ofMembers(template));
  }

  /** Which hosts are said to have a template, and have left the cluster. */
  ofLeavers(): { template: SharedTemplate; hosts: string[] }[] {
    return this.#under().flatMap((template) => {
      const hosts = template.hosts.filter((host) => this.#view.host(host) === undefined);
      return hosts.length === 0 ? [] : [{ template, hosts }];
    });
  }

  /** The one that may be used of this id: a look-up, which does not read the others. */
  get(which: Pick<SharedTemplate, "app" | "id">): SharedTemplate | undefined {
    const key = templateKey(which);
    const value = this.#view.value(key);
    const template = value === undefined ? undefined : this.read(key, value);
    return template === undefined || template.ended === true ? undefined : this.#ofMembers(template);
  }

  /** The template of this name, whichever has it. */
  named(app: string, name: string): SharedTemplate | undefined {
    const id = this.#view.value(`${KEYS.templateNames}${app}/${name}`);
    return typeof id === "string" ? this.get({ app, id }) : undefined;
  }

  /**
   * The template that `word` refers to: by id, by name, or by the beginning of its id. Throws `invalid_argument` when it may be
   * several.
   */
  find(app: string, word: string): SharedTemplate | undefined {
    const exact = this.get({ app, id: word }) ?? this.named(app, word);
    return exact ?? findNamed(word, this.of(app), { noun: "template" });
  }

  #ofMembers(template: SharedTemplate): SharedTemplate {
    return { ...template, hosts: template.hosts.filter((host) => this.#view.host(host) !== undefined) };
  }

  #under(prefix = ""): SharedTemplate[] {
    return this.#view.under(KEYS.templates + prefix).flatMap(({ key, value }) => this.read(key, value) ?? []);
  }
}
