/** Where the nodes and arrows of a graph are, in pixels. Pure. */
import { type Arrow, layersOf, type Strand } from "./layers.ts";

export const NODE = { width: 208, height: 58 } as const;
/** Between two layers: room for an arrow to turn. */
const GAP_X = 64;
const GAP_Y = 14;
/** Height of the room for a strand that passes between nodes. */
const STRAND = 14;
/** Around everything, so that outlines and arrowheads are not cut. */
const MARGIN = 6;
/** Nodes without arrows are next to each other, this many in a row, and more if the graph is wider. */
const IN_A_ROW = 4;
/** Arrows there and back between two nodes keep this distance from the middle. */
const APART = 7;
const HEAD = 7;

interface Point {
  x: number;
  y: number;
}

/** A node's left and top edge. */
export interface PlacedNode extends Point {
  name: string;
}

/** An arrow as paths of SVG: its line, and its head. */
interface DrawnArrow extends Arrow {
  line: string;
  head: string;
}

export interface Drawing {
  width: number;
  height: number;
  nodes: readonly PlacedNode[];
  arrows: readonly DrawnArrow[];
}

/** Draws nodes in layers with the arrows between them, and below them those without any. */
export function drawingOf(names: readonly string[], arrows: readonly Arrow[]): Drawing {
  const all = layersOf(names, arrows);
  const connected = new Set(all.strands.flatMap(({ arrow: { from, to } }) => [from, to]));
  const single = all.layers.flat().filter((place) => !connected.has(place) && names.includes(place));
  const layers = all.layers.map((layer) => layer.filter((place) => !single.includes(place)));
  const columns = layers.filter((layer) => layer.length > 0);
  const heightOf = (place: string) => (connected.has(place) ? NODE.height : STRAND);
  const heights = columns.map((layer) => stackHeight(layer.map(heightOf)));
  const tallest = Math.max(0, ...heights);
  const tops = new Map<string, Point>();
  for (const [column, layer] of columns.entries()) {
    let y = MARGIN + (tallest - (heights[column] ?? 0)) / 2;
    for (const place of layer) {
      tops.set(place, { x: MARGIN + column * (NODE.width + GAP_X), y });
      y += heightOf(place) + GAP_Y;
    }
  }
  const wide = Math.max(columns.length, Math.min(IN_A_ROW, single.length));
  const rows = Math.ceil(single.length / Math.max(1, wide));
  const below = tallest === 0 ? MARGIN : MARGIN + tallest + 2 * GAP_Y;
  for (const [index, name] of single.entries())
    tops.set(name, {
      x: MARGIN + (index % wide) * (NODE.width + GAP_X),
      y: below + Math.floor(index / wide) * (NODE.height + GAP_Y),
    });
  const singleHeight = stackHeight(Array.from({ length: rows }, () => NODE.height));
  return {
    width: 2 * MARGIN + Math.max(0, wide * (NODE.width + GAP_X) - GAP_X),
    height: (rows === 0 ? MARGIN + tallest : below + singleHeight) + MARGIN,
    nodes: nodesIn([...columns.flat().filter((place) => connected.has(place)), ...single], tops),
    arrows: all.strands.map((strand) => drawn(strand, tops)),
  };
}

/** From left to right and from top to bottom, as the keyboard goes through them. */
function nodesIn(names: readonly string[], tops: ReadonlyMap<string, Point>): PlacedNode[] {
  return names.flatMap((name) => {
    const place = tops.get(name);
    return place === undefined ? [] : [{ name, ...place }];
  });
}

function stackHeight(heights: readonly number[]): number {
  return heights.reduce((sum, height) => sum + height, 0) + Math.max(0, heights.length - 1) * GAP_Y;
}

/** From the right edge of the left node, through the rooms between, to the left edge of the right node; or back. */
function drawn({ arrow, places, backward }: Strand, tops: ReadonlyMap<string, Point>): DrawnArrow {
  const last = places.length - 1;
  const shift = backward ? APART : -APART;
  const points = places.flatMap((place, index): Point[] => {
    const { x, y } = tops.get(place) ?? { x: 0, y: 0 };
    if (index === 0) return [{ x: x + NODE.width, y: y + NODE.height / 2 + shift }];
    if (index === last) return [{ x, y: y + NODE.height / 2 + shift }];
    const middle = y + STRAND / 2;
    return [
      { x, y: middle },
      { x: x + NODE.width, y: middle },
    ];
  });
  const tip = points.at(backward ? 0 : -1) ?? { x: 0, y: 0 };
  const side = backward ? HEAD : -HEAD;
  return {
    ...arrow,
    line: points.map((point, index) => step(points[index - 1], point)).join(""),
    head: `M${at(tip)}l${side} ${HEAD / 2 + 1}v${-HEAD - 2}z`,
  };
}

function step(before: Point | undefined, point: Point): string {
  if (before === undefined) return `M${at(point)}`;
  if (before.y === point.y) return `H${rounded(point.x)}`;
  const middle = (before.x + point.x) / 2;
  return `C${at({ x: middle, y: before.y })} ${at({ x: middle, y: point.y })} ${at(point)}`;
}

const at = ({ x, y }: Point): string => `${rounded(x)} ${rounded(y)}`;
const rounded = (value: number): number => Math.round(value * 10) / 10;
