/** What clients call a template: a name, and a tag of it that leads to the template of one build. */
import { randomUUID } from "node:crypto";
import type { TemplateTag } from "@hibernaut/domain/build";
import { messageOf } from "@hibernaut/lib/text";
import type { SandboxNeeds } from "../contract.ts";
import { isMissing, Refusal } from "../failure.ts";

/** A name without the team, which means nothing here. `tag` is undefined when none is named. */
interface NamedTemplate {
  name: string;
  tag: string | undefined;
}

/** The tag that is meant where none is named. */
export const DEFAULT_TAG = "default";
/** What others call it. */
const LATEST = "latest";
const NAME = /^[a-z0-9_-]{1,128}$/;
const TAG = /^[A-Za-z0-9_.-]{1,128}$/;
/** How many names with tags an app has, so that its list stays short enough to be looked through. */
const MOST_TAGS = 1000;

/** Reads `team/name:tag`. Names are the same in small and capital letters. Throws a {@link Refusal} for what is not one. */
export function namedTemplate(word: string): NamedTemplate {
  const [name = "", ...tags] = word.replace(/^.*\//, "").split(":");
  const tag = tags.length === 0 ? undefined : requireTag(tags.join(":"));
  return { name: requireTemplateName(name), tag };
}

function requireTemplateName(text: string): string {
  const name = text.trim().toLowerCase();
  if (NAME.test(name)) return name;
  throw new Refusal(
    400,
    `'${text.slice(0, 80)}' cannot be the name of a template: it has letters, digits, - and _ only.`,
  );
}

/** Throws a {@link Refusal} for what cannot be a tag. */
export function requireTag(tag: string): string {
  if (TAG.test(tag)) return tag;
  throw new Refusal(400, `'${tag.slice(0, 80)}' cannot be a tag: it has letters, digits, '.', - and _ only.`);
}

/** How the template that a build makes is called in lists of templates: names there are labels. */
export function builtName(name: string, build: string): string {
  const label = name.replaceAll("_", "-").replace(/^-+/, "").slice(0, 50);
  return `${label === "" ? "template" : label}-${build.slice(0, 8)}`;
}

export class TemplateNames {
  readonly #needs: Pick<SandboxNeeds, "builds" | "resources" | "log">;

  constructor(needs: Pick<SandboxNeeds, "builds" | "resources" | "log">) {
    this.#needs = needs;
  }

  /** The id of the template that a word leads to. Undefined when no build has made it; then it may be a template's own name. */
  find(app: string, word: string): string | undefined {
    return this.tag(app, word)?.template;
  }

  /** The same, with its build. */
  tag(app: string, word: string): TemplateTag | undefined {
    const { name, tag = DEFAULT_TAG } = looselyNamed(word);
    const mine = this.of(app, name);
    const found = (wanted: string) => mine.find((one) => one.tag === wanted);
    return found(tag) ?? (tag === LATEST ? found(DEFAULT_TAG) : undefined);
  }

  /** All tags of a name, or of all names. */
  of(app: string, name?: string): TemplateTag[] {
    return this.#needs.builds.tags(app).filter((one) => name === undefined || one.name === name);
  }

  /** Lets more tags lead to the template that a word leads to. Throws 404 when it leads to none. */
  async assign(app: string, word: string, tags: readonly string[]): Promise<TemplateTag> {
    const { name } = namedTemplate(word);
    const from = this.tag(app, word) ?? this.#ownTag(app, word, name);
    if (this.of(app).length + tags.length > MOST_TAGS)
      throw new Refusal(400, `An app has at most ${MOST_TAGS} tags of templates. Remove some.`);
    const assignedAt = new Date().toISOString();
    await this.#changing(app, () => this.#needs.builds.tag(tags.map((tag) => ({ ...from, name, tag, assignedAt }))));
    return from;
  }

  /**
   * Keeps a state under a name with a tag that leads to nothing yet. `keep` is called with the name that its template gets, and
   * returns the template's id. Rejects with 409 when the tag leads somewhere, also if it does so only since.
   */
  async keepAs(app: string, word: string, keep: (name: string) => Promise<string>): Promise<void> {
    const { name, tag = DEFAULT_TAG } = namedTemplate(word);
    const requireFree = () => {
      if (this.of(app, name).some((one) => one.tag === tag))
        throw new Refusal(
          409,
          `There is a template '${name}:${tag}' already. Choose another name, or delete it first.`,
        );
      if (this.of(app).length >= MOST_TAGS)
        throw new Refusal(400, `An app has at most ${MOST_TAGS} tags of templates. Remove some.`);
    };
    requireFree();
    const build = randomUUID();
    const template = await keep(builtName(name, build));
    try {
      requireFree();
    } catch (error) {
      await this.#needs.resources.templates.delete(app, template).catch(() => {});
      throw error;
    }
    this.#needs.builds.tag([{ app, name, tag, build, template, assignedAt: new Date().toISOString() }]);
  }

  /** Removes tags of a name. Throws 404 when the name has no tags at all. */
  async remove(app: string, name: string, tags: readonly string[]): Promise<void> {
    if (this.of(app, name).length === 0) throw unknownName(name);
    await this.#changing(app, () => this.#needs.builds.untag(app, name, tags));
  }

  /** Does what changes tags, and then deletes templates that no tag leads to any more: nobody could ask for them by name. */
  async #changing(app: string, change: () => void): Promise<void> {
    const before = this.of(app);
    change();
    await this.drop(app, before);
  }

  /** Deletes those of these templates that no tag leads to any more, if builds made them. */
  async drop(app: string, before: readonly TemplateTag[]): Promise<void> {
    const { resources, log } = this.#needs;
    const used = new Set(this.of(app).map(({ template }) => template));
    const unused = new Map(before.filter((one) => !used.has(one.template)).map((one) => [one.template, one]));
    for (const { template, name, build } of unused.values()) {
      // One that something else made is not ours to delete.
      const made = resources.templates.list(app).find((one) => one.template.id === template);
      if (made?.template.name !== builtName(name, build)) continue;
      await resources.templates.delete(app, template).catch((error: unknown) => {
        if (!isMissing(error)) log.warn({ template, reason: messageOf(error) }, "a replaced template is not deleted");
      });
    }
  }

  /** A template that no build made gets tags, too. */
  #ownTag(app: string, word: string, name: string): TemplateTag {
    const { tag } = namedTemplate(word);
    if (tag !== undefined && tag !== DEFAULT_TAG && tag !== LATEST) throw unknownName(word);
    try {
      const { template } = this.#needs.resources.templates.get(app, name);
      return {
        app,
        name,
        tag: DEFAULT_TAG,
        build: randomUUID(),
        template: template.id,
        assignedAt: template.createdAt,
      };
    } catch (error) {
      if (isMissing(error)) throw unknownName(word);
      throw error;
    }
  }
}

export function unknownName(word: string): Refusal {
  return new Refusal(404, `There is no template '${word.slice(0, 80)}'.`);
}

/** For looking up: what cannot be a name leads nowhere. */
function looselyNamed(word: string): NamedTemplate {
  try {
    return namedTemplate(word);
  } catch {
    return { name: "", tag: undefined };
  }
}
