/** Asks every few seconds what a machine is used for, as long as its page is open. */
import type { Activity } from "@hibernaut/client/browser";
import { useEffect, useRef, useState } from "preact/hooks";
import { background } from "../../data/background.ts";
import { useServices } from "../../data/context.ts";
import { type Load, type Sample, withLoad } from "./samples.ts";

/** Often enough to see a request, seldom enough to cost the platform nothing, in milliseconds. */
const READ_EVERY_MS = 2_000;

/** What was read. */
export interface Watched {
  activity: Activity | undefined;
  loads: readonly Load[];
  error: unknown;
}

/** Reads a machine's activity again and again. `state` reads it at once when it changes. */
export function useActivity(app: string, id: string, state: string | undefined): Watched {
  const { api } = useServices();
  const [watched, setWatched] = useState<Watched>({ activity: undefined, loads: [], error: undefined });
  const last = useRef<Sample | undefined>(undefined);
  useEffect(() => {
    if (state === undefined) return undefined;
    const end = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const read = async () => {
      try {
        if (!document.hidden) {
          const activity = await api.getMachineActivity(app, id, { signal: end.signal });
          const sample = { at: Date.now(), process: activity.process };
          const before = last.current;
          last.current = sample;
          setWatched(({ loads }) => ({ activity, loads: withLoad(loads, before, sample), error: undefined }));
        }
      } catch (error) {
        if (end.signal.aborted) return;
        setWatched((now) => ({ ...now, error }));
      }
      timer = setTimeout(() => background(read(), "reading what keeps the machine awake"), READ_EVERY_MS);
    };
    background(read(), "reading what keeps the machine awake");
    return () => {
      end.abort();
      clearTimeout(timer);
    };
  }, [app, id, state]);
  return watched;
}
