/** A shell in a machine over a WebSocket, as the console of a browser uses it. */
import { ExecChannel, type ExecExit } from "@hibernaut/client/browser";

/** What `hibernaut console` runs: bash if the image has it, otherwise sh. */
export const SHELL: readonly string[] = ["/bin/sh", "-c", "exec $(command -v bash || command -v sh) -l"];
/** Input is sent in messages of at most this size, in bytes. The platform refuses messages over 1 MiB. */
const PIECE = 65_536;

/** How a console ended: the shell's own end, or why there was none. */
export type ConsoleEnd =
  | { kind: "ended"; exit: ExecExit }
  /** The connection was lost. */
  | { kind: "lost" }
  /** The platform did not let it begin. Browsers do not tell why. */
  | { kind: "refused" };

interface Handlers {
  onOpen(): void;
  onOutput(bytes: Uint8Array): void;
  /** Called once, last. */
  onEnd(end: ConsoleEnd): void;
}

/** One shell. */
export class ConsoleSession {
  readonly #socket: WebSocket;
  #exit: ExecExit | undefined;

  constructor(url: URL, { onOpen, onOutput, onEnd }: Handlers) {
    this.#socket = new WebSocket(url);
    this.#socket.binaryType = "arraybuffer";
    let opened = false;
    this.#socket.addEventListener("open", () => {
      opened = true;
      onOpen();
    });
    this.#socket.addEventListener("message", ({ data }) => {
      const message = new Uint8Array(data as ArrayBuffer);
      const rest = message.subarray(1);
      if (message[0] === ExecChannel.stdout || message[0] === ExecChannel.stderr) onOutput(rest);
      if (message[0] === ExecChannel.exit) this.#exit = JSON.parse(new TextDecoder().decode(rest)) as ExecExit;
    });
    this.#socket.addEventListener("close", () => {
      if (this.#exit !== undefined) onEnd({ kind: "ended", exit: this.#exit });
      else onEnd({ kind: opened ? "lost" : "refused" });
    });
  }

  /** Sends what was typed or pasted. */
  write(text: string): void {
    const bytes = new TextEncoder().encode(text);
    for (let at = 0; at < bytes.length; at += PIECE) this.#send(ExecChannel.stdin, bytes.subarray(at, at + PIECE));
  }

  /** Sends what a terminal sends that is not text, such as positions of the mouse: one byte for each character. */
  writeBinary(text: string): void {
    this.#send(
      ExecChannel.stdin,
      Uint8Array.from(text, (character) => character.charCodeAt(0)),
    );
  }

  /** Sets the size of the terminal, in characters. */
  resize(rows: number, columns: number): void {
    this.#send(ExecChannel.resize, new TextEncoder().encode(JSON.stringify({ rows, columns })));
  }

  /** Ends the shell and everything that it started. */
  close(): void {
    this.#socket.close();
  }

  #send(channel: number, rest: Uint8Array): void {
    if (this.#socket.readyState !== WebSocket.OPEN) return;
    const message = new Uint8Array(rest.length + 1);
    message[0] = channel;
    message.set(rest, 1);
    this.#socket.send(message);
  }
}

/** Says how a console ended, in a sentence. */
export function endSentence(end: ConsoleEnd, state: string): string {
  if (end.kind === "refused")
    return state === "running"
      ? "The platform did not open a console. Check that your session is still valid, and try again."
      : `The platform did not open a console, because the machine is ${state}. Start it first.`;
  if (end.kind === "lost") return "The connection was lost, and the shell has ended.";
  const { exit_code: code, exit_signal: signal, error } = end.exit;
  if (error !== null) return `The shell ended: ${error.replace(/\.$/, "")}.`;
  if (signal !== 0) return `The shell was ended by signal ${signal}.`;
  return `The shell has ended with exit code ${code}.`;
}
