/** Logs as they come: of one machine, or of all machines of an app. Always text, whatever is in a line. */
import "./logs.css";
import { useEffect, useLayoutEffect, useMemo, useReducer, useRef, useState } from "preact/hooks";
import { background } from "../data/background.ts";
import { useServices, useStore } from "../data/context.ts";
import { followLog } from "../data/follow-log.ts";
import { type LogChoice, type LogLine, LogLines, MOST_LINES } from "../data/log-lines.ts";
import { TOPIC } from "../data/store.ts";
import { count, moment, timeOfDay } from "../format.ts";
import { CopyButton, Empty, ErrorNote } from "./basics.tsx";

/** This close to the end counts as at the end, in pixels. */
const NEAR_PX = 24;

type Streams = LogChoice["stream"];

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
  const choice = { machine: machine ?? chosen, stream };
  const [lines, error] = useLines(app, choice, { following, isVisible });
  const shown = lines.matching(words, choice);
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
      <p class="logs-foot line muted">
        <span>
          {count(shown.length, "line")}
          {words.trim() !== "" && " with these words"}
        </span>
        {lines.count > MOST_LINES && <span>The page keeps the last {MOST_LINES.toLocaleString("en-US")}.</span>}
      </p>
    </>
  );
}

interface Reading {
  following: boolean;
  isVisible: boolean;
}

/** Reads lines, and renders at most once per frame, however many come. Paused, it reads only what it does not have. */
function useLines(app: string, { machine, stream }: LogChoice, { following, isVisible }: Reading): [LogLines, unknown] {
  const { api, store } = useServices();
  const lines = useMemo(() => new LogLines(), []);
  const [error, setError] = useState<unknown>();
  const [, render] = useReducer((times: number) => times + 1, 0);
  useEffect(() => {
    const choice = { machine, stream };
    if (!isVisible || (!following && lines.covers(choice))) return undefined;
    const end = new AbortController();
    const { signal } = end;
    let frame = 0;
    const onChange = () => {
      frame ||= requestAnimationFrame(() => {
        frame = 0;
        render(undefined);
      });
    };
    const isGone = () => (machine === "" ? !store.apps.has(app) : !store.machines.has(machine));
    setError(undefined);
    background(
      followLog({ api, app, choice, lines, follow: following, signal, isGone, onChange, onError: setError }),
      "following a log",
    );
    return () => {
      end.abort();
      cancelAnimationFrame(frame);
    };
  }, [app, machine, stream, following, isVisible]);
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
  const machines = useStore(TOPIC.world, (store) => store.machinesOf(app));
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
