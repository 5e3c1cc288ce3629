/** Navigation without loading the page again. */
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { pathOf, type Route, routeOf } from "./routes.ts";

const listeners = new Set<() => void>();
/** How often the page changed since it was loaded: the first page does not take the focus. */
let changes = 0;

/** Whether the present page was reached by navigation inside the dashboard. */
export const hasNavigated = (): boolean => changes > 0;

/** Shows a page. With `replace`, the browser's Back does not return to the one before. */
export function navigate(to: Route, { replace = false }: { replace?: boolean } = {}): void {
  const path = pathOf(to);
  if (path !== location.pathname + location.search) {
    if (replace) history.replaceState(null, "", path);
    else history.pushState(null, "", path);
  }
  changed();
  scrollTo(0, 0);
}

function changed(): void {
  changes++;
  for (const listener of listeners) listener();
}

addEventListener("popstate", changed);

/** Returns the present page, and renders again when it changes. */
export function useRoute(): Route {
  const [path, setPath] = useState(location.pathname);
  useEffect(() => {
    const listener = () => setPath(location.pathname);
    listeners.add(listener);
    return () => void listeners.delete(listener);
  }, []);
  return routeOf(path);
}

interface LinkProps {
  to: Route;
  class?: string;
  "aria-current"?: "page" | undefined;
  children: ComponentChildren;
}

/** A link to a page of the dashboard. A click with Ctrl or another button does what browsers do. */
export function Link({ to, children, ...rest }: LinkProps) {
  const onClick = (event: MouseEvent) => {
    if (event.defaultPrevented || event.button !== 0) return;
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    navigate(to);
  };
  return (
    <a {...rest} href={pathOf(to)} onClick={onClick}>
      {children}
    </a>
  );
}
