/** A terminal in the page. Loaded when it is opened, because most of the code is xterm.js's. */
import "@xterm/xterm/css/xterm.css";
import { FitAddon } from "@xterm/addon-fit";
import { type ITheme, Terminal } from "@xterm/xterm";
import { useEffect, useRef } from "preact/hooks";
import { useServices } from "../../data/context.ts";
import { onColors } from "../../theme.ts";
import { defineAdoptedStyle } from "./adopted-style.ts";
import { type ConsoleEnd, ConsoleSession, SHELL } from "./console-session.ts";

/** Tab belongs to the shell, so another key leaves the terminal. */
const LEAVE_KEY = "F6";
const FONT_PX = 13;
const SCROLLBACK_LINES = 5_000;

export interface TerminalViewProps {
  app: string;
  machine: string;
  /** The shell can be typed into. */
  onOpen(): void;
  onEnd(end: ConsoleEnd): void;
  /** Someone wants the focus elsewhere. */
  onLeave(): void;
}

/** Runs a shell as long as it is rendered. */
export default function TerminalView({ app, machine, onOpen, onEnd, onLeave }: TerminalViewProps) {
  const { api } = useServices();
  const element = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const { current } = element;
    if (current === null) return undefined;
    defineAdoptedStyle();
    const terminal = new Terminal({
      fontFamily: getComputedStyle(current).fontFamily,
      fontSize: FONT_PX,
      scrollback: SCROLLBACK_LINES,
      screenReaderMode: true,
      theme: themeOf(current),
    });
    const fit = new FitAddon();
    terminal.loadAddon(fit);
    terminal.open(current);
    fit.fit();
    const { rows, cols: columns } = terminal;
    const session = new ConsoleSession(api.terminalUrl(app, machine, { command: SHELL, rows, columns }), {
      onOpen: () => {
        terminal.focus();
        onOpen();
      },
      onOutput: (bytes) => terminal.write(bytes),
      onEnd: (end) => {
        terminal.options.disableStdin = true;
        onEnd(end);
      },
    });
    terminal.onData((text) => session.write(text));
    terminal.onBinary((text) => session.writeBinary(text));
    terminal.onResize((size) => session.resize(size.rows, size.cols));
    terminal.attachCustomKeyEventHandler((event) => {
      if (event.key !== LEAVE_KEY) return true;
      event.preventDefault();
      if (event.type === "keydown") onLeave();
      return false;
    });
    const observer = new ResizeObserver(() => fit.fit());
    observer.observe(current);
    const offColors = onColors(() => {
      terminal.options.theme = themeOf(current);
    });
    return () => {
      offColors();
      observer.disconnect();
      session.close();
      terminal.dispose();
    };
  }, []);
  return <div ref={element} class="terminal-place" />;
}

/** The page's own colors. The sixteen of the shell stay those of terminals. */
function themeOf(element: HTMLElement): ITheme {
  const { color, backgroundColor } = getComputedStyle(element);
  return { foreground: color, background: backgroundColor, cursor: color, cursorAccent: backgroundColor };
}
