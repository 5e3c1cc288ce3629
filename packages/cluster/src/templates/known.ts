/** What this host has heard of templates in the cluster. */
import { findNamed } from "@hibernaut/domain/naming";
import type { View } from "../cluster.ts";
import { KEYS, type SharedTemplate } from "../keys.ts";

export class KnownTemplates {
  readonly #view: Pick<View, "under" | "value" | "host">;

  constructor(view: Pick<View, "under" | "value" | "host">) {
    this.#view = view;
  }

  /** Those that may be used, of one app. */
  of(app: string): SharedTemplate[] {
    return this.all(`${app}/`).filter(({ ended }) => ended !== true);
  }

  /** Those that were ended, too, of all apps; `under` limits that. Hosts that left the cluster have none of them. */
  all(under = ""): SharedTemplate[] {
    return this.#view.under(KEYS.templates + under).map(({ value }) => {
      const template = value as SharedTemplate;
      return { ...template, hosts: template.hosts.filter((host) => this.#view.host(host) !== undefined) };
    });
  }

  /** Which hosts are said to have a template, and have left the cluster. */
  ofLeavers(): { template: SharedTemplate; hosts: string[] }[] {
    return this.#view.under(KEYS.templates).flatMap(({ value }) => {
      const template = value as SharedTemplate;
      const hosts = template.hosts.filter((host) => this.#view.host(host) === undefined);
      return hosts.length === 0 ? [] : [{ template, hosts }];
    });
  }

  get({ app, id }: Pick<SharedTemplate, "app" | "id">): SharedTemplate | undefined {
    return this.of(app).find((each) => each.id === id);
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
}
