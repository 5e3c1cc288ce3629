/** `hibernaut usage`: what apps used, and what sleeping saved. */
import type { Usage, UsageReport } from "@hibernaut/client";
import { command } from "../command.ts";
import { UsageError } from "../failure.ts";
import { writtenTime } from "../local-time.ts";
import { given } from "../option-values.ts";
import { type OutputOptions, outputTable, TABLE } from "../output-format.ts";

const GROUPS = ["app", "machine", "day"] as const;
/** A GB kept for 30 days, as in the price file. */
const GB_MONTH_S = 30 * 86_400;
/** Below this, cents are too coarse to tell prices apart. */
const SMALL_AMOUNT = 1;

export const usage = command({
  name: "usage",
  summary: "Show what apps used, and what sleeping saved",
  description:
    "Counts whole days in UTC; today is counted up to now. Destroyed machines and apps are included. Cost is shown if the platform has a price file.",
  options: [
    // Unlike the --app of other commands: without it, all apps are listed, not the one of this directory.
    { flags: "-a, --app <name>", description: "only this app, which may have been destroyed" },
    { flags: "--by <group>", description: "one line for each app, machine or day (default: app)", choices: GROUPS },
    { flags: "--since <when>", description: "from this day on: 30d ago, or 2026-01-31 (default: 30d)" },
    { flags: "--until <when>", description: "up to this moment, in the same forms (default: now)" },
    ...TABLE,
    { flags: "--csv", description: "print comma-separated values, with every amount" },
  ],
  examples: [
    "hibernaut usage",
    "hibernaut usage --app shop --by machine --since 7d",
    "hibernaut usage -o wide",
    "hibernaut usage --since 2026-01-01 --until 2026-02-01 --csv > january.csv",
  ],
  async run(context, _args, { by, since, until, csv: asCsv = false, ...options }) {
    if (asCsv && options.output === "wide") throw new UsageError("--csv and -o wide exclude each other. Choose one.");
    if (asCsv && context.json) throw new UsageError("--csv and --json exclude each other. Choose one.");
    const client = await context.client();
    const { namedApp: app } = context;
    const [from, to] = [since && writtenTime(since), until && writtenTime(until)];
    const document = await client.getUsage(given({ app, group_by: by, from, to }));
    return { document, text: asCsv ? reportCsv(document) : reportText(document, options) };
  },
});

function reportText(report: UsageReport, options: OutputOptions): string {
  const { from, to, usage: rows, total, currency } = report;
  const range = `${from.slice(0, 10)} to ${to.slice(0, 16).replace("T", " ")} UTC`;
  if (rows.length === 0) return `Nothing was used from ${range}.`;
  const wide = options.output === "wide";
  const group = GROUP_COLUMNS[report.group_by];
  const head = [
    ...group.head,
    ...["RUNNING", "SUSPENDED", "STOPPED", "STORAGE", "WAKES", "PROXIED"],
    ...(currency === null ? [] : ["COST", "SAVED"]),
    ...(wide ? WIDE_HEAD : []),
  ];
  const cells = (row: Usage) => [...amountCells(row, currency), ...(wide ? wideCells(row) : [])];
  const all = rows.length > 1 ? [[...group.head.map((_, index) => (index === 0 ? "total" : "")), ...cells(total)]] : [];
  const body = rows.map((row) => [...group.row(row), ...cells(row)]);
  return `${outputTable([head, ...body, ...all], options, SPARE)}\n\nFrom ${range}. ${savingText(total, currency)}`;
}

/** The first columns, which say what a row is about. */
const GROUP_COLUMNS: Record<UsageReport["group_by"], { head: string[]; row(usage: Usage): string[] }> = {
  app: { head: ["APP"], row: ({ app_name: app }) => [app ?? "-"] },
  machine: {
    head: ["APP", "MACHINE", "NAME"],
    row: ({ app_name: app, machine_id: id, machine_name: name }) => [
      app ?? "-",
      id ?? "-",
      name ?? "(volumes without a machine)",
    ],
  },
  day: { head: ["DAY"], row: ({ day }) => [day ?? "-"] },
};

