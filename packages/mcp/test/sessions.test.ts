/** Sessions: whose they are, when they end, and who makes room. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { admit, allowedHosts } from "../src/http/admission.ts";
import { Sessions } from "../src/http/sessions.ts";
import { MOST_CALLS, MOST_SESSIONS, MOST_SESSIONS_OF_TOKEN, SESSION_IDLE_MS } from "../src/limits.ts";

let ended: string[];
let sessions: Sessions<{ close(): Promise<void> }>;
beforeEach(() => {
  vi.useFakeTimers();
  ended = [];
  sessions = new Sessions({
    onFault: (error) => {
      throw error;
    },
  });
});
afterEach(() => {
  sessions.close();
  vi.useRealTimers();
});

function add(id: string, token: string): boolean {
  if (!sessions.makeRoom(token)) return false;
  sessions.add(id, { close: async () => void ended.push(id) }, token);
  vi.advanceTimersByTime(1);
  return true;
}

test("a session is found with its own token only, and ends when nobody has used it for long", () => {
  add("one", "a");
  expect(sessions.find("one", "b")).toBeUndefined();
  const session = sessions.find("one", "a");
  const over = session && sessions.begin(session);
  vi.advanceTimersByTime(2 * SESSION_IDLE_MS);
  expect(ended).toEqual([]);
  over?.();
  vi.advanceTimersByTime(0.9 * SESSION_IDLE_MS);
  expect(ended).toEqual([]);
  vi.advanceTimersByTime(0.3 * SESSION_IDLE_MS);
  expect(ended).toEqual(["one"]);
  expect(sessions.find("one", "a")).toBeUndefined();
});

test("a token that begins too many ends its own idle ones, and cannot take the room of others", () => {
  for (let index = 0; index < MOST_SESSIONS_OF_TOKEN; index += 1) add(`a${index}`, "a");
  const busy = sessions.find("a0", "a");
  const over = busy && sessions.begin(busy);
  expect(add("more", "a")).toBe(true);
  expect(ended).toEqual(["a1"]);
  over?.();
  for (let index = 0; sessions.size < MOST_SESSIONS; index += 1) add(`t${index}`, `token ${index}`);
  expect(add("late", "another")).toBe(false);
  // One who has some may exchange them.
  expect(add("again", "a")).toBe(true);
});

test("calls of one session are bounded", () => {
  add("one", "a");
  const session = sessions.find("one", "a");
  if (session === undefined) throw new Error("there is none");
  const over = Array.from({ length: MOST_CALLS }, () => sessions.begin(session));
  expect(sessions.begin(session)).toBeUndefined();
  over[0]?.();
  expect(sessions.begin(session)).toBeDefined();
});

test.each([
  [{ host: "127.0.0.1:7075" }, 200],
  [{ host: "LOCALHOST" }, 200],
  [{ host: "[::1]:7075", origin: "http://localhost:6274" }, 200],
  [{ host: "tools.example.com" }, 200],
  [{}, 403],
  [{ host: "" }, 403],
  [{ host: "evil.example:7075" }, 403],
  [{ host: "127.0.0.1.evil.example" }, 403],
  [{ host: "localhost@evil.example" }, 403],
  [{ host: "localhost", origin: "https://evil.example" }, 403],
  [{ host: "localhost", origin: "null" }, 403],
  [{ host: "localhost", authorization: "" }, 401],
  [{ host: "localhost", authorization: "Basic eDp5" }, 401],
  [{ host: "localhost", authorization: `Bearer ${"x".repeat(513)}` }, 401],
])("%j is answered with %i", (headers, status) => {
  const allowed = allowedHosts("127.0.0.1", ["tools.example.com"]);
  const admitted = admit({ authorization: "bearer x", ...headers }, allowed);
  expect("status" in admitted ? admitted.status : 200).toBe(status);
});
