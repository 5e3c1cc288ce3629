/** What apps do besides sending bytes. */
import type { Act, Talk } from "./app.ts";

/** Sends this and ends the connection. */
export function ends(text: string): Act {
  return ({ socket }) => void socket.end(text, "latin1");
}

/** Sends this, and once told, breaks off or ends the connection. */
export function sends(text: string, then: "reset" | "end"): Act {
  return ({ socket, told }: Talk) => {
    socket.write(text, "latin1");
    void told.then(() => (then === "end" ? socket.end() : socket.resetAndDestroy()));
  };
}

/** Sends the first, and once told, the second. */
export function sendsBoth(first: string, second: string): Act {
  return ({ socket, told }: Talk) => {
    socket.write(first, "latin1");
    void told.then(() => socket.write(second, "latin1"));
  };
}

/** Byte by byte, one for each turn of the event loop. */
export function slowly(text: string): Act {
  return ({ socket }: Talk) => {
    let at = 0;
    const next = () => {
      if (socket.destroyed || at === text.length) return;
      socket.write(text.charAt(at), "latin1");
      at += 1;
      setImmediate(next);
    };
    next();
  };
}
