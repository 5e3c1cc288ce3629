/** Logs as they come: of one machine, or of all machines of an app. Always text, whatever is in a line. */
import "./logs.css";
import { ApiError, type LogStream } from "@hibernaut/client/browser";
import { useEffect, useLayoutEffect, useMemo, useReducer, useRef, useState } from "preact/hooks";
import { useServices, useStore } from "../data/context.ts";
import { type LogLine, LogLines, MOST_LINES } from "../data/log-lines.ts";
import { TOPIC } from "../data/store.ts";
import { count, moment, timeOfDay } from "../format.ts";
import { CopyButton, Empty, ErrorNote } from "./basics.tsx";

/** Lines that are read at first. */
const FIRST_LINES = 500;
/** The wait before reading again when the platform was not there, in milliseconds. */
const RETRY_MS = 2_000;
/** This close to the end counts as at the end, in pixels. */
const NEAR_PX = 24;

type Streams = "all" | LogStream;

const STREAMS: readonly [value: Streams, label: string][] = [
  ["all", "All streams"],
  ["stdout", "stdout"],
  ["stderr", "stderr"],
  ["hooks", "Hooks"],
  ["platform", "Platform"],
];

/** Shows logs with a filter. Without `machine`, those of all machines of the app, each line with its machine. */
export function Logs({ app, machine }: { app: string; machine?: string }) {
  const [words, setWords] = useState("");
  const [stream, setStream] = useState<Streams>("all");
  const [chosen, setChosen] = useState("");
  const [following, setFollowing] = useState(true);
  const isVisible = useVisible();
  // Browsers open up to six connections to a server, for all of their windows together: hidden ones leave theirs.
  const [lines, error] = useLines(app, { machine: machine ?? chosen, stream, following: following && isVisible });
  const shown = lines.matching(words);
  const text = () => shown.map(({ at, text: line }) => `${at} ${line}`).join("\n");
  return (
    <>
      <div class="logs-tools">
        <input
          type="search"
          aria-label="Show lines with these words"
          placeholder="Filter lines"
          value={words}
          onInput={(event) => setWords(event.currentTarget.value)}
        />
        {machine === undefined && <MachineChoice app={app} chosen={chosen} onChoose={setChosen} />}
        <select
          aria-label="Stream"
          value={stream}
          onChange={(event) => setStream(event.currentTarget.value as Streams)}
        >
          {STREAMS.map(([value, label]) => (
            <option key={value} value={value}>
              {label}
            </option>
          ))}
        </select>
        <button type="button" class="button" aria-pressed={following} onClick={() => setFollowing(!following)}>
          {following ? "Following" : "Paused"}
        </button>
        {shown.length > 0 && <CopyButton text={text()} what="lines shown" />}
      </div>
      <ErrorNote error={error} />
      {lines.count === 0 && error === undefined && (
        <Empty title="No lines yet." command={`hibernaut logs --app ${app}`}>
          What the app prints to stdout and stderr appears here as it comes.
        </Empty>
      )}
      {lines.count > 0 && <Lines lines={shown} named={machine === undefined} following={following} />}
      <p class="logs-foot">
        <span>
          {count(shown.length, "line")}
          {words.trim() !== "" && " with these words"}
        </span>
        {lines.count > MOST_LINES && <span>The page keeps the last {MOST_LINES.toLocaleString("en-US")}.</span>}
      </p>
    </>
  );
}

interface Choice {
  /** Empty: all. */
  machine: string;
  stream: Streams;
  following: boolean;
}

/** Reads lines, and renders at most once per frame, however many come. */
function useLines(app: string, { machine, stream, following }: Choice): [LogLines, unknown] {
  const { api } = useServices();
  const lines = useMemo(() => new LogLines(), []);
  const [error, setError] = useState<unknown>();
  const [, render] = useReducer((times: number) => times + 1, 0);
  useEffect(() => {
    if (!following) return undefined;
    const end = new AbortController();
    const { signal } = end;
    let frame = 0;
    const soon = () => {
      frame ||= requestAnimationFrame(() => {
        frame = 0;
        render(undefined);
      });
    };
    const read = async () => {
      lines.clear();
      soon();
      const options = {
        limit: FIRST_LINES,
        ...(machine !== "" && { machine }),
        ...(stream !== "all" && { stream }),
        signal,
      };
      for await (const entry of api.followLogs(app, options)) {
        setError(undefined);
        lines.add(entry);
        soon();
      }
    };
    const follow = async () => {
      while (!signal.aborted) {
        try {
          // It ends by itself only when there is nothing left to follow.
          return await read();
        } catch (cause) {
          if (signal.aborted) return;
          setError(cause);
          if (!(cause instanceof ApiError) || cause.code !== "unavailable") return;
          await new Promise((resolve) => void setTimeout(resolve, RETRY_MS));
        }
      }
    };
    void follow();
    return () => {
      end.abort();
      cancelAnimationFrame(frame);
    };
  }, [app, machine, stream, following]);
  return [lines, error];
}

/** Whether the page is in front, so that someone can see it. */
function useVisible(): boolean {
  const [isVisible, setVisible] = useState(() => !document.hidden);
  useEffect(() => {
    const listener = () => setVisible(!document.hidden);
    document.addEventListener("visibilitychange", listener);
    return () => document.removeEventListener("visibilitychange", listener);
  }, []);
  return isVisible;
}

function MachineChoice({ app, chosen, onChoose }: { app: string; chosen: string; onChoose(id: string): void }) {
  const machines = useStore(TOPIC.world, (store) =>
    [...store.machines.values()].filter(({ app_name: name }) => name === app),
  );
  return (
    <select aria-label="Machine" value={chosen} onChange={(event) => onChoose(event.currentTarget.value)}>
      <option value="">All machines</option>
      {machines.map(({ machine_id: id, name }) => (
        <option key={id} value={id}>
          {name}
        </option>
      ))}
    </select>
  );
}

/** Stays at the end while lines come, unless someone has scrolled back. */
function Lines({ lines, named, following }: { lines: readonly LogLine[]; named: boolean; following: boolean }) {
  const { store } = useServices();
  const element = useRef<HTMLDivElement>(null);
  const atEnd = useRef(true);
  const last = lines.at(-1)?.number;
  useLayoutEffect(() => {
    const { current } = element;
    if (current !== null && atEnd.current) current.scrollTop = current.scrollHeight;
  }, [last, lines.length]);
  const onScroll = (event: Event & { currentTarget: HTMLElement }) => {
    const { scrollHeight, scrollTop, clientHeight } = event.currentTarget;
    atEnd.current = scrollHeight - scrollTop - clientHeight < NEAR_PX;
  };
  return (
    // Not read aloud by itself: a log can bring hundreds of lines a second.
    <div
      ref={element}
      class="logs"
      role="log"
      aria-live="off"
      aria-label={following ? "Log, following" : "Log, paused"}
      // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- without it, the keyboard cannot scroll
      tabIndex={0}
      onScroll={onScroll}
    >
      {lines.map(({ number, at, machine, stream, text }) => (
        <div key={number} class={`log-line log-${stream}${named ? " from-machine" : ""}`}>
          <time dateTime={at} title={moment(at)}>
            {timeOfDay(Date.parse(at))}
          </time>
          {named && <span class="log-source">{store.machines.get(machine)?.name ?? machine}</span>}
          <span class="log-text">{text}</span>
        </div>
      ))}
    </div>
  );
}
