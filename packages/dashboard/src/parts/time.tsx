/** Times that stay right while they are shown. */
import { useNow } from "../data/context.ts";
import { CHART_MS } from "../data/store.ts";
import { ago, lasting, moment } from "../format.ts";

/** Fine enough for seconds to count, rough enough for hundreds of them on a page, in milliseconds. */
const EVERY_MS = 5_000;

/** How long ago something was. Pointing at it shows when. */
export function Ago({ at }: { at: string | number }) {
  const now = useNow(EVERY_MS);
  const ms = typeof at === "number" ? at : Date.parse(at);
  return (
    <time dateTime={new Date(ms).toISOString()} title={moment(ms)}>
      {ago(ms, now)}
    </time>
  );
}

/** How long a machine has been in its state. What began before the chart did began at an unknown time. */
export function Since({ at }: { at: number }) {
  const now = useNow(EVERY_MS);
  const words = lasting(at, now, CHART_MS);
  if (at <= now - CHART_MS) return <span>{words}</span>;
  return (
    <time dateTime={new Date(at).toISOString()} title={`since ${moment(at)}`}>
      {words}
    </time>
  );
}
