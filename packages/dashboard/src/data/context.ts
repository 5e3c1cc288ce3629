/** Gives components the store, the API and the session. */

import type { BrowserClient, NewToken, Session } from "@hibernaut/client/browser";
import { createContext } from "preact";
import { useContext, useEffect, useLayoutEffect, useReducer, useRef, useState } from "preact/hooks";
import type { Store } from "./store.ts";

/** What every page has. */
export interface Services {
  api: BrowserClient;
  store: Store;
  session: Session;
  /** Ends the session. */
  signOut(): Promise<void>;
  /** Shows the secret of a new token until the user closes it, also when the session ends meanwhile. */
  showToken(token: NewToken): void;
}

const Context = createContext<Services | undefined>(undefined);

export const ServicesProvider = Context.Provider;

/** Returns the services of this page. */
export function useServices(): Services {
  const services = useContext(Context);
  if (services === undefined) throw new Error("this component needs a session");
  return services;
}

/** Reads something from the store, and renders again when the topic changes. */
export function useStore<T>(topic: string, read: (store: Store) => T): T {
  const { store } = useServices();
  const [, render] = useReducer((times: number) => times + 1, 0);
  const version = store.topics.version(topic);
  useLayoutEffect(() => {
    if (store.topics.version(topic) !== version) render(undefined);
    return store.topics.listen(topic, () => render(undefined));
  }, [store, topic]);
  return read(store);
}

/** Counts the changes of a topic: what is not in the store can be read again with each. */
export function useChanges(topic: string): number {
  return useStore(topic, ({ topics }) => topics.version(topic));
}

/** Calls back that often, in milliseconds, while the page can be seen; never without a time. */
export function useEvery(everyMs: number | undefined, callback: () => void): void {
  const latest = useRef(callback);
  latest.current = callback;
  useEffect(() => {
    if (everyMs === undefined) return undefined;
    const timer = setInterval(() => {
      if (!document.hidden) latest.current();
    }, everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
}

/** Returns the platform's time, and renders again that often, in milliseconds. */
export function useNow(everyMs: number): number {
  const { store } = useServices();
  const [, render] = useReducer((times: number) => times + 1, 0);
  useEvery(everyMs, () => render(undefined));
  return store.now();
}

/** Whether the session may do everything, on the platform itself. */
export function isAdmin({ scopes, apps }: Session): boolean {
  return scopes.includes("admin") && apps === null;
}

/** Something that is being read, or was. What was read last stays while it is read again. */
export interface Loaded<T> {
  data: T | undefined;
  error: unknown;
  loading: boolean;
  /** Reads it again. */
  reload(): void;
}

/** Reads something from the API when the component appears, when `inputs` change, and on demand. */
export function useLoaded<T>(load: (signal: AbortSignal) => Promise<T>, inputs: readonly unknown[]): Loaded<T> {
  const [turn, setTurn] = useState(0);
  const [state, setState] = useState<Omit<Loaded<T>, "reload">>({ data: undefined, error: undefined, loading: true });
  useEffect(() => {
    const end = new AbortController();
    setState((last) => ({ ...last, loading: true }));
    load(end.signal).then(
      (data) => {
        if (!end.signal.aborted) setState({ data, error: undefined, loading: false });
      },
      (error: unknown) => {
        if (!end.signal.aborted) setState((last) => ({ ...last, error, loading: false }));
      },
    );
    return () => end.abort();
  }, [...inputs, turn]);
  return { ...state, reload: () => setTurn((last) => last + 1) };
}
