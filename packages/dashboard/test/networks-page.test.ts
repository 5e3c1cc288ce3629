/** Networks as graphs: where nodes and arrows are, and what is said about apps. */
import type { App, Machine } from "@hibernaut/client";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type Drawing, drawingOf, NODE } from "../src/pages/networks/drawing.ts";
import { conditionOf, networksOf, sentencesOf, shortened, withPlaces } from "../src/pages/networks/facts.ts";
import { type Arrow, layersOf } from "../src/pages/networks/layers.ts";
import { machine } from "./a-machine.ts";

/** Arrows from words such as `web>db`. */
const arrows = (...words: string[]): Arrow[] =>
  words.map((word) => {
    const [from = "", to = ""] = word.split(">");
    return { from, to };
  });
const namesIn = (words: readonly Arrow[]) => [...new Set(words.flatMap(({ from, to }) => [from, to]))];
/** Layers without the rooms for strands, which no app can be called. */
const appsIn = (all: readonly Arrow[], nodes = namesIn(all)) =>
  layersOf(nodes, all).layers.map((layer) => layer.filter((place) => !place.includes(" ")));

/** Up to 50 apps, each with up to 16 that it wakes, as the API allows. */
const graph = fc.integer({ min: 1, max: 50 }).chain((size) => {
  const nodes = Array.from({ length: size }, (_one, index) => `app-${index}`);
  const node = fc.constantFrom(...nodes);
  return fc.record({
    nodes: fc.constant(nodes),
    arrows: fc.array(fc.record({ from: node, to: node }), { maxLength: 120 }),
  });
});

describe("layers", () => {
  test("an app is behind all that wake it, as far as the longest way is", () => {
    expect(appsIn(arrows("web>api", "api>db", "web>db", "api>cache"))).toEqual([["web"], ["api"], ["cache", "db"]]);
  });

  test("an arrow over a layer has a place of its own in it", () => {
    const { layers, strands } = layersOf(["web", "api", "db"], arrows("web>api", "api>db", "web>db"));
    expect(layers.map((layer) => layer.length)).toEqual([1, 2, 1]);
    expect(strands.map(({ places }) => places.length)).toEqual([2, 2, 3]);
  });

  test("circles are drawn: the arrow that closes one leads back", () => {
    expect(appsIn(arrows("a>b", "b>a"))).toEqual([["a"], ["b"]]);
    const { strands } = layersOf(["in", "a", "b", "c"], arrows("in>a", "a>b", "b>c", "c>a"));
    expect(strands.filter(({ backward }) => backward).map(({ arrow }) => arrow)).toEqual(arrows("c>a"));
  });

  test("arrows to itself, to apps that nobody knows, and the same one twice do not count", () => {
    expect(layersOf(["a", "b"], arrows("a>a", "a>gone", "a>b", "a>b")).strands).toHaveLength(1);
    expect(layersOf([], []).layers).toEqual([]);
  });

  test("apps are next to those that they wake, so that arrows do not cross", () => {
    expect(appsIn(arrows("a>y", "b>x", "c>z"))).toEqual([
      ["a", "b", "c"],
      ["y", "x", "z"],
    ]);
  });

  test("any graph has each app once, arrows that lead one way only, and no other picture in another order", () => {
    fc.assert(
      fc.property(graph, fc.infiniteStream(fc.nat()), ({ nodes, arrows: all }, keys) => {
        const { layers, strands } = layersOf(nodes, all);
        const at = new Map(layers.flatMap((layer, index) => layer.map((place) => [place, index] as const)));
        expect([...at.keys()].filter((place) => !place.includes(" ")).sort()).toEqual([...nodes].sort());
        for (const { places, backward, arrow } of strands) {
          const depths = places.map((place) => at.get(place) ?? Number.NaN);
          expect(depths).toEqual(depths.map((_depth, index) => (depths[0] ?? 0) + index));
          expect([places[0], places.at(-1)]).toEqual(backward ? [arrow.to, arrow.from] : [arrow.from, arrow.to]);
        }
        const shuffled = <T>(list: readonly T[]) =>
          list
            .map((one) => ({ one, key: keys.next().value }))
            .sort((a, b) => a.key - b.key)
            .map(({ one }) => one);
        expect(layersOf(shuffled(nodes), shuffled(all))).toEqual({ layers, strands });
      }),
    );
  });
});