function amountCells(row: Usage, currency: string | null): string[] {
  const { cost, wakes, proxied_bytes: moved } = row;
  return [
    duration(row.running_seconds),
    duration(row.suspended_seconds),
    duration(row.stopped_seconds),
    gigabyteMonths(row.layer_gb_seconds + row.volume_gb_seconds),
    String(wakes.resume + wakes.cold),
    size(moved.in + moved.out),
    ...(cost === null || currency === null
      ? []
      : [money(cost.total, currency), money(cost.saved_by_sleeping, currency)]),
  ];
}

const SPARE = ["PROXIED", "STOPPED", "STORAGE"];
const WIDE_HEAD = ["RESUMES", "COLD STARTS", "LAYERS", "VOLUMES", "IN", "OUT"];

/** The parts of sums that are in the usual columns. */
function wideCells({ wakes, proxied_bytes: moved, ...kept }: Usage): string[] {
  return [
    String(wakes.resume),
    String(wakes.cold),
    gigabyteMonths(kept.layer_gb_seconds),
    gigabyteMonths(kept.volume_gb_seconds),
    size(moved.in),
    size(moved.out),
  ];
}

function gigabyteMonths(gigabyteSeconds: number): string {
  return `${(gigabyteSeconds / GB_MONTH_S).toFixed(2)} GB-months`;
}

/** What sleeping saved, in money or, without prices, in time. */
function savingText({ cost, wakes, ...total }: Usage, currency: string | null): string {
  const { resume, cold } = wakes;
  const kinds = resume + cold === 0 ? "" : ` Wakes: ${resume} by resume, ${cold} by cold start.`;
  if (cost !== null && currency !== null) {
    const [paid, always] = [money(cost.total, currency), money(cost.if_always_running, currency)];
    return `Cost ${paid}; running the whole time, it would have been ${always}.${kinds}`;
  }
  const asleep = total.suspended_seconds + total.stopped_seconds;
  const whole = total.running_seconds + asleep;
  const share = whole === 0 ? 0 : Math.round((100 * asleep) / whole);
  return `Machines used no CPU and memory for ${share}% of the time.${kinds}`;
}

function reportCsv({ usage: rows, total, currency }: UsageReport): string {
  const all = rows.map((row) => csvRow(row, currency));
  return csv(Object.keys(csvRow(total, currency)), all);
}

function csvRow({ wakes, proxied_bytes: moved, cost, ...row }: Usage, currency: string | null) {
  return {
    ...row,
    wakes_resume: wakes.resume,
    wakes_cold: wakes.cold,
    proxied_bytes_in: moved.in,
    proxied_bytes_out: moved.out,
    currency,
    cost_cpu: cost?.cpu ?? null,
    cost_memory: cost?.memory ?? null,
    cost_storage: cost?.storage ?? null,
    cost_total: cost?.total ?? null,
    cost_if_always_running: cost?.if_always_running ?? null,
    saved_by_sleeping: cost?.saved_by_sleeping ?? null,
  };
}

/** Comma-separated values (RFC 4180, with a line feed as other tools of this system write it). Null is an empty field. */
export function csv(keys: readonly string[], rows: readonly Record<string, string | number | null>[]): string {
  return [keys, ...rows.map((row) => keys.map((key) => row[key] ?? ""))]
    .map((values) => values.map((value) => quoted(String(value))).join(","))
    .join("\n");
}

function quoted(text: string): string {
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function duration(seconds: number): string {
  if (seconds < 120) return `${Math.round(seconds)} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  return `${(seconds / 3600).toFixed(1)} h`;
}

function size(bytes: number): string {
  const mb = bytes / 1024 / 1024;
  return mb < 1024 ? `${mb.toFixed(1)} MB` : `${(mb / 1024).toFixed(1)} GB`;
}

function money(amount: number, currency: string): string {
  const digits = Math.abs(amount) < SMALL_AMOUNT ? { maximumSignificantDigits: 2 } : {};
  return new Intl.NumberFormat("en-US", { style: "currency", currency, ...digits }).format(amount);
}
