/** The console of a machine: a shell in the browser. */
import type { Machine } from "@hibernaut/client/browser";
import type { ComponentType } from "preact";
import { useRef, useState } from "preact/hooks";
import { background } from "../../data/background.ts";
import { useServices } from "../../data/context.ts";
import { lackOf } from "../../data/rights.ts";
import { ActionButton } from "../../parts/action.tsx";
import { ErrorNote, Section } from "../../parts/basics.tsx";
import { type ConsoleEnd, endSentence } from "./console-session.ts";
import type { TerminalViewProps } from "./terminal.tsx";

/** The shell that is open, or was. Each has a number of its own. */
interface Shell {
  number: number;
  state: "connecting" | "open" | "ended";
  end?: ConsoleEnd;
}

/** Opens a shell on request. Everything that a terminal needs is loaded then. */
export function Console({ machine }: { machine: Machine }) {
  const { session } = useServices();
  const [Terminal, setTerminal] = useState<ComponentType<TerminalViewProps>>();
  const [shell, setShell] = useState<Shell>();
  const [error, setError] = useState<unknown>();
  const leaving = useRef<HTMLDivElement>(null);
  const { state, app_name: app, machine_id: id } = machine;
  const isOpen = shell !== undefined && shell.state !== "ended";
  const open = async () => {
    setError(undefined);
    try {
      const { default: loaded } = await import("./terminal.tsx");
      setTerminal(() => loaded);
      setShell((last) => ({ number: (last?.number ?? 0) + 1, state: "connecting" }));
    } catch (cause) {
      setError(cause);
    }
  };
  const refusal =
    lackOf(session, "exec") ?? (state === "running" ? undefined : `The machine is ${state}. Start it first.`);
  const close = () => setShell(undefined);
  return (
    <Section
      title="Console"
      aside={
        <div ref={leaving} class="buttons">
          {shell !== undefined && (
            <button type="button" class="button small" onClick={close}>
              Close the console
            </button>
          )}
          {!isOpen && (
            <ActionButton class="small" refusal={refusal} onClick={() => background(open(), "opening the console")}>
              {shell === undefined ? "Open a console" : "Open a new one"}
            </ActionButton>
          )}
        </div>
      }
    >
      {shell === undefined && (
        <p class="muted">
          {refusal ?? "A shell in the machine, as its image's user. It keeps the machine awake while it is open."}
        </p>
      )}
      <ErrorNote error={error} />
      {shell !== undefined && Terminal !== undefined && (
        <>
          <Terminal
            key={shell.number}
            app={app}
            machine={id}
            onOpen={() => setShell({ number: shell.number, state: "open" })}
            onEnd={(end) => setShell((now) => (now?.number === shell.number ? { ...now, state: "ended", end } : now))}
            onLeave={() => leaving.current?.querySelector("button")?.focus()}
          />
          <p class="muted" role="status" data-console={shell.state}>
            {shell.state === "connecting" && "Connecting…"}
            {shell.state === "open" && "Connected. Tab belongs to the shell; F6 leaves the console."}
            {shell.end !== undefined && endSentence(shell.end, state)}
          </p>
        </>
      )}
    </Section>
  );
}
