/** Pages whose code is loaded when they are first shown. */
import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { ErrorNote, Loading, Page } from "./basics.tsx";

/** Returns a component that loads the real one when it appears. */
export function lazyPage<P extends object>(
  title: string,
  load: () => Promise<{ default: ComponentType<P> }>,
): ComponentType<P> {
  let loaded: ComponentType<P> | undefined;
  return function LazyPage(props: P) {
    const [Component, setComponent] = useState<ComponentType<P> | undefined>(() => loaded);
    const [error, setError] = useState<unknown>();
    const [turn, setTurn] = useState(0);
    useEffect(() => {
      if (Component !== undefined) return;
      load().then(
        ({ default: found }) => {
          loaded = found;
          return setComponent(() => found);
        },
        (cause: unknown) => {
          const message =
            "A part of the dashboard could not be loaded. After an upgrade of the platform, load the page again.";
          setError(new Error(message, { cause }));
        },
      );
    }, [turn]);
    if (Component !== undefined) return <Component {...props} />;
    return (
      <Page title={title}>
        {error === undefined ? (
          <Loading what="the page" />
        ) : (
          <ErrorNote
            error={error}
            onRetry={() => {
              setError(undefined);
              setTurn(turn + 1);
            }}
          />
        )}
      </Page>
    );
  };
}
