/** Plots of wakes. Loaded late, because most of the code is uPlot's. */
import type { Wakes as WakesReport } from "@hibernaut/client/browser";
import uPlot from "uplot";
import { WAKE_KINDS, type WakeKind } from "../../data/track.ts";
import { duration, hourOf } from "../../format.ts";
import { color, PlotFigure, type PlotOptions } from "../../parts/plot.tsx";
import { decades, hourMiddles, latencies, stackedCounts } from "./plot-data.ts";

const COLORS: Readonly<Record<WakeKind, string>> = { warm: "warm", resume: "suspended", cold: "failed" };
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

/** Wakes per hour as stacked bars, and their latencies as lines. */
export function Plots({ report }: { report: WakesReport }) {
  return (
    <div class="plots">
      <PlotFigure
        caption={<Caption>Per hour</Caption>}
        label="Wakes per hour by kind. The table below has the same figures."
        height={HEIGHT}
        make={countOptions}
        data={[hourMiddles(report), ...stackedCounts(report, WAKE_KINDS)]}
      />
      <PlotFigure
        caption={<Caption>Latency, p50 solid and p99 dashed</Caption>}
        label="Latencies of wakes by hour and kind. The table below has the same figures."
        height={HEIGHT}
        make={latencyOptions}
        data={[hourMiddles(report), ...latencies(report, WAKE_KINDS)]}
      />
    </div>
  );
}

function Caption({ children }: { children: string }) {
  return (
    <>
      {children}
      <span class="plot-legend">
        {WAKE_KINDS.map((kind) => (
          <span key={kind}>
            <i class={`swatch swatch-${kind}`} aria-hidden="true" />
            {kind}
          </span>
        ))}
      </span>
    </>
  );
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
      ...WAKE_KINDS.map((kind) => ({
        stroke: color(COLORS[kind]),
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
      ...WAKE_KINDS.flatMap((kind) => {
        const stroke = color(COLORS[kind]);
        const line = { stroke, width: 2, points: { show: true, size: 5, fill: stroke } };
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
  const strong = color(COLORS[kind]);
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
