/**
 * Places nodes of a graph in layers, so that arrows lead from left to right: each node is one layer behind the last of those
 * that lead to it. Pure.
 */

/** An arrow between two nodes, by their names. */
export interface Arrow {
  from: string;
  to: string;
}

/** An arrow as it is laid out. */
export interface Strand {
  /** The arrow that it is. */
  arrow: Arrow;
  /** From left to right: both ends, and a place of its own in each layer between them. */
  places: readonly string[];
  /** Whether the arrow leads from right to left, because it closes a circle. */
  backward: boolean;
}

/** Layers from left to right, each with its places from top to bottom: names of nodes, and what keeps room for a strand. */
export interface Layers {
  layers: readonly (readonly string[])[];
  strands: readonly Strand[];
}

/** How often all layers are sorted. Graphs of 50 nodes hardly change after that. */
const SWEEPS = 4;

/** Layers the nodes. The same nodes and arrows in another order have the same layers. Arrows of a node to itself are left out. */
export function layersOf(nodes: readonly string[], arrows: readonly Arrow[]): Layers {
  const names = [...new Set(nodes)].sort();
  const known = new Set(names);
  const wanted = arrows
    .filter(({ from, to }) => from !== to && known.has(from) && known.has(to))
    .toSorted((a, b) => compare(a.from, b.from) || compare(a.to, b.to))
    .filter(({ from, to }, index, all) => from !== all[index - 1]?.from || to !== all[index - 1]?.to);
  const circular = circularOf(names, wanted);
  const forward = wanted.map((arrow) => (circular.has(arrow) ? { from: arrow.to, to: arrow.from } : arrow));
  const depth = depthsOf(names, forward);
  const layers: string[][] = Array.from({ length: Math.max(-1, ...depth.values()) + 1 }, () => []);
  for (const name of names) layers[depth.get(name) ?? 0]?.push(name);
  const strands = wanted.map((arrow, index): Strand => {
    const { from, to } = forward[index] ?? arrow;
    const between = [];
    for (let layer = (depth.get(from) ?? 0) + 1; layer < (depth.get(to) ?? 0); layer++) {
      // No name of an app has a space in it.
      const room = `${from} ${to} ${layer} ${circular.has(arrow) ? "back" : ""}`;
      layers[layer]?.push(room);
      between.push(room);
    }
    return { arrow, places: [from, ...between, to], backward: circular.has(arrow) };
  });
  return { layers: sorted(layers, strands), strands };
}

/** Returns the arrows that lead back to where a walk along the arrows came from. Without them, there is no circle. */
function circularOf(names: readonly string[], arrows: readonly Arrow[]): Set<Arrow> {
  const leaving = Map.groupBy(arrows, ({ from }) => from);
  const reached = new Set(arrows.map(({ to }) => to));
  const circular = new Set<Arrow>();
  const state = new Map<string, "open" | "done">();
  const walk = (name: string) => {
    state.set(name, "open");
    for (const arrow of leaving.get(name) ?? []) {
      const found = state.get(arrow.to);
      if (found === "open") circular.add(arrow);
      else if (found === undefined) walk(arrow.to);
    }
    state.set(name, "done");
  };
  // From those that nothing leads to: where a circle begins is where one would begin to read.
  for (const name of [...names.filter((one) => !reached.has(one)), ...names]) if (!state.has(name)) walk(name);
  return circular;
}

/** Returns the length of the longest way to each node. */
function depthsOf(names: readonly string[], arrows: readonly Arrow[]): Map<string, number> {
  const arriving = Map.groupBy(arrows, ({ to }) => to);
  const depths = new Map<string, number>();
  const depthOf = (name: string): number => {
    const known = depths.get(name);
    if (known !== undefined) return known;
    const depth = Math.max(-1, ...(arriving.get(name) ?? []).map(({ from }) => depthOf(from))) + 1;
    depths.set(name, depth);
    return depth;
  };
  for (const name of names) depthOf(name);
  return depths;
}

/** Sorts each layer by where its places are connected to, there and back, so that few strands cross. */
function sorted(layers: readonly (readonly string[])[], strands: readonly Strand[]): string[][] {
  const [before, behind] = [new Map<string, string[]>(), new Map<string, string[]>()];
  for (const { places } of strands)
    for (const [index, place] of places.entries()) {
      const next = places[index + 1];
      if (next === undefined) continue;
      before.set(next, [...(before.get(next) ?? []), place]);
      behind.set(place, [...(behind.get(place) ?? []), next]);
    }
  const result = layers.map((layer) => [...layer]);
  const sort = (index: number, near: Map<string, string[]>, other: readonly string[] = []) => {
    const layer = result[index] ?? [];
    const at = new Map(other.map((place, row) => [place, row]));
    const weight = new Map(layer.map((place, row) => [place, mean(near.get(place) ?? [], at) ?? row]));
    layer.sort((a, b) => (weight.get(a) ?? 0) - (weight.get(b) ?? 0));
  };
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    for (let index = 1; index < result.length; index++) sort(index, before, result[index - 1]);
    for (let index = result.length - 2; index >= 0; index--) sort(index, behind, result[index + 1]);
  }
  return result;
}

function mean(places: readonly string[], at: ReadonlyMap<string, number>): number | undefined {
  if (places.length === 0) return undefined;
  return places.reduce((sum, place) => sum + (at.get(place) ?? 0), 0) / places.length;
}

/** By code, and not by the user's language, in which two names can be the same. */
function compare(a: string, b: string): number {
  return a < b ? -1 : Number(a > b);
}
