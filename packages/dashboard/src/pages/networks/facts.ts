/** Apps of a network, and how each of them is. Pure. */
import type { App, Machine } from "@hibernaut/client/browser";
import { faultOf } from "../../data/problems.ts";
import { type Tone, toneOf } from "../../data/tone.ts";
import { count } from "../../format.ts";

/** An app in its network. */
export interface Member {
  app: string;
  aliases: readonly string[];
  /** Apps that a request which wakes this one wakes as well. */
  wakes: readonly string[];
  /** Apps whose requests wake this one as well. */
  wokenBy: readonly string[];
  condition: Condition;
}

/** How an app is: what its machines do, put together. */
export interface Condition {
  tone: Tone;
  /** In a word. */
  word: string;
  /** The same with how many machines that is. */
  words: string;
}

export interface Network {
  name: string;
  members: readonly Member[];
}

/** By tone, what an app is called of which at least one machine looks so. The first that fits counts. */
const WORDS: readonly [tone: Tone, word: string][] = [
  ["failed", "failing"],
  ["running", "awake"],
  ["busy", "changing"],
  ["warm", "asleep, warm"],
  ["suspended", "asleep"],
  ["stopped", "stopped"],
];

/** Returns the networks with their apps, by name. */
export function networksOf(apps: Iterable<App>, machines: Iterable<Machine>): Network[] {
  const byApp = Map.groupBy(machines, ({ app_name: app }) => app);
  const placed = [...apps].filter(({ network }) => network !== undefined).sort((a, b) => inOrder(a.name, b.name));
  const byNetwork = Map.groupBy(placed, ({ network }) => network?.name ?? "");
  return [...byNetwork]
    .sort(([a], [b]) => inOrder(a, b))
    .map(([name, members]) => ({
      name,
      members: members.map(({ name: app, network }) => ({
        app,
        aliases: network?.aliases ?? [],
        wakes: network?.wakes ?? [],
        wokenBy: members.filter((one) => one.network?.wakes.includes(app)).map((one) => one.name),
        condition: conditionOf(byApp.get(app) ?? []),
      })),
    }));
}

function inOrder(a: string, b: string): number {
  return a.localeCompare(b, undefined, { numeric: true });
}

/** Takes over where apps are in their networks, which no event tells, from a later reading. Which apps there are, stays. */
export function withPlaces(known: Iterable<App>, read: readonly App[] = []): App[] {
  const later = new Map(read.map((app) => [app.name, app]));
  return Array.from(known, (app) => later.get(app.name) ?? app);
}

/** Returns how an app with these machines is. */
export function conditionOf(machines: readonly Machine[]): Condition {
  const tones = machines.map((machine) => (faultOf(machine)?.level === "error" ? "failed" : toneOf(machine)));
  const [tone, word] = WORDS.find(([one]) => tones.includes(one)) ?? ["stopped", "no machines"];
  if (machines.length < 2) return { tone, word, words: word };
  const many = tones.filter((one) => one === tone).length;
  return { tone, word, words: `${word}, ${many} of ${count(machines.length, "machine")}` };
}

/** Says everything about an app in one sentence after another. */
export function sentencesOf({ app, aliases, wakes, wokenBy, condition }: Member): string {
  return [
    `${app}: ${condition.words}.`,
    aliases.length > 0 && `Also called ${aliases.join(", ")}.`,
    wakes.length > 0 && `Wakes ${wakes.join(", ")}.`,
    wokenBy.length > 0 && `Woken by ${wokenBy.join(", ")}.`,
  ]
    .filter((sentence) => sentence !== false)
    .join(" ");
}

/** Shortens a text in its middle: names of one project begin alike. */
export function shortened(text: string, most: number): string {
  if (text.length <= most) return text;
  const kept = Math.floor((most - 1) / 2);
  return `${text.slice(0, most - 1 - kept)}…${text.slice(-kept)}`;
}
