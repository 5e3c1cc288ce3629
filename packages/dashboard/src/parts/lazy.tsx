/** Parts of the dashboard whose code is loaded when they are first shown. */
import { type ComponentChildren, type ComponentType, Fragment } from "preact";
import { useEffect, useState } from "preact/hooks";
import { ErrorNote, Loading, Page } from "./basics.tsx";

type Frame = ComponentType<{ children: ComponentChildren }>;

/** Returns a component that loads the real one when it appears. `Around` is around what is shown until then. */
export function lazyPart<P extends object>(
  what: string,
  load: () => Promise<ComponentType<P>>,
  Around: Frame = Fragment,
): ComponentType<P> {
  let loaded: ComponentType<P> | undefined;
  return function LazyPart(props: P) {
    const [Component, setComponent] = useState<ComponentType<P> | undefined>(() => loaded);
    const [error, setError] = useState<unknown>();
    const [turn, setTurn] = useState(0);
    useEffect(() => {
      if (Component !== undefined) return;
      load().then(
        (found) => {
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
    const retry = () => {
      setError(undefined);
      setTurn(turn + 1);
    };
    return (
      <Around>{error === undefined ? <Loading what={what} /> : <ErrorNote error={error} onRetry={retry} />}</Around>
    );
  };
}

/** The same for a page, which has its heading at once. */
export function lazyPage<P extends object>(
  title: string,
  load: () => Promise<{ default: ComponentType<P> }>,
): ComponentType<P> {
  const withHeading: Frame = ({ children }) => <Page title={title}>{children}</Page>;
  return lazyPart("the page", async () => (await load()).default, withHeading);
}