describe("a drawing", () => {
  const overlaps = ({ nodes }: Drawing) =>
    nodes.flatMap((a, index) =>
      nodes
        .slice(index + 1)
        .filter((b) => Math.abs(a.x - b.x) < NODE.width && Math.abs(a.y - b.y) < NODE.height)
        .map((b) => [a.name, b.name]),
    );

  test("has all nodes within it, none over another, and a line with a head for each arrow", () => {
    fc.assert(
      fc.property(graph, ({ nodes, arrows: all }) => {
        const drawing = drawingOf(nodes, all);
        expect(drawing.nodes.map(({ name }) => name).sort()).toEqual([...nodes].sort());
        expect(overlaps(drawing)).toEqual([]);
        for (const { x, y } of drawing.nodes) {
          expect(Math.min(x, y)).toBeGreaterThanOrEqual(0);
          expect(x + NODE.width).toBeLessThanOrEqual(drawing.width);
          expect(y + NODE.height).toBeLessThanOrEqual(drawing.height);
        }
        for (const { line, head } of drawing.arrows) expect(`${line} ${head}`).not.toMatch(/NaN|undefined|Infinity/);
      }),
    );
  });

  test("apps without arrows are below the others, a few in a row", () => {
    const names = Array.from({ length: 50 }, (_one, index) => `app-${index}`);
    const { nodes, width, arrows: none } = drawingOf(names, []);
    expect(none).toEqual([]);
    expect(new Set(nodes.map(({ x }) => x)).size).toBe(4);
    expect(width).toBeLessThan(1200);
    const mixed = new Map(drawingOf(["db", "mail", "web"], arrows("web>db")).nodes.map((node) => [node.name, node]));
    expect(mixed.get("mail")?.y).toBeGreaterThan((mixed.get("web")?.y ?? 0) + NODE.height);
    expect(mixed.get("web")?.y).toBe(mixed.get("db")?.y);
  });

  test("one app is as large as one node", () => {
    const { nodes, width, height } = drawingOf(["web"], []);
    expect(nodes).toHaveLength(1);
    expect([width - NODE.width, height - NODE.height].every((margin) => margin > 0 && margin < 20)).toBe(true);
  });
});

describe("apps", () => {
  const app = (name: string, network?: Partial<NonNullable<App["network"]>>): App => ({
    ...{ name, created_at: "2026-01-31T14:30:00Z", machine_count: 1, urls: [], status_page: false },
    ...(network && { network: { name: "shop", address: "198.18.0.1", aliases: [], wakes: [], ...network } }),
  });
  const of = (state: Machine["state"], parts: Partial<Machine> = {}) => machine({ state, ...parts });

  test.each<[string, Machine[], string, string]>([
    ["one that sleeps", [of("suspended")], "asleep", "suspended"],
    ["one that runs, of several", [of("suspended"), of("running")], "awake, 1 of 2 machines", "running"],
    ["one that fails, of several", [of("running"), of("failed")], "failing, 1 of 2 machines", "failed"],
    ["one whose app is not well", [of("running", { unreachable: "nothing listens" })], "failing", "failed"],
    ["one whose host is away", [of("running", { host_state: "unreachable", host: "b" })], "failing", "failed"],
    ["one on its way", [of("starting")], "changing", "busy"],
    ["none that was started", [of("stopped"), of("created")], "stopped, 2 of 2 machines", "stopped"],
    ["none", [], "no machines", "stopped"],
  ])("with %s", (_what, machines, words, tone) => {
    expect(conditionOf(machines)).toMatchObject({ words, tone });
  });

  test("are in their networks, with who wakes whom", () => {
    const apps = [
      app("shop-web", { wakes: ["shop-db", "elsewhere"], aliases: ["web"] }),
      app("alone"),
      app("shop-db", { aliases: ["db", "postgres"] }),
      app("blog", { name: "blog" }),
    ];
    const found = networksOf(apps, [machine({ app_name: "shop-db", state: "suspended" })]);
    expect(found.map(({ name, members }) => [name, members.map((member) => member.app)])).toEqual([
      ["blog", ["blog"]],
      ["shop", ["shop-db", "shop-web"]],
    ]);
    expect(found[1]?.members.map(sentencesOf)).toEqual([
      "shop-db: asleep. Also called db, postgres. Woken by shop-web.",
      "shop-web: no machines. Also called web. Wakes shop-db, elsewhere.",
    ]);
  });

  test("are those that events tell of, where they were read last", () => {
    const [old, later] = [app("web", { aliases: ["a"] }), app("web", { aliases: ["b"] })];
    expect(withPlaces([old, app("new")], [later, app("deleted")])).toEqual([later, app("new")]);
    expect(withPlaces([old])).toEqual([old]);
  });

  test("with long names keep both ends of them", () => {
    expect(shortened("shop-web", 8)).toBe("shop-web");
    expect(shortened("a-project-of-many-words-worker-2", 15)).toBe("a-proje…orker-2");
    fc.assert(
      fc.property(fc.string(), fc.integer({ min: 3, max: 40 }), (text, most) => {
        expect(shortened(text, most).length).toBeLessThanOrEqual(most);
      }),
    );
  });
});
