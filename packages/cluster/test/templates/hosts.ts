/** Templates on several hosts: what their tests make, do and look at. */
import { randomBytes } from "node:crypto";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { never } from "@hibernaut/lib/async";
import { newMachineName } from "@hibernaut/machines";
import { putToSleep, wakeOn } from "../../../platform/test/helpers/cluster-machines.ts";
import type { TestHost } from "../../../platform/test/helpers/cluster-world.ts";
import { KEYS, type SharedTemplate } from "../../src/keys.ts";
import { FilePieces, type TemplateFile } from "../../src/templates/contents.ts";
import { ask, create } from "../fake-hosts.ts";

const MB = 1024 * 1024;

/** A template of a machine that sleeps on a host with something in its memory, and as many MiB on its disk. */
export async function keep(
  host: TestHost,
  { name = "ready", diskMb = 6 } = {},
): Promise<{ id: string; nonce: string; machine: string }> {
  const machine = await create(host, newMachineName());
  const nonce = ask(host, machine)?.nonce ?? "";
  await putToSleep(host, machine);
  await writeFile(join(host.world.folder, "machines", machine, "layer.ext4"), randomBytes(diskMb * MB));
  const { template } = await host.platform.templates.createOf("shop", { machine, name }, never());
  return { id: template.id, nonce, machine };
}

/** What the directory says of a template. */
export function shared(host: Pick<TestHost, "cluster">, id: string): SharedTemplate | undefined {
  return host.cluster.view.value(`${KEYS.templates}shop/${id}`) as SharedTemplate | undefined;
}

/** Brings a template, as a request for a machine does that comes to the host. */
export async function bring(host: TestHost, word = "ready", signal = never()): Promise<void> {
  const template = host.machines.templates.find("shop", word);
  if (template === undefined) throw new Error(`no host has told of ${word}`);
  await host.machines.templates.bring(template, signal);
}

/** Makes a machine from a template that the host has, and wakes it. Resolves with what it remembers. */
export async function born(host: TestHost, template: string): Promise<string | undefined> {
  const { record } = await host.platform.templates.bear("shop", template, { skipLaunch: true }, never());
  return wakeOn(host, record.id);
}

/** The templates that a host says it has. */
export const templates = ({ platform }: TestHost) => platform.templates.list("shop").map(({ template }) => template.id);

/** What is there of templates that are not whole. */
export async function parts({ world }: TestHost): Promise<string[]> {
  return readdir(join(world.folder, "templates", "arriving")).catch((): string[] => []);
}

/** How many pieces of a template are sent at most. */
export async function piecesOf({ world }: TestHost, id: string): Promise<number> {
  const text = await readFile(join(world.folder, "templates", "contents", `${id}.json`), "utf8");
  const wanted = (JSON.parse(text) as TemplateFile[]).map((file) => new FilePieces(file).wanted().length);
  return wanted.reduce((sum, count) => sum + count, 0);
}
