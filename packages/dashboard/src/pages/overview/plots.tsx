/** Plots of wakes. Loaded late, because most of the code is uPlot's. */
import type { Wakes as WakesReport } from "@hibernaut/client/browser";
import uPlot from "uplot";
import type { WakeKind } from "../../data/track.ts";
import { duration, hourOf } from "../../format.ts";
import { color, Plot, type PlotOptions } from "../../parts/plot.tsx";
import { decades, hourMiddles, latencies, stackedCounts } from "./plot-data.ts";

const KINDS: readonly WakeKind[] = ["warm", "resume", "cold"];
const HEIGHT = 180;
/** Room for labels, in pixels. */
const X_AXIS = 30;
const Y_AXIS = 56;
const HOUR_S = 3_600;
/** Half a bar is this share of an hour. */
const BAR_SHARE = 0.7;
const DASH = [4, 4];
/** Zero has no place on a logarithmic scale; nothing wakes in less, in milliseconds. */
const LEAST_MS = 1;

export interface PlotsProps {
  report: WakesReport;
}

/** Wakes per hour as stacked bars, and their latencies as lines. */
export function Plots({ report }: PlotsProps) {
  return (
    <div class="plots">
      <figure class="plot">
        <figcaption>
          Per hour <PlotLegend items={KINDS.map((kind) => ({ kind, label: kind }))} />
        </figcaption>
        <Plot
          label="Wakes per hour by kind. The table below has the same figures."
          height={HEIGHT}
          make={() => countOptions()}
          data={countData(report)}
        />
      </figure>
      <figure class="plot">
        <figcaption>
          Latency, p50 solid and p99 dashed <PlotLegend items={KINDS.map((kind) => ({ kind, label: kind }))} />
        </figcaption>
        <Plot
          label="Latencies of wakes by hour and kind. The table below has the same figures."
          height={HEIGHT}
          make={() => latencyOptions()}
          data={latencyData(report)}
        />
      </figure>
    </div>
  );
}

function PlotLegend({ items }: { items: readonly { kind: WakeKind; label: string }[] }) {
  return (
    <span class="plot-legend">
      {items.map(({ kind, label }) => (
        <span key={kind}>
          <i class={`swatch swatch-${kind}`} aria-hidden="true" />
          {label}
        </span>
      ))}
    </span>
  );
}

function countData(report: WakesReport): uPlot.AlignedData {
  return [hourMiddles(report), ...stackedCounts(report, KINDS)];
}

function latencyData(report: WakesReport): uPlot.AlignedData {
  return [hourMiddles(report), ...latencies(report, KINDS)];
}

function axes(y: Partial<uPlot.Axis>): uPlot.Axis[] {
  const shared = { stroke: color("muted"), ticks: { show: false } };
  const hour = (seconds: number) => hourOf(seconds * 1000);
  return [
    { ...shared, size: X_AXIS, grid: { show: false }, values: (_plot, splits) => splits.map(hour) },
    { ...shared, size: Y_AXIS, grid: { stroke: color("line"), width: 1 }, ...y },
  ];
}

const SHARED = { legend: { show: false }, cursor: { show: false } } as const;
/** Whole hours, so that no bar is cut. */
const X_SCALE: uPlot.Scale = { range: (_plot, least, most) => [least - HOUR_S / 2, most + HOUR_S / 2] };

function countOptions(): PlotOptions {
  const bars = uPlot.paths.bars?.({ size: [BAR_SHARE, 40] });
  return {
    ...SHARED,
    scales: { x: X_SCALE, y: { range: (_plot, _least, most) => [0, Math.max(4, (most || 0) * 1.1)] } },
    axes: axes({ values: (_plot, splits) => splits.map((value) => (Number.isInteger(value) ? String(value) : "")) }),
    series: [
      {},
      ...KINDS.map((kind) => ({
        stroke: color(kind),
        width: 1,
        fill: pattern(kind),
        points: { show: false },
        ...(bars && { paths: bars }),
      })),
    ],
  };
}

function latencyOptions(): PlotOptions {
  const ends = (least: number, most: number) => decades(Math.max(LEAST_MS, least || LEAST_MS), most || LEAST_MS);
  return {
    ...SHARED,
    scales: {
      x: X_SCALE,
      y: {
        distr: 3,
        range: (_plot, least, most) => [ends(least, most).at(0) ?? LEAST_MS, ends(least, most).at(-1) ?? LEAST_MS],
      },
    },
    axes: axes({
      splits: (_plot, _axis, least, most) => decades(least, most),
      filter: (_plot, splits) => splits,
      values: (_plot, splits) => splits.map(duration),
    }),
    series: [
      {},
      ...KINDS.flatMap((kind) => {
        const line = { stroke: color(kind), width: 2, points: { show: true, size: 5, fill: color(kind) } };
        return [line, { ...line, dash: DASH, width: 1.5 }];
      }),
    ],
  };
}

/** Bars differ by pattern, too: stripes, plain, and a grid. */
function pattern(kind: WakeKind): CanvasPattern | string {
  const tile = document.createElement("canvas");
  tile.width = 8;
  tile.height = 8;
  const pen = tile.getContext("2d");
  const strong = color(kind);
  if (pen === null || kind === "resume") return strong;
  pen.fillStyle = color("panel");
  pen.fillRect(0, 0, 8, 8);
  pen.strokeStyle = strong;
  pen.lineWidth = 2;
  pen.beginPath();
  for (const at of [-8, 0, 8]) {
    pen.moveTo(at, 8);
    pen.lineTo(at + 8, 0);
    if (kind === "cold") {
      pen.moveTo(at, 0);
      pen.lineTo(at + 8, 8);
    }
  }
  pen.stroke();
  return pen.createPattern(tile, "repeat") ?? strong;
}
